"""The `output` block of a step → one JSON Schema."""

import re
from collections.abc import Mapping
from typing import Any

from failwell.files.item_tree import Item, Path
from failwell.files.mistakes import MistakeLog
from failwell.files.shapes import Converted, Key, ListOf, MapOf, Ref, Shape
from failwell.files.value_types import INVALID, AnyJson, Choice, Flag, Number, Text, type_name
from failwell.workflows.run_inputs import has_type

TYPES = ("string", "number", "integer", "boolean", "array", "object")
_ONLY = {
    "pattern": ("string",), "minLength": ("string",), "maxLength": ("string",),
    "minimum": ("number", "integer"), "maximum": ("number", "integer"),
    "items": ("array",), "properties": ("object",), "enum": ("string", "number", "integer", "boolean"),
}  # fmt: skip
"""Key → the types that it belongs to."""


def _pattern(value: str, item: Item, path: Path, log: MistakeLog) -> Any:
    try:
        re.compile(value)
    except (re.error, RecursionError, OverflowError) as error:
        log.add_at(
            item,
            path,
            "`pattern` is not a regular expression",
            hint="" if item.from_env else str(error)[:100],
        )
        return INVALID
    return value


def _field(values: dict[str, Any], item: Item, path: Path, log: MistakeLog) -> Any:
    kind = values["type"]
    for key, kinds in _ONLY.items():
        if key in values and kind not in kinds:
            log.add(
                f"`{key}` belongs to a field of type {' or '.join(kinds)}, not {kind}",
                item.key_place(key),
                (path, key),
                hint="remove it, or change the `type`",
            )
    for low, high in (("minimum", "maximum"), ("minLength", "maxLength")):
        if low in values and high in values and values[low] > values[high]:
            log.add(f"`{low}` is larger than `{high}`", item.key_place(low), (path, low), hint="swap them")
    _enum(values, kind, item, path, log)
    return values


def _enum(values: dict[str, Any], kind: str, item: Item, path: Path, log: MistakeLog) -> None:
    for index, value in enumerate(values.get("enum", ())):
        if not has_type(value, kind):
            log.add_at(
                item.value["enum"].value[index],
                ((path, "enum"), index),
                f"`enum` must hold values of type {kind}, not {type_name(value)}",
                hint="use `nullable: true` to allow null" if value is None else "",
            )


_INNER = Ref("output_field", lambda: FIELD)
FIELD = Shape(
    "an output field",
    {
        "type": Key(Choice(*TYPES), "string, number, integer, boolean, array or object", required=True),
        "description": Key(Text(allow_empty=True), "what the field holds"),
        "items": Key(_INNER, "the entries of an array"),
        "properties": Key(MapOf(_INNER), "the fields of an object"),
        "enum": Key(ListOf(AnyJson(), min_items=1), "the values that are allowed"),
        "pattern": Key(Converted(Text(), _pattern), "a regular expression that must be found in the text"),
        "minimum": Key(Number(), "the smallest number"),
        "maximum": Key(Number(), "the largest number"),
        "minLength": Key(Number(0, integer=True), "the fewest characters"),
        "maxLength": Key(Number(0, integer=True), "the most characters"),
        "required": Key(Flag(), "false only for a field inside an object"),
        "nullable": Key(Flag(), "whether null is allowed, too"),
    },
    make=_field,
)


def _as_schema(field: Mapping[str, Any]) -> dict[str, Any]:
    kind = field["type"]
    null = field.get("nullable", False)
    schema: dict[str, Any] = {"type": [kind, "null"] if null else kind}
    schema |= {
        key: field[key]
        for key in ("description", "pattern", "minimum", "maximum", "minLength", "maxLength")
        if key in field
    }
    if "enum" in field:
        schema["enum"] = [*field["enum"], *([None] if null else [])]
    if "items" in field:
        schema["items"] = _as_schema(field["items"])
    if "properties" in field:
        schema |= object_schema(field["properties"])
        schema["type"] = [kind, "null"] if null else kind
    return schema


def object_schema(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an object with these fields; others are allowed."""
    return {
        "type": "object",
        "properties": {name: _as_schema(field) for name, field in fields.items()},
        "required": [name for name, field in fields.items() if field.get("required", True)],
    }


def _output(fields: dict[str, Any], item: Item, path: Path, log: MistakeLog) -> Any:
    for name, field in fields.items():
        if field.get("required") is False:
            log.add_at(
                item.value[name].value["required"],
                ((path, name), "required"),
                "a field at the top of `output` cannot be optional",
                hint="remove `required: false`, or use `nullable: true`; only fields inside objects can be optional",
            )
    return object_schema(fields)


OUTPUT = Converted(MapOf(_INNER), _output)


def _exact(fields: dict[str, Any], _item: Item, _at: Path, _on: MistakeLog) -> Any:
    return object_schema(fields) | {"additionalProperties": False}


PAYLOAD = Converted(MapOf(_INNER), _exact)
"""The payload of a notification: exactly these fields."""
