"""What the annotations of an MCP tool say about repeating it."""

from collections.abc import Mapping
from typing import Any, Literal, cast

from failwell.errors.foreign_objects import safe_getattr

EffectPolicy = Literal["none", "repeat", "claim"]
"""`none`: it changes nothing. `repeat`: a repeat changes nothing more. `claim`: it must not be run twice."""


def effect_policy(tool: object) -> EffectPolicy:
    """How calls of an MCP tool are protected, by its `readOnlyHint` and `idempotentHint`.

    A hint that is missing, or is not exactly `True`, protects more. Annotations of a server that you do not trust are
    claims of that server.

    Args:
        tool: A tool, its annotations, or either as a mapping.
    """
    annotations = _member(tool, "annotations")
    hints = tool if annotations is None else annotations
    if is_read_only(hints):
        return "none"
    return "repeat" if is_idempotent(hints) else "claim"


def is_read_only(annotations: object) -> bool | None:
    """The `readOnlyHint` of a tool's annotations; `None` if they have none."""
    # Releases of the library from 2 on have other names than the protocol, and FastMCP warns about those of the protocol.
    return _hint(annotations, "read_only_hint", "readOnlyHint")


def is_idempotent(annotations: object) -> bool | None:
    """The `idempotentHint` of a tool's annotations; `None` if they have none."""
    return _hint(annotations, "idempotent_hint", "idempotentHint")


def _hint(annotations: object, *names: str) -> bool | None:
    value = _member(annotations, *names)
    return value if isinstance(value, bool) else None


def _member(holder: object, *names: str) -> Any:
    if isinstance(holder, Mapping):
        mapping = cast("Mapping[str, Any]", holder)
        return next((mapping[name] for name in names if name in mapping), None)
    return safe_getattr(holder, *names)
