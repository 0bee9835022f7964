"""The configuration dataclass of a capability: its JSON Schema, and its instances from JSON."""

import dataclasses
import typing
from typing import Any, cast

from .failure_report import attempt
from .types.conversion import dataclass_of, schema_of_dataclass


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
    return None if cls is None else schema_of_dataclass(cls)


def build_config(capability: object, config: dict[str, Any]) -> Any:
    """`config` as an instance of the dataclass, or as it is if there is none."""
    cls = config_class(capability)
    return config if cls is None else dataclass_of(cls, config)


def triggers(schema: dict[str, Any] | None, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """The `x-reload` names of changed fields: what has to be released. Each once, in order."""
    fields: dict[str, Any] = (schema or {}).get("properties") or {}
    missing = object()
    changed = [name for name in {**old, **new} if old.get(name, missing) != new.get(name, missing)]
    names = [fields[name]["x-reload"] for name in changed if "x-reload" in fields.get(name, {})]
    return list(dict.fromkeys(names))
