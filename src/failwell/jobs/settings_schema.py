"""The supported part of JSON Schema: mistakes in a schema, and keys of a configuration that it does not know.

Values are checked by jsonschema-rs, see `failwell.jobs.settings`. A schema with other keywords is refused,
because its unknown keys could not be determined.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple, cast

from failwell.files.suggestions import not_one_of, unknown_word

Schema = Mapping[str, Any]
Steps = tuple[str | int, ...]
"""A place in a schema or a configuration."""
Mistake = tuple[Steps, str]
"""A place and a message."""

TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list, tuple),
    "object": (dict,),
}
NOTES = frozenset(
    {
        "$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly",
        "writeOnly", "format", "contentEncoding",
    }
)  # fmt: skip
"""Keywords that check nothing."""


def path_text(steps: Steps) -> str:
    """A place in a capability's settings as text, such as `audio.channels[0]`."""
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def schema_mistakes(schema: Any) -> list[Mistake]:
    """Every mistake in the schema of a capability's settings, unsupported keywords included."""
    return list(_schema(schema, (), schema))


def _schema(schema: Any, place: Steps, root: Any) -> Iterator[Mistake]:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        yield place, f"must be a schema, not {schema!r}"
        return
    for key, value in cast("Mapping[str, Any]", schema).items():
        inner_place = (*place, key)
        if key in _BELOW:
            yield from _BELOW[key](value, inner_place, root)
        elif key in _SHAPES:
            form, fits = _SHAPES[key]
            if not fits(value):
                yield inner_place, f"must be {form}, not {value!r}"
        elif key == "type":
            yield from _types(value, inner_place)
        elif key == "$ref":
            yield from _reference(value, inner_place, root)
        elif key not in NOTES and not key.startswith("x-"):
            yield inner_place, unknown_word(key, CHECKS, "is not supported")


def _named(value: Any, place: Steps, root: Any) -> Iterator[Mistake]:
    if not isinstance(value, Mapping):
        yield place, f"must be a table of schemas, not {value!r}"
        return
    for name, below in cast("Mapping[str, Any]", value).items():
        yield from _schema(below, (*place, name), root)


def _several(value: Any, place: Steps, root: Any) -> Iterator[Mistake]:
    if not isinstance(value, list) or not value:
        yield place, f"must be a list of schemas, not {value!r}"
        return
    for index, below in enumerate(cast("list[Any]", value)):
        yield from _schema(below, (*place, index), root)


def _types(value: Any, place: Steps) -> Iterator[Mistake]:
    names: list[Any] = cast("list[Any]", value) if isinstance(value, list) and value else [value]
    for name in names:
        if not isinstance(name, str) or name not in TYPES:
            yield place, not_one_of(name, TYPES)


def _reference(value: Any, place: Steps, root: Any) -> Iterator[Mistake]:
    if not isinstance(value, str) or not value.startswith("#/"):
        yield place, f"must lead to a place in the same schema, such as `#/$defs/NAME`, not {value!r}"
    elif referred(value, root) is True:
        yield place, f"leads nowhere: {value!r}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in cast("list[Any]", value))


def _is_pattern(value: Any) -> bool:
    from jsonschema_rs import Draft202012Validator, ValidationError

    try:
        Draft202012Validator({"pattern": value})
    except ValidationError:
        return False
    return True


_BELOW: dict[str, Callable[[Any, Steps, Any], Iterator[Mistake]]] = {
    **dict.fromkeys(("properties", "$defs", "definitions"), _named),
    **dict.fromkeys(("anyOf", "oneOf", "allOf"), _several),
    **dict.fromkeys(("items", "additionalProperties"), _schema),
}
_SHAPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "enum": ("a list of values", lambda value: isinstance(value, list) and bool(cast("list[Any]", value))),
    "const": ("a value", lambda _value: True),
    "required": ("a list of names", _is_list_of_texts),
    "pattern": ("a regular expression", _is_pattern),
    "uniqueItems": ("true or false", lambda value: isinstance(value, bool)),
    "multipleOf": ("a number above 0", lambda value: _is_number(value) and value > 0),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), ("a number", _is_number)),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), ("a whole number from 0", _is_count)),
}
CHECKS = (*_SHAPES, *_BELOW, "type", "$ref")
"""Keywords that check values."""


# ---------------------------------------------------------------- parts of a schema


