"""pydantic's validation errors: which fields and which rules, never the values.

A `ValidationError` prints the input it refused, and that is often a model's whole answer.
"""

from itertools import islice
from typing import Any, cast

from failwell.adapters.ask import ask
from failwell.adapters.reading import Reading
from failwell.adapters.registry import Table

_MOST = 20


def _read(error: BaseException) -> Reading:
    fields = _fields(error)
    named = ", ".join(f"`{where}` ({why})" for where, why in fields[:5])
    more = "" if len(fields) <= 5 else f" and {len(fields) - 5} more"
    return Reading(
        kind="validation.shape_invalid",
        rule="pydantic.ValidationError",
        saw="ValidationError",
        message=f"The data does not fit its model: {named}{more}." if fields else None,
        fields_invalid=tuple(where for where, _ in fields) or None,
        details={"fields": dict(fields)} if fields else {},
    )


def _fields(error: BaseException) -> list[tuple[str, str]]:
    listed = ask(error, "errors")
    if not callable(listed):
        return []
    try:
        rows = listed(include_url=False, include_context=False, include_input=False)
    except TypeError:
        rows = listed()
    return [pair for row in islice(cast("list[Any]", rows), _MOST) if (pair := _pair(row)) is not None]


def _pair(row: Any) -> tuple[str, str] | None:
    if not isinstance(row, dict):
        return None
    known = cast("dict[str, Any]", row)
    where = ".".join(str(part)[:60] for part in islice(known.get("loc", ()), _MOST)) or "(whole)"
    return where, str(known.get("type", "invalid"))[:60]


TABLES: dict[str, Table] = {
    "pydantic_core": {
        "ValidationError": _read,
        "SchemaError": Reading(kind="internal.bug", rule="pydantic.SchemaError", saw="SchemaError"),
    },
    "pydantic": {
        "ValidationError": _read,
        "PydanticUserError": Reading(
            kind="internal.bug", rule="pydantic.PydanticUserError", saw="PydanticUserError"
        ),
    },
}
