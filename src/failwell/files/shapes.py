"""Types that hold others: lists, mappings, alternatives, and what is made of a value once it is read."""

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from failwell.files.mistakes import Problems
from failwell.files.tree import Item, Path, is_list, is_map
from failwell.files.values import (
    WRONG,
    Schema,
    Type,
    name_of,
    nearest,
    shown,
    sort_of,
)


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
                return WRONG if one is WRONG else (one,)
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
        return WRONG if WRONG in made else tuple(made)

    def _distinct(self, items: list[Item], made: list[Any], at: Path, on: Problems) -> None:
        seen: dict[Any, Item] = {}
        for index, (child, one) in enumerate(zip(items, made, strict=True)):
            if one is WRONG:
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
        made: dict[str, Any] = {}
        for key, child in value.items():
            if self.key is not None and self.key.fullmatch(key) is None:
                on.add(f"the name `{key[:100]}` must be {self.must}", item.key_place(key), (at, key))
                continue
            one = self.each.read(child, (at, key), on)
            if one is not WRONG:
                made[key] = one
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
    """A type whose value is turned into something else by `make(value, item, at, on)`."""

    def __init__(self, of: Type, make: Callable[[Any, Item, Path, Problems], Any]) -> None:
        self.of = of
        self.make = make

    def read(self, item: Item, at: Path, on: Problems) -> Any:
        value = self.of.read(item, at, on)
        return WRONG if value is WRONG else self.make(value, item, at, on)

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


Make = Callable[[dict[str, Any], Item, Path, Problems], Any]


class Key:
    """One key of a shape. With `null`, a written `null` is a value; else it is as if left out."""

    __slots__ = ("about", "is_required", "null", "type")

    def __init__(self, of: Type, about: str = "", *, required: bool = False, null: bool = False) -> None:
        self.type = of
        self.about = about
        self.is_required = required
        self.null = null


class Shape:
    """A closed mapping. `one_of` lists keys of which exactly one must be there; `at_most` of which one may."""

    def __init__(
        self,
        name: str,
        keys: Mapping[str, Key],
        *,
        make: Make | None = None,
        one_of: tuple[str, ...] = (),
        at_most: tuple[tuple[str, ...], ...] = (),
        about: str = "",
        elsewhere: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        """What the block is called in messages, such as `a route`."""
        self.keys = dict(keys)
        self.make = make
        self.one_of = one_of
        self.at_most = at_most
        self.about = about
        self.elsewhere = elsewhere or {}
        """Keys that are known in other shapes, and what to say about them here."""
        self.required = tuple(key for key, held in self.keys.items() if held.is_required)

    def read(self, item: Item, at: Path, on: Problems) -> Any:
        """The values by key; what `make` makes of them, where there is one."""
        if not is_map(item.value):
            on.wrong(
                item, at, f"{name_of(at)} must be a mapping ({self.name}), not {sort_of(item.value)}",
                hint=f"its keys are {', '.join(list(self.keys)[:8])}",
            )  # fmt: skip
            return WRONG
        got: dict[str, Any] = {}
        known = self.keys
        for key, child in item.value.items():
            held = known.get(key)
            if held is None:
                self._unknown(key, item, at, on)
            elif child.value is not None or held.null:
                got[key] = held.type.read(child, (at, key), on)
        for key in self.required:
            if key not in got:
                on.wrong(item, at, f"{self.name} needs `{key}`", hint=known[key].about)
                got[key] = WRONG
        if self.one_of:
            self._exactly_one(got, item, at, on)
        for group in self.at_most:
            self._together([key for key in group if key in got], item, at, on)
        return got if self.make is None else self.make(got, item, at, on)

    def _unknown(self, key: str, item: Item, at: Path, on: Problems) -> None:
        if on.is_full:
            on.left_out += 1
            return
        said = self.elsewhere.get(key)
        if said is None:
            near = nearest(key, self.keys)
            said = f"did you mean `{near}`?" if near else f"its keys are {', '.join(sorted(self.keys))}"
        on.add(f"{self.name} has no key `{key[:100]}`", item.key_place(key), (at, key), hint=said)

    def _exactly_one(self, got: dict[str, Any], item: Item, at: Path, on: Problems) -> None:
        there = [key for key in self.one_of if key in got]
        if not there:
            words = ", ".join(f"`{key}`" for key in self.one_of)
            on.wrong(item, at, f"{self.name} needs exactly one of {words}", hint="add one of them")
            got[self.one_of[0]] = WRONG
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


def is_right(got: Mapping[str, Any]) -> bool:
    """Whether every value of a shape could be read."""
    return WRONG not in got.values()
