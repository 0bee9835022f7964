"""JSON Schema violations: the path and the keyword, never the instance."""

from collections.abc import Iterable
from itertools import islice
from typing import Any, cast

from failwell.adapters.reading import Reading
from failwell.adapters.registry import Table
from failwell.adapters.safe_getattr import safe_getattr, str_attr


def _read(error: BaseException) -> Reading:
    path = _path(safe_getattr(error, "absolute_path", "instance_path", "path"))
    rule = str_attr(error, "validator") or _keyword(safe_getattr(error, "kind"))
    broken = f" breaks `{rule}`" if rule else " is not valid"
    return Reading.from_rule(
        kind="validation.shape_invalid",
        rule="jsonschema.ValidationError",
        saw="ValidationError",
        message=f"The data does not fit its schema: `{path}`{broken}.",
        fields_invalid=(path,),
        details={"fields": {path: rule or "invalid"}},
    )


def _path(parts: Any) -> str:
    if not isinstance(parts, Iterable) or isinstance(parts, str):
        return "(whole)"
    return ".".join(str(part)[:60] for part in islice(cast("Iterable[Any]", parts), 20)) or "(whole)"


def _keyword(kind: Any) -> str | None:
    # jsonschema-rs names the keyword by a class such as `ValidationErrorKind_MinItems`.
    name = type(kind).__name__ if kind is not None else ""
    return name.partition("_")[2] or None


def _is(kind: str, *names: str) -> Table:
    return {name: Reading.from_rule(kind=kind, rule=f"jsonschema.{name}", saw=name) for name in names}


TABLES: dict[str, Table] = {
    "jsonschema": {
        "ValidationError": _read,
        # A value that was checked against a format alone; it has no path.
        **_is("validation.shape_invalid", "FormatError"),
        # A schema that is none, or that names a type which its checker was not taught.
        **_is("validation.config_invalid", "SchemaError", "UnknownType", "UndefinedTypeCheck"),
    },
    "jsonschema_rs": {
        "ValidationError": _read,
        # A schema that refers to another which is not there.
        **_is("validation.config_invalid", "ReferencingError"),
    },
}
