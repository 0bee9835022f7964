"""Whether a schema itself is one: words that are known, each with a value that it can have."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from failwell.jobs.manifest_keys import not_known, not_one_of
from failwell.jobs.schema_parts import TYPES, referred

NOTES = frozenset(
    {
        "$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly",
        "writeOnly", "format",
    }
)  # fmt: skip
"""Words that check nothing."""
Wrong = tuple[str, str]
"""A place, and what is wrong there."""


def wrong_in_schema(schema: Any, place: str) -> list[Wrong]:
    """Every mistake in a schema that stands at `place`. A schema that says more than is understood is one, too."""
    return list(_schema(schema, place, schema))


def _schema(schema: Any, place: str, root: Any) -> Iterator[Wrong]:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        yield place, f"must be a schema, not {schema!r}"
        return
    for key, value in cast("Mapping[str, Any]", schema).items():
        at = f"{place}.{key}"
        if key in _BELOW:
            yield from _BELOW[key](value, at, root)
        elif key in _SHAPES:
            form, fits = _SHAPES[key]
            if not fits(value):
                yield at, f"must be {form}, not {value!r}"
        elif key == "type":
            yield from _types(value, at)
        elif key == "$ref":
            yield from _reference(value, at, root)
        elif key not in NOTES and not key.startswith("x-"):
            yield at, not_known(key, CHECKS, "is not supported")


def _named(value: Any, place: str, root: Any) -> Iterator[Wrong]:
    if not isinstance(value, Mapping):
        yield place, f"must be a table of schemas, not {value!r}"
        return
    for name, below in cast("Mapping[str, Any]", value).items():
        yield from _schema(below, f"{place}.{name}", root)


def _several(value: Any, place: str, root: Any) -> Iterator[Wrong]:
    if not isinstance(value, list) or not value:
        yield place, f"must be a list of schemas, not {value!r}"
        return
    for index, below in enumerate(cast("list[Any]", value)):
        yield from _schema(below, f"{place}[{index}]", root)


def _types(value: Any, place: str) -> Iterator[Wrong]:
    several: list[Any] = cast("list[Any]", value) if isinstance(value, list) and value else [value]
    for one in several:
        if not isinstance(one, str) or one not in TYPES:
            yield place, not_one_of(one, TYPES)


def _reference(value: Any, place: str, root: Any) -> Iterator[Wrong]:
    if not isinstance(value, str) or not value.startswith("#/"):
        yield place, f"must lead to a place in the same schema, such as `#/$defs/NAME`, not {value!r}"
    elif referred(value, root) is True:
        yield place, f"leads nowhere: {value!r}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in cast("list[Any]", value))


def _is_pattern(value: Any) -> bool:
    try:
        re.compile(value)
    except (re.error, TypeError):
        return False
    return True


_BELOW: dict[str, Callable[[Any, str, Any], Iterator[Wrong]]] = {
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
"""Words that check something."""
