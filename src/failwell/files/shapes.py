"""Values that hold others: lists, mappings, alternatives, and closed mappings with known keys.

A value with a mistake in it is a `Wrong` that keeps the part that could be read, so that the rest of a file can
be checked in the same pass. What cannot be known because of a mistake is noted in `Problems.unsure`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from failwell.files.mistakes import Problems
from failwell.files.tree import Item, Path, is_list, is_map
from failwell.files.values import WRONG, Schema, Type, Wrong, name_of, nearest, shown, sort_of


def readable(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values without mistakes; of one with a mistake, the part that could be read."""
    return {
        key: value.rest if isinstance(value, Wrong) else value
        for key, value in values.items()
        if not isinstance(value, Wrong) or value.rest is not None
    }


class Many:
    """A list; with `single`, one value without a list is accepted, too."""

    def __init__(
        self,
        each: Type,
        *,
        least: int = 0,
        single: bool = False,
        distinct: bool = False,
        hint: str = "",
        instead: str = "write `[…]`, or `- …`",
    ) -> None:
        self.each = each
        self.least = least
        self.single = single
        self.distinct = distinct
        self.hint = hint
        self.instead = instead
        """What to do when there is no list at all."""

    def read(self, item: Item, at: Path, on: Problems) -> Any:
        value = item.value
        if not is_list(value):
            if self.single:
                one = self.each.read(item, at, on)
                return WRONG if isinstance(one, Wrong) else (one,)
            on.wrong(item, at, f"{name_of(at)} must be a list, not {sort_of(value)}", hint=self.instead)
            return WRONG
        if len(value) < self.least:
            few = "must not be empty" if self.least == 1 else f"must have at least {self.least} entries"
            on.wrong(item, at, f"{name_of(at)} {few}", hint=self.hint)
            return WRONG
        read = self.each.read
        made = [read(child, (at, index), on) for index, child in enumerate(value)]
        if self.distinct:
            self._distinct(value, made, at, on)
        for one in made:
            if type(one) is Wrong:
                return Wrong(tuple(_rests(made)))
        return tuple(made)

    def _distinct(self, items: list[Item], made: list[Any], at: Path, on: Problems) -> None:
        seen: dict[Any, Item] = {}
        for index, (child, one) in enumerate(zip(items, made, strict=True)):
            if isinstance(one, Wrong):
                continue
            if one in seen:
                quoted = f"`{shown(child)}` " if shown(child) else "an entry "
                on.wrong(
                    child,
                    (at, index),
                    f"{quoted}is listed twice in {name_of(at)}",
                    hint="keep one of them",
                    also=(seen[one].place,),
                )
            seen.setdefault(one, child)

    def schema(self) -> Schema:
        each = self.each.schema()
        made: Schema = {"type": "array", "items": each}
        if self.least:
            made["minItems"] = self.least
        if self.distinct:
            made["uniqueItems"] = True
        return {"anyOf": [each, made]} if self.single else made


class Named:
    """A mapping from names to values of one type."""

    def __init__(self, each: Type, *, key: str | None = None, must: str = "", least: int = 0) -> None:
        self.each = each
        self.key = None if key is None else re.compile(key)
        self.must = must
        self.least = least

    def read(self, item: Item, at: Path, on: Problems) -> Any:
        value = item.value
        if not is_map(value):
            on.wrong(
                item, at, f"{name_of(at)} must be a mapping, not {sort_of(value)}", hint="write `name: value`"
            )
            return WRONG
        if len(value) < self.least:
            on.wrong(item, at, f"{name_of(at)} must not be empty")
            return Wrong({})
        made: dict[str, Any] = {}
        for key, child in value.items():
            if self.key is not None and self.key.fullmatch(key) is None:
                on.add(f"the name `{key[:100]}` must be {self.must}", item.key_place(key), (at, key))
                made[key] = WRONG
            else:
                made[key] = self.each.read(child, (at, key), on)
        for one in made.values():
            if type(one) is Wrong:
                return Wrong(readable(made))
        return made

    def schema(self) -> Schema:
        made: Schema = {"type": "object", "additionalProperties": self.each.schema()}
        if self.key is not None:
            made["propertyNames"] = {"pattern": f"^(?:{self.key.pattern})$"}
        if self.least:
            made["minProperties"] = self.least
        return made


