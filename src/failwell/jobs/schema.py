"""Configurations against their JSON Schema: every bad field named at once, defaults filled in.

This is the part of JSON Schema that configurations need. A schema that uses more is refused rather
than half understood.
"""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from math import isfinite
from typing import Any, cast

from failwell.jobs.faults import mistaken
from failwell.jobs.manifest_keys import not_known
from failwell.jobs.schema_parts import Schema, is_type, only_form, referred
from failwell.jobs.schema_shape import Wrong, wrong_in_schema
from failwell.jobs.schema_unknown import unknown_keys, warn_of, without_unknown


def validate(schema: Schema, config: Mapping[str, Any], *, name: str, strict: bool = True) -> dict[str, Any]:
    """`config` with the schema's defaults.

    Args:
        schema: What is allowed; an empty one allows everything.
        config: What was given.
        name: Whose configuration it is, for the message.
        strict: Refuse keys that the schema does not know; else they are left out with a warning.

    Raises:
        CapabilityConfigError: something is not allowed. Every such field is named.
    """
    check_schema(schema, name=name)
    given, unknown = deepcopy(dict(config)), unknown_keys(schema, config)
    if not strict:
        given, unknown = without_unknown(schema, config)
    whole = _with_defaults(schema, given)
    found = list(_check(schema, whole, "", schema))
    if strict:
        named = {place for place, _ in found}
        found += [
            (key, not_known(key, schema.get("properties") or ())) for key in unknown if key not in named
        ]
    if found:
        raise mistaken(
            f"the configuration of {name!r} is not valid",
            [(place or "config", what) for place, what in found],
            config_class_name=str(schema.get("title") or ""),
        )
    if unknown:
        warn_of(name, unknown)
    return whole


def check_schema(schema: Schema, *, name: str) -> None:
    """Refuse a schema with mistakes, or one that uses more of the language than is understood here.

    Raises:
        CapabilityConfigError: it is one; every mistake is named.
    """
    wrong = wrong_in_schema(schema, "config")
    if wrong:
        raise mistaken(
            f"the configuration schema of {name!r} is not valid",
            wrong,
            config_class_name=str(schema.get("title") or ""),
        )


def config_hash(config: Mapping[str, Any]) -> str:
    """The same for the same configuration, whatever order its keys are in."""
    from hashlib import sha256
    from json import dumps

    canonical = dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return f"sha256:{sha256(canonical.encode()).hexdigest()}"


def _with_defaults(schema: Schema, given: dict[str, Any]) -> dict[str, Any]:
    for key, below in cast("Mapping[str, Schema]", schema.get("properties") or {}).items():
        if key not in given and "default" in below:
            given[key] = deepcopy(below["default"])
        elif isinstance(given.get(key), dict) and "properties" in below:
            given[key] = _with_defaults(below, given[key])
    return given


def _check(schema: Any, value: Any, place: str, root: Schema) -> Iterator[Wrong]:
    if schema is False:
        yield place, "is not known"
        return
    if schema is True or not isinstance(schema, Mapping):
        return
    held = cast("Mapping[str, Any]", schema)
    if "$ref" in held:
        yield from _check(referred(str(held["$ref"]), root), value, place, root)
    if "type" in held and not is_type(held["type"], value):
        yield place, f"must be {_types(held['type'])}, not {_shown(value)}"
        return
    if "enum" in held and not any(_same(value, one) for one in held["enum"]):
        yield place, f"must be one of {', '.join(map(_shown, held['enum']))}, not {_shown(value)}"
    if "const" in held and not _same(value, held["const"]):
        yield place, f"must be {_shown(held['const'])}, not {_shown(value)}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number(held, value, place)
    elif isinstance(value, str):
        yield from _string(held, value, place)
    elif isinstance(value, list | tuple):
        yield from _array(held, list(cast("list[Any]", value)), place, root)
    elif isinstance(value, dict):
        yield from _object(held, cast("dict[str, Any]", value), place, root)
    yield from _combined(held, value, place, root)


def _number(held: Mapping[str, Any], value: float, place: str) -> Iterator[Wrong]:
    if not isfinite(value):
        yield place, "must be a finite number"
        return
    if "minimum" in held and value < held["minimum"]:
        yield place, f"must be at least {held['minimum']}, not {value}"
    if "maximum" in held and value > held["maximum"]:
        yield place, f"must be at most {held['maximum']}, not {value}"
    if "exclusiveMinimum" in held and value <= held["exclusiveMinimum"]:
        yield place, f"must be more than {held['exclusiveMinimum']}, not {value}"
    if "exclusiveMaximum" in held and value >= held["exclusiveMaximum"]:
        yield place, f"must be less than {held['exclusiveMaximum']}, not {value}"
    if "multipleOf" in held and value % held["multipleOf"]:
        yield place, f"must be a multiple of {held['multipleOf']}, not {value}"


def _string(held: Mapping[str, Any], value: str, place: str) -> Iterator[Wrong]:
    if len(value) < held.get("minLength", 0):
        yield place, f"must have at least {held['minLength']} characters"
    if "maxLength" in held and len(value) > held["maxLength"]:
        yield place, f"must have at most {held['maxLength']} characters"
    if "pattern" in held and re.search(held["pattern"], value) is None:
        yield place, f"must match `{held['pattern']}`"


def _array(held: Mapping[str, Any], value: list[Any], place: str, root: Schema) -> Iterator[Wrong]:
    if len(value) < held.get("minItems", 0):
        yield place, f"must have at least {held['minItems']} items"
    if "maxItems" in held and len(value) > held["maxItems"]:
        yield place, f"must have at most {held['maxItems']} items"
    if held.get("uniqueItems") and any(_same(a, b) for i, a in enumerate(value) for b in value[:i]):
        yield place, "must not hold the same item twice"
    if "items" in held:
        for index, item in enumerate(value):
            yield from _check(held["items"], item, f"{place}[{index}]", root)


def _object(held: Mapping[str, Any], value: dict[str, Any], place: str, root: Schema) -> Iterator[Wrong]:
    dot = f"{place}." if place else ""
    known = cast("Mapping[str, Any]", held.get("properties") or {})
    for key in held.get("required", ()):
        if key not in value:
            yield f"{dot}{key}", "is missing"
    for key, one in value.items():
        if key in known:
            yield from _check(known[key], one, f"{dot}{key}", root)
        elif "additionalProperties" in held:
            yield from _check(held["additionalProperties"], one, f"{dot}{key}", root)


def _combined(held: Mapping[str, Any], value: Any, place: str, root: Schema) -> Iterator[Wrong]:
    for below in held.get("allOf", ()):
        yield from _check(below, value, place, root)
    for word in ("anyOf", "oneOf"):
        if word not in held:
            continue
        fits = sum(1 for below in held[word] if not list(_check(below, value, place, root)))
        meant = only_form(held[word], value, root) if fits == 0 else None
        if meant is not None:
            yield from _check(meant, value, place, root)
        elif fits == 0 or (word == "oneOf" and fits > 1):
            yield (
                place,
                f"fits {'none' if fits == 0 else 'more than one'} of its allowed forms: {_shown(value)}",
            )


def _same(one: Any, other: Any) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _types(wanted: Any) -> str:
    names = cast("list[str]", wanted) if isinstance(wanted, list) else [str(wanted)]
    return " or ".join(
        f"{'an' if name[0] in 'aeiou' else 'a'} {name}" if name != "null" else name for name in names
    )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
