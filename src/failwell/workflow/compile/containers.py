"""Types that hold others: lists, mappings, alternatives, and what is made of a value once it is read."""

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from failwell.workflow.compile.values import (
    WRONG,
    Schema,
    Type,
    name_of,
    shown,
    sort_of,
    template_of,
)
from failwell.workflow.source.problems import Problems
from failwell.workflow.source.tree import Item, Path, is_list, is_map


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


class Kept:
    """A block that is checked and then kept as it is written; with `templated`, its texts are templates."""

    def __init__(self, of: Type, *, templated: bool = False) -> None:
        self.of = of
        self.templated = templated

    def read(self, item: Item, at: Path, on: Problems) -> Any:
        value = self.of.read(item, at, on)
        return WRONG if value is WRONG else self._keep(value, item)

    def _keep(self, value: Any, item: Item) -> Any:
        if is_map(value):
            return {key: self._keep(one, item.value[key]) for key, one in value.items() if one is not WRONG}
        if isinstance(value, tuple):
            several = cast("tuple[Any, ...]", value)
            return [self._keep(one, child) for one, child in zip(several, item.value, strict=True)]
        return template_of(item) if self.templated and type(value) is str else value

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
