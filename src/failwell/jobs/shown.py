"""What a job was given and what it returned, for a screen: without the secrets of its capability.

On record both stay as they are, because they are the caller's; see `failwell.report.redact` for the rest.
"""

from collections.abc import Mapping
from typing import Any, cast

from failwell.jobs.environment import SHORTEST_SECRET
from failwell.report.redact import mask_known, register_secret

_ROOM = 1_000
"""Characters by which a text may grow when its secrets are masked."""


def shown(value: Any, secrets: Mapping[str, str]) -> Any:
    """`value` with these secrets masked, in whatever text of it they stand."""
    for secret in secrets.values():
        if len(secret) >= SHORTEST_SECRET:
            register_secret(secret)
    return _masked(value)


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        return mask_known(value, len(value) + _ROOM)
    if isinstance(value, Mapping):
        return {_masked(key): _masked(one) for key, one in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_masked(one) for one in cast("list[Any]", value)]
    return value
