"""JSON Schema violations: the path and the keyword, never the instance."""

from collections.abc import Iterable
from itertools import islice
from typing import Any, cast

from failwell.adapters.classification import Classification
from failwell.adapters.registry import Table
from failwell.adapters.vendor_tables import rows
from failwell.errors.field_paths import declared_names, field_details, field_path, whole_path
from failwell.errors.foreign_objects import safe_getattr, str_attr


def _read(error: BaseException) -> Classification:
    parts = _parts(safe_getattr(error, "absolute_path", "instance_path", "path"))
    path = field_path(parts, _declared(error))
    rule = str_attr(error, "validator") or _keyword(safe_getattr(error, "kind"))
    broken = f" breaks `{rule}`" if rule else " is not valid"
    return Classification.from_rule(
        kind="validation.shape_invalid",
        rule="jsonschema.ValidationError",
        saw="ValidationError",
        message=f"The data does not fit its schema: `{path}`{broken}.",
        fields_invalid=(path,),
        details=field_details([(path, whole_path(parts), rule or "invalid")]),
    )


def _parts(path: Any) -> list[object]:
    if not isinstance(path, Iterable) or isinstance(path, str):
        return []
    return list(islice(cast("Iterable[object]", path), 100))


def _declared(error: BaseException) -> set[str] | None:
    """The names of fields on the way through the schema, if the error knows the way."""
    way = _parts(safe_getattr(error, "absolute_schema_path", "evaluation_path"))
    return declared_names(way) if way else None


def _keyword(kind: Any) -> str | None:
    # jsonschema-rs names the keyword by a class such as `ValidationErrorKind_MinItems`.
    name = type(kind).__name__ if kind is not None else ""
    return name.partition("_")[2] or None


TABLES: dict[str, Table] = {
    "jsonschema": {
        "ValidationError": _read,
        # A value that was checked against a format alone; it has no path.
        **rows("jsonschema", {"validation.shape_invalid": "FormatError"}),
        # A schema that is none, or that names a type which its checker was not taught.
        **rows("jsonschema", {"validation.config_invalid": "SchemaError UnknownType UndefinedTypeCheck"}),
    },
    "jsonschema_rs": {
        "ValidationError": _read,
        # A schema that refers to another which is not there.
        **rows("jsonschema", {"validation.config_invalid": "ReferencingError"}),
    },
}
