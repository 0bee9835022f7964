"""Values of Python types to JSON and back, and the JSON Schema of a type.

Beside plain JSON: dataclasses, named tuples, Pydantic models, enums, paths, dates, bytes (as base64), tuples and sets.
"""

import binascii
import collections.abc
import dataclasses
import datetime as dt
import enum
import types
import typing
from pathlib import Path
from typing import Any, cast

_BOUNDS = {
    "minimum": "minimum", "maximum": "maximum", "exclusive_minimum": "exclusiveMinimum",
    "exclusive_maximum": "exclusiveMaximum", "min_length": "minLength", "max_length": "maxLength",
    "minLength": "minLength", "maxLength": "maxLength", "pattern": "pattern", "enum": "enum",
    "min_items": "minItems", "max_items": "maxItems", "description": "description", "title": "title",
    "reload": "x-reload",
}  # fmt: skip
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", Path: "string"}
_TEXTS = {
    dt.datetime: {"type": "string", "format": "date-time"},
    dt.date: {"type": "string", "format": "date"},
    bytes: {"type": "string", "contentEncoding": "base64"},
}
_LISTS = (
    list,
    set,
    frozenset,
    collections.abc.Sequence,
    collections.abc.Iterable,
    collections.abc.Collection,
)
_TABLES = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def schema_of_type(hint: Any) -> dict[str, Any]:
    """The JSON Schema of a type. A type that is not known allows every value."""
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if hint in _TEXTS:
        return dict(_TEXTS[hint])
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return schema_of_type(arguments[0])
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        forms = [schema_of_type(form) for form in arguments]
        names = [form["type"] for form in forms if set(form) == {"type"} and isinstance(form["type"], str)]
        return {"type": names} if len(names) == len(forms) else {"anyOf": forms}
    if origin in _LISTS or hint in _LISTS:
        return {"type": "array", **({"items": schema_of_type(arguments[0])} if arguments else {})}
    if origin is tuple or hint is tuple or _is_named_tuple(hint):
        same = len(arguments) == 2 and arguments[1] is Ellipsis
        return {"type": "array", **({"items": schema_of_type(arguments[0])} if same else {})}
    if origin in _TABLES or hint in _TABLES:
        return {
            "type": "object",
            **({"additionalProperties": schema_of_type(arguments[1])} if arguments else {}),
        }
    if _is_kind(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return schema_of_dataclass(hint)
    return {"type": "object"} if _is_model(hint) else {}


def _is_model(hint: Any) -> bool:
    """Whether a type is a Pydantic model. It checks its own values."""
    return isinstance(hint, type) and hasattr(hint, "model_validate")


def schema_of_dataclass(cls: type) -> dict[str, Any]:
    """The JSON Schema of a dataclass, with the bounds in the metadata of its fields."""
    hints = typing.get_type_hints(cls)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        schema = schema_of_type(hints[field.name])
        schema.update({_BOUNDS[k]: v for k, v in field.metadata.items() if k in _BOUNDS})
        if field.default is not dataclasses.MISSING:
            schema["default"] = to_json_value(field.default)
        elif field.default_factory is not dataclasses.MISSING:
            schema["default"] = to_json_value(field.default_factory())
        else:
            required.append(field.name)
        properties[field.name] = schema
    object_schema: dict[str, Any] = {
        "type": "object", "title": cls.__name__, "properties": properties, "additionalProperties": False,
    }  # fmt: skip
    if required:
        object_schema["required"] = required
    return object_schema


_JSON_TYPES = frozenset({str, int, float, bool, type(None)})
"""Types that JSON has. Most values are of these, and a batch has very many."""


def plain_form(value: Any) -> Any:
    """`value` with its outermost part as JSON has it; a value that JSON does not have is returned as it is."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, tuple):
        return list(cast("tuple[Any, ...]", value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
    return cast("Any", value).model_dump(mode="json") if _is_model(type(value)) else value


def to_json_value(value: Any, schema: Any = None) -> Any:
    """`value` as JSON has it. Bytes become text only where `schema` says base64. What JSON does not have stays as it is."""
    if type(value) in _JSON_TYPES:
        return value
    rules: dict[str, Any] = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    if isinstance(value, bytes):
        forms = [rules, *rules.get("anyOf", ())]
        is_base64 = any(form.get("contentEncoding") == "base64" for form in forms)
        return binascii.b2a_base64(value, newline=False).decode() if is_base64 else value
    form = list(cast("set[Any]", value)) if isinstance(value, set | frozenset) else plain_form(value)
    if isinstance(form, dict):
        table = cast("dict[Any, Any]", form)
        fields: dict[str, Any] = rules.get("properties", {})
        further = rules.get("additionalProperties")
        return {key: to_json_value(item, fields.get(key, further)) for key, item in table.items()}
    if isinstance(form, list):
        return [to_json_value(item, rules.get("items")) for item in cast("list[Any]", form)]
    return form


def from_json_value(hint: Any, value: Any) -> Any:
    """The value of type `hint` for a JSON value. A type that is not known leaves the value as it is.

    Raises:
        ValueError: the type does not have that value.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return from_json_value(arguments[0], value)
    if origin in (typing.Union, types.UnionType):
        forms = [item for item in arguments if item is not type(None)]
        return value if value is None or len(forms) != 1 else from_json_value(forms[0], value)
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        if dataclasses.is_dataclass(hint):
            return dataclass_of(hint, table)
        if _is_model(hint):
            return hint.model_validate(table)
        return (
            {key: from_json_value(arguments[1], item) for key, item in table.items()}
            if len(arguments) == 2
            else table
        )
    if isinstance(value, list):
        return _list_of(origin or hint, arguments, cast("list[Any]", value))
    if _is_kind(hint, enum.Enum, Path):
        return hint(value)
    if hint in (dt.datetime, dt.date) and isinstance(value, str):
        return hint.fromisoformat(value)
    if hint is bytes and isinstance(value, str):
        return binascii.a2b_base64(value, strict_mode=True)
    if hint is bytes and hasattr(value, "path"):
        # The handle of a file that a worker wrote.
        return Path(value.path).read_bytes()
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def _list_of(container: Any, arguments: Any, items: list[Any]) -> Any:
    build: Any = container
    if container is tuple and arguments and arguments[-1] is not Ellipsis and len(arguments) == len(items):
        return tuple(from_json_value(hint, item) for hint, item in zip(arguments, items, strict=True))
    if _is_named_tuple(build):
        hints = typing.get_type_hints(build)
        fields: dict[str, Any] = dict(zip(build._fields, items, strict=True))
        return build(**{name: from_json_value(hints.get(name), item) for name, item in fields.items()})
    values: list[Any] = [from_json_value(arguments[0], item) for item in items] if arguments else items
    return build(values) if container in (set, frozenset, tuple) else values


def _is_named_tuple(container: Any) -> bool:
    return _is_kind(container, tuple) and hasattr(container, "_fields")


def _is_kind(hint: Any, *classes: type) -> bool:
    """Whether a hint is a class that inherits from one of these."""
    return isinstance(hint, type) and issubclass(cast("type[Any]", hint), classes)


def dataclass_of(cls: Any, values: dict[str, Any]) -> Any:
    """An instance of a dataclass with these fields; keys that it does not have are ignored."""
    hints = typing.get_type_hints(cls)
    names = {field.name for field in dataclasses.fields(cls) if field.init}
    return cls(
        **{name: from_json_value(hints[name], value) for name, value in values.items() if name in names}
    )


def has_own_form(hint: Any) -> bool:
    """Whether values of this type, or in it, are something else in JSON."""
    if typing.get_origin(hint) is typing.Literal:
        return False
    if _is_kind(hint, enum.Enum, Path, dt.date, bytes, tuple, set, frozenset):
        return True
    if dataclasses.is_dataclass(hint) or _is_model(hint):
        return True
    return typing.get_origin(hint) in (tuple, set, frozenset) or any(map(has_own_form, typing.get_args(hint)))
