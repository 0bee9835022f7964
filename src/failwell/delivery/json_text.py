"""JSON that every reader accepts: no `NaN`, no `Infinity`, and no object's own repr."""

from collections.abc import Mapping
from json import dumps
from math import isfinite
from typing import Any, cast


def finite(value: Any) -> Any:
    """`value` with every number that JSON cannot write replaced by null."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(inner) for key, inner in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in cast("list[Any]", value)]
    return value


def json_text(value: object, *, indent: int | None = None) -> str:
    """`value` as JSON text; what JSON does not know is named by its type."""
    return dumps(finite(value), ensure_ascii=False, allow_nan=False, indent=indent, default=_named)


def _named(value: object) -> str:
    return f"<{type(value).__name__}>"
