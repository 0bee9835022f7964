"""The configuration dataclass of a capability: its JSON Schema, and its instances from JSON."""

import dataclasses
import enum
import types
import typing
from pathlib import Path
from typing import Any, cast

from .failure_report import attempt

_BOUNDS = {
    "minimum": "minimum", "maximum": "maximum", "exclusive_minimum": "exclusiveMinimum",
    "exclusive_maximum": "exclusiveMaximum", "min_length": "minLength", "max_length": "maxLength",
    "minLength": "minLength", "maxLength": "maxLength", "pattern": "pattern", "enum": "enum",
    "min_items": "minItems", "max_items": "maxItems", "description": "description", "title": "title",
    "reload": "x-reload",
}  # fmt: skip
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", Path: "string"}


def config_class(capability: object) -> type | None:
    """The dataclass of the capability's configuration, if it has one."""
    cls = getattr(capability, "Config", None) or getattr(capability, "config_class", None)
    if isinstance(cls, type) and dataclasses.is_dataclass(cls):
        return cls
    initialize = getattr(capability, "initialize", None)
    if initialize is None:
        return None
    # A hint that cannot be resolved is ignored.
    hints = attempt(lambda: typing.get_type_hints(initialize), dict[str, Any]())
    hints.pop("return", None)
    return next(
        (hint for hint in hints.values() if isinstance(hint, type) and dataclasses.is_dataclass(hint)), None
    )


def schema_of(capability: object) -> dict[str, Any] | None:
    """The JSON Schema of the configuration: `config_schema`, or that of the dataclass; `None` without either."""
    schema = getattr(capability, "config_schema", None)
    if callable(schema):
        schema = schema()
    if isinstance(schema, dict):
        return cast("dict[str, Any]", schema)
    cls = config_class(capability)
    return None if cls is None else _object(cls)


def build_config(capability: object, config: dict[str, Any]) -> Any:
    """`config` as an instance of the dataclass, or as it is if there is none."""
    cls = config_class(capability)
    return config if cls is None else _build(cls, config)


def triggers(schema: dict[str, Any] | None, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """The `x-reload` names of changed fields: what has to be released. Each once, in order."""
    fields: dict[str, Any] = (schema or {}).get("properties") or {}
    missing = object()
    changed = [name for name in {**old, **new} if old.get(name, missing) != new.get(name, missing)]
    names = [fields[name]["x-reload"] for name in changed if "x-reload" in fields.get(name, {})]
    return list(dict.fromkeys(names))


def _object(cls: type) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        schema = _type(hints[field.name])
        schema.update({_BOUNDS[k]: v for k, v in field.metadata.items() if k in _BOUNDS})
        if field.default is not dataclasses.MISSING:
            schema["default"] = _dumped(field.default)
        elif field.default_factory is not dataclasses.MISSING:
            schema["default"] = _dumped(field.default_factory())
        else:
            required.append(field.name)
        properties[field.name] = schema
    object_schema: dict[str, Any] = {
        "type": "object", "title": cls.__name__, "properties": properties, "additionalProperties": False,
    }  # fmt: skip
    if required:
        object_schema["required"] = required
    return object_schema


def _type(hint: Any) -> dict[str, Any]:
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _type(arguments[0])
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        forms = [_type(form) for form in arguments]
        names = [form["type"] for form in forms if set(form) == {"type"} and isinstance(form["type"], str)]
        return {"type": names} if len(names) == len(forms) else {"anyOf": forms}
    if origin in (list, set, frozenset) or hint in (list, set, frozenset):
        return {"type": "array", **({"items": _type(arguments[0])} if arguments else {})}
    if origin is tuple or hint is tuple:
        same = len(arguments) == 2 and arguments[1] is Ellipsis
        return {"type": "array", **({"items": _type(arguments[0])} if same else {})}
    if origin is dict or hint is dict:
        return {"type": "object", **({"additionalProperties": _type(arguments[1])} if arguments else {})}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _object(hint)
    return {}


def _dumped(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _dumped(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [_dumped(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _dumped(item) for key, item in cast("dict[str, Any]", value).items()}
    return value


def _build(cls: Any, config: dict[str, Any]) -> Any:
    hints = typing.get_type_hints(cls)
    names = {field.name for field in dataclasses.fields(cls) if field.init}
    return cls(**{name: _loaded(hints[name], value) for name, value in config.items() if name in names})


def _loaded(hint: Any, value: Any) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _loaded(arguments[0], value)
    if origin in (typing.Union, types.UnionType):
        forms = [item for item in arguments if item is not type(None)]
        return value if value is None or len(forms) != 1 else _loaded(forms[0], value)
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        if dataclasses.is_dataclass(hint):
            return _build(hint, table)
        return (
            {key: _loaded(arguments[1], item) for key, item in table.items()}
            if len(arguments) == 2
            else table
        )
    if isinstance(value, list):
        items = cast("list[Any]", value)
        loaded = [_loaded(arguments[0], item) for item in items] if arguments else items
        return (origin or hint)(loaded) if (origin or hint) in (set, frozenset, tuple) else loaded
    if isinstance(hint, type) and issubclass(hint, enum.Enum | Path):
        return hint(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value