class Either:
    """One type for texts, another for mappings, and so on, by what the value is."""

    def __init__(self, must: str, **by: Type) -> None:
        self.must = must
        self.by: Mapping[str, Type] = by

    def read(self, item: Item, at: Path, on: Problems) -> Any:
        kind = _KINDS.get(cast("Any", type(item.value)), "nothing")
        wanted = self.by.get(kind)
        if wanted is None:
            on.wrong(item, at, f"{name_of(at)} must be {self.must}, not {sort_of(item.value)}")
            return WRONG
        return wanted.read(item, at, on)

    def schema(self) -> Schema:
        return {"anyOf": [each.schema() for each in self.by.values()]}


_KINDS = {str: "text", dict: "mapping", list: "list", bool: "flag", int: "number", float: "number"}


class Made:
    """A type whose value is turned into something else by `make(value, item, at, on)`, once it has no mistake."""

    def __init__(self, of: Type, make: Callable[[Any, Item, Path, Problems], Any]) -> None:
        self.of = of
        self.make = make

    def read(self, item: Item, at: Path, on: Problems) -> Any:
        value = self.of.read(item, at, on)
        return value if isinstance(value, Wrong) else self.make(value, item, at, on)

    def schema(self) -> Schema:
        return self.of.schema()


NAMED: dict[str, Callable[[], Type]] = {}
"""Types that the schema says once, under `$defs`."""


class Ref:
    """A type that the schema names: it holds itself, or is used in many places."""

    def __init__(self, name: str, find: Callable[[], Type]) -> None:
        self.name = name
        self.find = find
        NAMED[name] = find

    def read(self, item: Item, at: Path, on: Problems) -> Any:
        return self.find().read(item, at, on)

    def schema(self) -> Schema:
        return {"$ref": f"#/$defs/{self.name}"}