def referred(pointer: str, root: Schema) -> Any:
    """The schema that a `$ref` refers to; `True`, which allows everything, if there is none."""
    target: Any = root
    for step in pointer.removeprefix("#/").split("/"):
        if not isinstance(target, Mapping):
            return True
        target = cast("Schema", target).get(step.replace("~1", "/").replace("~0", "~"), True)
    return target


def is_type(types: Any, value: Any) -> bool:
    """Whether `value` has the type, or one of the types, that the schema of a capability's settings names."""
    names = cast("list[str]", types) if isinstance(types, list) else [str(types)]
    for name in names:
        if isinstance(value, bool):
            if name == "boolean":
                return True
        elif isinstance(value, TYPES.get(name, ())) or (
            name == "integer" and isinstance(value, float) and value.is_integer()
        ):
            return True
    return False


def only_form(forms: Any, value: Any, root: Schema) -> Any:
    """The only form with the value's type, such as the object of "an object or null"; else `None`."""
    fitting: list[Any] = []
    for form in cast("list[Any]", forms):
        schema: Any = form
        if isinstance(form, Mapping) and "$ref" in form:
            schema = referred(str(cast("Schema", form)["$ref"]), root)
        types = cast("Schema", schema).get("type") if isinstance(schema, Mapping) else None
        if types is None or is_type(types, value):
            fitting.append(form)
    return fitting[0] if len(fitting) == 1 else None


# ---------------------------------------------------------------- unknown keys


class UnknownConfigWarning(UserWarning):
    """Unknown keys were dropped from a configuration."""


class _Place(NamedTuple):
    path: str
    holder: dict[str, Any]
    key: str


def unknown_keys(schema: Schema, config: Mapping[str, Any]) -> list[str]:
    """The places of unknown keys in `config`, such as `beem` or `audio.chanels`.

    A table with `properties` knows only these unless `additionalProperties` allows more. A table without
    `properties` knows every key.
    """
    return sorted({place.path for place in _unknown(schema, dict(config), "", schema)})


def without_unknown(schema: Schema, config: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A copy of `config` without unknown keys, and their places."""
    values = deepcopy(dict(config))
    places = list(_unknown(schema, values, "", schema))
    for place in places:
        place.holder.pop(place.key, None)
    return values, sorted({place.path for place in places})


def dropped_keys_text(name: str, keys: Sequence[str]) -> str:
    """The warning for dropped keys."""
    return (
        f"dropped from the configuration of {name!r}, because it is not known: {', '.join(f'`{key}`' for key in keys)};"
        f" `failwell capabilities config {name}` shows the stored settings"
    )


def warn_about(name: str, keys: Sequence[str]) -> None:
    """Warn about dropped keys, at the line of the caller outside of this package."""
    warnings.warn(dropped_keys_text(name, keys), UnknownConfigWarning, stacklevel=_lines_up())


def _lines_up() -> int:
    """The stack level of the nearest frame outside of this package and asyncio."""
    from inspect import currentframe

    packages = (__name__.partition(".")[0], "asyncio")
    frame, level = currentframe(), 0
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in packages:
            return level
        frame, level = frame.f_back, level + 1
    return 1


def _unknown(schema: Any, value: Any, place: str, root: Schema) -> Iterator[_Place]:
    if not isinstance(schema, Mapping):
        return
    rules = cast("Schema", schema)
    if "$ref" in rules:
        yield from _unknown(referred(str(rules["$ref"]), root), value, place, root)
    for word in ("anyOf", "oneOf"):
        if word in rules:
            yield from _unknown(only_form(rules[word], value, root), value, place, root)
    if isinstance(value, list) and "items" in rules:
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _unknown(rules["items"], item, f"{place}[{index}]", root)
    elif isinstance(value, dict):
        yield from _in_table(rules, cast("dict[str, Any]", value), f"{place}." if place else "", root)


def _in_table(rules: Schema, value: dict[str, Any], dot: str, root: Schema) -> Iterator[_Place]:
    properties = cast("Schema", rules.get("properties") or {})
    # A schema beside it may allow more keys, so only a table by itself is closed by default.
    is_alone = not any(word in rules for word in ("$ref", "allOf", "anyOf", "oneOf"))
    further = rules.get("additionalProperties", not (properties and is_alone))
    for key, inner in value.items():
        if key in properties:
            yield from _unknown(properties[key], inner, f"{dot}{key}", root)
        elif further is False:
            yield _Place(f"{dot}{key}", value, key)
        else:
            yield from _unknown(further, inner, f"{dot}{key}", root)
