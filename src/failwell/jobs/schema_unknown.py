"""Keys that a schema does not know: found at every depth, left out where that is wanted, and never in silence."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple, cast

from failwell.jobs.schema_parts import Schema, only_form, referred


class UnknownConfigWarning(UserWarning):
    """A configuration had keys that its schema does not know, and they were left out."""


class _Place(NamedTuple):
    path: str
    holder: dict[str, Any]
    key: str


def unknown_keys(schema: Schema, config: Mapping[str, Any]) -> list[str]:
    """Where `config` has keys that the schema does not know, such as `beem` or `audio.chanels`.

    A table with properties knows these alone unless `additionalProperties` says otherwise; one without
    knows every key.
    """
    return sorted({one.path for one in _unknown(schema, dict(config), "", schema)})


def without_unknown(schema: Schema, config: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """`config` without the keys that the schema does not know, and where they were. It is not changed itself."""
    kept = deepcopy(dict(config))
    found = list(_unknown(schema, kept, "", schema))
    for one in found:
        one.holder.pop(one.key, None)
    return kept, sorted({one.path for one in found})


def left_out(name: str, keys: Sequence[str]) -> str:
    """What is told of keys that were left out, and what to do about them."""
    return (
        f"left out of the configuration of {name!r}, because it is not known: {', '.join(f'`{key}`' for key in keys)};"
        f" correct that where it is set, `failwell capability config {name}` shows what is kept"
    )


def warn_of(name: str, keys: Sequence[str]) -> None:
    """Warn whoever gave the configuration, at the nearest line that is not ours."""
    warnings.warn(left_out(name, keys), UnknownConfigWarning, stacklevel=_lines_up())


def _lines_up() -> int:
    """How far up the nearest frame is that belongs neither to this package nor to the event loop."""
    from inspect import currentframe

    ours = (__name__.partition(".")[0], "asyncio")
    frame, level = currentframe(), 0
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in ours:
            return level
        frame, level = frame.f_back, level + 1
    return 1


def _unknown(schema: Any, value: Any, place: str, root: Schema) -> Iterator[_Place]:
    if not isinstance(schema, Mapping):
        return
    held = cast("Schema", schema)
    if "$ref" in held:
        yield from _unknown(referred(str(held["$ref"]), root), value, place, root)
    for word in ("anyOf", "oneOf"):
        if word in held:
            yield from _unknown(only_form(held[word], value, root), value, place, root)
    if isinstance(value, list) and "items" in held:
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _unknown(held["items"], item, f"{place}[{index}]", root)
    elif isinstance(value, dict):
        yield from _in_table(held, cast("dict[str, Any]", value), f"{place}." if place else "", root)


def _in_table(held: Schema, value: dict[str, Any], dot: str, root: Schema) -> Iterator[_Place]:
    known = cast("Schema", held.get("properties") or {})
    # What stands beside may know more keys, so only a table by itself is closed without saying so.
    is_alone = not any(word in held for word in ("$ref", "allOf", "anyOf", "oneOf"))
    others = held.get("additionalProperties", not (known and is_alone))
    for key, one in value.items():
        if key in known:
            yield from _unknown(known[key], one, f"{dot}{key}", root)
        elif others is False:
            yield _Place(f"{dot}{key}", value, key)
        else:
            yield from _unknown(others, one, f"{dot}{key}", root)
