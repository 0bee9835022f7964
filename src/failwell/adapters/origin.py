"""Where an error arose decides what a plain exception means. One table, applied at every border.

A `ValueError` is a bug of the program that raised it, the failure of a tool, or the caller's mistake: the class does not say
which, but the border does. Whatever is known for certain (a status, a code, an errno such as "disk full") means the same
everywhere, and so does the class of a library that names its own failures.
"""

from dataclasses import replace
from typing import get_args

from failwell.adapters.classification import Classification
from failwell.errors.facts import Evidence, Origin
from failwell.errors.kind_registry import KINDS

ORIGINS: tuple[Origin, ...] = get_args(Origin)
"""`code`, `call`, `tool`, `input`."""

_BUG, _TOOL, _FILE = "internal.bug", "tool.failed", "internal.file_unavailable"
VERDICTS: dict[str, dict[Origin, str]] = {
    "validation.input_invalid": {"code": _BUG, "call": _BUG, "tool": _TOOL},
    # What a service answered could not be parsed.
    "validation.shape_invalid": {"code": _BUG, "call": "provider.output_invalid", "tool": _TOOL},
    "validation.path_not_found": {"code": _FILE, "call": _FILE, "tool": _TOOL},
    "validation.path_wrong_type": {"code": _FILE, "call": _FILE, "tool": _TOOL},
    "validation.path_denied": {"code": _FILE, "call": _FILE, "tool": _TOOL},
    "internal.bug": {"tool": _TOOL},
    "internal.script_error": {"tool": _TOOL},
    "internal.unknown": {"tool": _TOOL},
}
"""The kind of a plain exception in input that was given → its kind elsewhere; what is not named stays."""
REFUSALS = ("validation.input_invalid", "validation.shape_invalid")
"""What a library says of a value that it was given."""
_PLAIN = frozenset(
    {"python", "class", "pydantic", "jsonschema", "yaml", "process", "unclassified", "adapter_failed"}
)
"""First words of rules for classes that say what is wrong and not where."""
_TOO_LONG = ("python.OSError.E2BIG", "python.OSError.ENAMETOOLONG")
"""What was given is longer than the operating system takes: it is about what was given, wherever it arose."""
_UNDECODED = "python.UnicodeDecodeError"
_NOT_JSON = "python.JSONDecodeError"
"""A text that is no JSON is data. In the program's own code nothing says whose."""


def seen_from(
    reading: Classification, origin: Origin, saw: str, *, by_library: bool = False
) -> Classification:
    """`reading` of a foreign exception, seen from the border that says where the error arose.

    Args:
        reading: What an adapter made of the exception.
        origin: Where it arose.
        saw: The exception's class.
        by_library: Whether a client library raised it: then it refuses an argument that it was given.
    """
    elsewhere = VERDICTS.get(reading.kind)
    rule = reading.evidence[0].rule
    if elsewhere is None or origin == "input" or rule in _TOO_LONG:
        return reading
    refused = by_library and reading.kind in REFUSALS
    if refused or rule.partition(".")[0] not in _PLAIN:
        # A library says which argument is invalid. Who gave it is known here and not there.
        return replace(reading, origin=origin) if reading.kind.startswith("validation.") else reading
    kind = elsewhere.get(origin)
    if rule == _UNDECODED and origin == "call":
        kind = "provider.output_invalid"
    elif rule == _NOT_JSON and origin == "code":
        kind = "internal.unknown"
    if kind is None:
        return reading
    known = KINDS.get(reading.kind)
    message = reading.message
    if message is None and kind != _BUG and known is not None and reading.kind.startswith("validation."):
        message = known.summary
    return replace(
        reading,
        kind=kind,
        message=message,
        evidence=(
            Evidence(rule=f"origin.{origin}", basis="origin", saw=saw),
            Evidence(rule=rule, basis="runner_up", saw=reading.kind),
        ),
    )
