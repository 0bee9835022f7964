"""How much of an exception's own words a report may record.

The text of an exception that is not ours is evidence, not message: SDKs render bodies, prompts
and headers into it, and no pattern recognises a prompt. So nothing of it is kept unless somebody
asks, per call or with the environment variable `FAILWELL_TRACEBACK`.
"""

import os
from enum import StrEnum

ENVIRONMENT_VARIABLE = "FAILWELL_TRACEBACK"


class TracebackPolicy(StrEnum):
    """What is recorded of the original exception; whatever is recorded is redacted."""

    FULL = "full"
    """Its message, its repr and the whole traceback with its causes."""
    REPR_ONLY = "repr_only"
    """Its message and its repr."""
    NONE = "none"
    """Its repr."""
    STRICT = "strict"
    """The names of its types, and nothing that it said."""

    @property
    def keeps_message(self) -> bool:
        """Whether the exception's own message may be recorded."""
        return self is TracebackPolicy.FULL or self is TracebackPolicy.REPR_ONLY


def default_policy() -> TracebackPolicy:
    """The policy that the environment asks for; `strict` when it asks for none or for nonsense."""
    value = os.environ.get(ENVIRONMENT_VARIABLE)
    if not value:
        return TracebackPolicy.STRICT
    try:
        return TracebackPolicy(value.strip().lower())
    except ValueError:
        # A typing mistake in the environment must not make reports say more than the default does.
        return TracebackPolicy.STRICT