def _rests(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if not isinstance(value, Wrong):
            yield value
        elif value.rest is not None:
            yield value.rest


# ---------------------------------------------------------------- closed mappings

Values = dict[str, Any]
Make = Callable[[Values, Item, Path, Problems], Any]
Rescue = Callable[[Values, Item, Path], Any]


class Key:
    """One key of a shape. With `null`, a written `null` is a value; else it is as if left out.

    `topics` names what is not known about the file as a whole when the key cannot be read. `otherwise` says on
    the reference page what holds when the key is left out.
    """

    __slots__ = ("about", "is_required", "null", "otherwise", "topics", "type")

    def __init__(
        self,
        of: Type,
        about: str = "",
        *,
        required: bool = False,
        null: bool = False,
        topics: tuple[str, ...] = (),
        otherwise: str = "",
    ) -> None:
        self.type = of
        self.about = about
        self.is_required = required
        self.null = null
        self.topics = topics
        self.otherwise = otherwise


class Shape:
    """A mapping with known keys. `one_of` lists keys of which exactly one must be there; `at_most` of which one may.

    `check` looks at the values together, wrong ones included. `make` turns values without mistakes into something
    else, and `rescue` does the same with those that could be read when others could not.
    """

    def __init__(
        self,
        name: str,
        keys: Mapping[str, Key],
        *,
        make: Make | None = None,
        rescue: Rescue | None = None,
        check: Callable[[Values, Item, Path, Problems], None] | None = None,
        one_of: tuple[str, ...] = (),
        at_most: tuple[tuple[str, ...], ...] = (),
        about: str = "",
        elsewhere: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        """What the block is called in messages, such as `a route`."""
        self.keys = dict(keys)
        self.make = make
        self.rescue = rescue
        self.check = check
        self.one_of = one_of
        self.at_most = at_most
        self.about = about
        self.elsewhere = elsewhere or {}
        """Keys that are known in other shapes, and the hint that is given for them here."""
        self.required = tuple(key for key, held in self.keys.items() if held.is_required)

    def read(self, item: Item, at: Path, on: Problems) -> Any:
        """What `make` makes of the values, or the values themselves."""
        values = self.values(item, at, on)
        if type(values) is Wrong:
            return values
        if self.check is not None:
            self.check(values, item, at, on)
        if is_right(values):
            return values if self.make is None else self.make(values, item, at, on)
        if self.make is None:
            return Wrong(readable(values))
        return WRONG if self.rescue is None else Wrong(self.rescue(readable(values), item, at))

    def values(self, item: Item, at: Path, on: Problems) -> Any:
        """The values by key, those with mistakes as `Wrong`; a `Wrong` if there is no mapping at all."""
        if not is_map(item.value):
            on.wrong(
                item, at, f"{name_of(at)} must be a mapping ({self.name}), not {sort_of(item.value)}",
                hint=f"its keys are {', '.join(list(self.keys)[:8])}",
            )  # fmt: skip
            self._doubt(self.keys, on)
            return WRONG
        values: Values = {}
        known = self.keys
        for key, child in item.value.items():
            held = known.get(key)
            if held is None:
                self._unknown(key, item, at, on)
            elif child.value is not None or held.null:
                value = values[key] = held.type.read(child, (at, key), on)
                if type(value) is Wrong and value.rest is None:
                    on.unsure.update(held.topics)
        for key in self.required:
            if key not in values:
                on.wrong(item, at, f"{self.name} needs `{key}`", hint=known[key].about, missing=key)
                values[key] = WRONG
                self._doubt((key,), on)
        if self.one_of:
            self._exactly_one(values, item, at, on)
        for group in self.at_most:
            self._together([key for key in group if key in values], item, at, on)
        return values

    def _doubt(self, keys: Iterable[str], on: Problems) -> None:
        for key in keys:
            on.unsure.update(self.keys[key].topics)

    def _unknown(self, key: str, item: Item, at: Path, on: Problems) -> None:
        hint = self.elsewhere.get(key)
        near = ""
        if hint is None and not on.is_full:
            near = nearest(key, self.keys)
            hint = f"did you mean `{near}`?" if near else f"its keys are {', '.join(sorted(self.keys))}"
        self._doubt((near,) if near else self.keys, on)
        on.add(f"{self.name} has no key `{key[:100]}`", item.key_place(key), (at, key), hint=hint or "")

    def _exactly_one(self, values: Values, item: Item, at: Path, on: Problems) -> None:
        there = [key for key in self.one_of if key in values]
        if not there:
            words = ", ".join(f"`{key}`" for key in self.one_of)
            on.wrong(item, at, f"{self.name} needs exactly one of {words}", hint="add one of them")
            values[self.one_of[0]] = WRONG
            self._doubt(self.one_of, on)
        self._together(there, item, at, on)

    def _together(self, there: list[str], item: Item, at: Path, on: Problems) -> None:
        if len(there) > 1:
            words = " and ".join(f"`{key}`" for key in there)
            on.add(
                f"{self.name} cannot have {words} together",
                item.key_place(there[1]),
                (at, there[1]),
                hint="keep one of them",
                also=(item.key_place(there[0]),),
            )
            self._doubt(there, on)

    def schema(self) -> Schema:
        """The shape as JSON Schema."""
        made: Schema = {"type": "object", "properties": self.properties(), "additionalProperties": False}
        if self.about:
            made["description"] = self.about
        if self.required:
            made["required"] = list(self.required)
        rules: list[Schema] = [{"not": {"required": list(pair)}} for pair in self._pairs()]
        if self.one_of:
            rules.append({"anyOf": [{"required": [key]} for key in self.one_of]})
        if rules:
            made["allOf"] = rules
        return made

    def _pairs(self) -> list[tuple[str, str]]:
        groups = [*self.at_most, *([self.one_of] if self.one_of else [])]
        return [
            (first, second)
            for group in groups
            for place, first in enumerate(group)
            for second in group[place + 1 :]
        ]

    def properties(self) -> Schema:
        """The keys as JSON Schema."""
        made: Schema = {}
        for key, held in self.keys.items():
            of = held.type.schema()
            if not held.is_required and of and not held.null:
                of = {"anyOf": [of, {"type": "null"}]}
            made[key] = {"description": held.about, **of} if held.about else of
        return made


def is_right(values: Mapping[str, Any]) -> bool:
    """Whether every value of a shape could be read."""
    return not any(type(value) is Wrong for value in values.values())
