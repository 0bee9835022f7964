"""Values that hold others: lists, mappings, alternatives, and closed mappings with known keys.

A value with a mistake in it is a `Invalid` that keeps the part that could be read, so that the rest of a file can
be checked in the same pass. What cannot be known because of a mistake is noted in `Problems.unsure`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from failwell.files.item_tree import Item, Path, is_list, is_map
from failwell.files.mistakes import Problems
from failwell.files.suggestions import nearest
from failwell.files.value_types import INVALID, Invalid, Schema, Type, name_of, shown, sort_of


def readable(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values without mistakes; of one with a mistake, the part that could be read."""
    return {
        key: value.rest if isinstance(value, Invalid) else value
        for key, value in values.items()
        if not isinstance(value, Invalid) or value.rest is not None
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

    def read(self, item: Item, path: Path, problems: Problems) -> Any:
        value = item.value
        if not is_list(value):
            if self.single:
                entry = self.each.read(item, path, problems)
                return INVALID if isinstance(entry, Invalid) else (entry,)
            problems.wrong(
                item, path, f"{name_of(path)} must be a list, not {sort_of(value)}", hint=self.instead
            )
            return INVALID
        if len(value) < self.least:
            few = "must not be empty" if self.least == 1 else f"must have at least {self.least} entries"
            problems.wrong(item, path, f"{name_of(path)} {few}", hint=self.hint)
            return INVALID
        read = self.each.read
        values = [read(child, (path, index), problems) for index, child in enumerate(value)]
        if self.distinct:
            self._distinct(value, values, path, problems)
        for entry in values:
            if type(entry) is Invalid:
                return Invalid(tuple(_rests(values)))
        return tuple(values)

    def _distinct(self, items: list[Item], values: list[Any], path: Path, problems: Problems) -> None:
        first: dict[Any, Item] = {}
        for index, (child, value) in enumerate(zip(items, values, strict=True)):
            if isinstance(value, Invalid):
                continue
            if value in first:
                quoted = f"`{shown(child)}` " if shown(child) else "an entry "
                problems.wrong(
                    child,
                    (path, index),
                    f"{quoted}is listed twice in {name_of(path)}",
                    hint="keep one of them",
                    also=(first[value].place,),
                )
            first.setdefault(value, child)

    def schema(self) -> Schema:
        each = self.each.schema()
        schema: Schema = {"type": "array", "items": each}
        if self.least:
            schema["minItems"] = self.least
        if self.distinct:
            schema["uniqueItems"] = True
        return {"anyOf": [each, schema]} if self.single else schema


class Named:
    """A mapping from names to values of one type."""

    def __init__(self, each: Type, *, key: str | None = None, must: str = "", least: int = 0) -> None:
        self.each = each
        self.key = None if key is None else re.compile(key)
        self.must = must
        self.least = least

    def read(self, item: Item, path: Path, problems: Problems) -> Any:
        value = item.value
        if not is_map(value):
            problems.wrong(
                item,
                path,
                f"{name_of(path)} must be a mapping, not {sort_of(value)}",
                hint="write `name: value`",
            )
            return INVALID
        if len(value) < self.least:
            problems.wrong(item, path, f"{name_of(path)} must not be empty")
            return Invalid({})
        values: dict[str, Any] = {}
        for key, child in value.items():
            if self.key is not None and self.key.fullmatch(key) is None:
                problems.add(f"the name `{key[:100]}` must be {self.must}", item.key_place(key), (path, key))
                values[key] = INVALID
            else:
                values[key] = self.each.read(child, (path, key), problems)
        for entry in values.values():
            if type(entry) is Invalid:
                return Invalid(readable(values))
        return values

    def schema(self) -> Schema:
        schema: Schema = {"type": "object", "additionalProperties": self.each.schema()}
        if self.key is not None:
            schema["propertyNames"] = {"pattern": f"^(?:{self.key.pattern})$"}
        if self.least:
            schema["minProperties"] = self.least
        return schema


class Either:
    """One type for texts, another for mappings, and so on, by what the value is."""

    def __init__(self, must: str, **by: Type) -> None:
        self.must = must
        self.by: Mapping[str, Type] = by

    def read(self, item: Item, path: Path, problems: Problems) -> Any:
        kind = _KINDS.get(cast("Any", type(item.value)), "nothing")
        value_type = self.by.get(kind)
        if value_type is None:
            problems.wrong(item, path, f"{name_of(path)} must be {self.must}, not {sort_of(item.value)}")
            return INVALID
        return value_type.read(item, path, problems)

    def schema(self) -> Schema:
        return {"anyOf": [each.schema() for each in self.by.values()]}


_KINDS = {str: "text", dict: "mapping", list: "list", bool: "flag", int: "number", float: "number"}


class Made:
    """A type whose value is turned into something else by `make(value, item, at, on)`, once it has no mistake."""

    def __init__(self, of: Type, make: Callable[[Any, Item, Path, Problems], Any]) -> None:
        self.of = of
        self.make = make

    def read(self, item: Item, path: Path, problems: Problems) -> Any:
        value = self.of.read(item, path, problems)
        return value if isinstance(value, Invalid) else self.make(value, item, path, problems)

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

    def read(self, item: Item, path: Path, problems: Problems) -> Any:
        return self.find().read(item, path, problems)

    def schema(self) -> Schema:
        return {"$ref": f"#/$defs/{self.name}"}


def _rests(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if not isinstance(value, Invalid):
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
        self.required = tuple(key for key, spec in self.keys.items() if spec.is_required)

    def read(self, item: Item, path: Path, problems: Problems) -> Any:
        """What `make` makes of the values, or the values themselves."""
        values = self.values(item, path, problems)
        if type(values) is Invalid:
            return values
        if self.check is not None:
            self.check(values, item, path, problems)
        for value in values.values():
            if type(value) is Invalid:
                break
        else:
            return values if self.make is None else self.make(values, item, path, problems)
        if self.make is None:
            return Invalid(readable(values))
        return INVALID if self.rescue is None else Invalid(self.rescue(readable(values), item, path))

    def values(self, item: Item, path: Path, problems: Problems) -> Any:
        """The values by key, those with mistakes as `Invalid`; a `Invalid` if there is no mapping at all."""
        if not is_map(item.value):
            problems.wrong(
                item, path, f"{name_of(path)} must be a mapping ({self.name}), not {sort_of(item.value)}",
                hint=f"its keys are {', '.join(list(self.keys)[:8])}",
            )  # fmt: skip
            self._doubt(self.keys, problems)
            return INVALID
        values: Values = {}
        known = self.keys
        for key, child in item.value.items():
            spec = known.get(key)
            if spec is None:
                self._unknown(key, item, path, problems)
            elif child.value is not None or spec.null:
                value = values[key] = spec.type.read(child, (path, key), problems)
                if type(value) is Invalid and value.rest is None:
                    problems.unsure.update(spec.topics)
        for key in self.required:
            if key not in values:
                problems.wrong(item, path, f"{self.name} needs `{key}`", hint=known[key].about, missing=key)
                values[key] = INVALID
                self._doubt((key,), problems)
        if self.one_of:
            self._exactly_one(values, item, path, problems)
        for group in self.at_most:
            self._together([key for key in group if key in values], item, path, problems)
        return values

    def _doubt(self, keys: Iterable[str], problems: Problems) -> None:
        for key in keys:
            problems.unsure.update(self.keys[key].topics)

    def _unknown(self, key: str, item: Item, path: Path, problems: Problems) -> None:
        hint = self.elsewhere.get(key)
        near = ""
        if hint is None and not problems.is_full:
            near = nearest(key, self.keys)
            hint = f"did you mean `{near}`?" if near else f"its keys are {', '.join(sorted(self.keys))}"
        self._doubt((near,) if near else self.keys, problems)
        problems.add(
            f"{self.name} has no key `{key[:100]}`", item.key_place(key), (path, key), hint=hint or ""
        )

    def _exactly_one(self, values: Values, item: Item, path: Path, problems: Problems) -> None:
        present = [key for key in self.one_of if key in values]
        if not present:
            words = ", ".join(f"`{key}`" for key in self.one_of)
            problems.wrong(item, path, f"{self.name} needs exactly one of {words}", hint="add one of them")
            values[self.one_of[0]] = INVALID
            self._doubt(self.one_of, problems)
        self._together(present, item, path, problems)

    def _together(self, present: list[str], item: Item, path: Path, problems: Problems) -> None:
        if len(present) > 1:
            words = " and ".join(f"`{key}`" for key in present)
            problems.add(
                f"{self.name} cannot have {words} together",
                item.key_place(present[1]),
                (path, present[1]),
                hint="keep one of them",
                also=(item.key_place(present[0]),),
            )
            self._doubt(present, problems)

    def schema(self) -> Schema:
        """The shape as JSON Schema."""
        schema: Schema = {"type": "object", "properties": self.properties(), "additionalProperties": False}
        if self.about:
            schema["description"] = self.about
        if self.required:
            schema["required"] = list(self.required)
        rules: list[Schema] = [{"not": {"required": list(pair)}} for pair in self._pairs()]
        if self.one_of:
            rules.append({"anyOf": [{"required": [key]} for key in self.one_of]})
        if rules:
            schema["allOf"] = rules
        return schema

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
        schemas: Schema = {}
        for key, spec in self.keys.items():
            of = spec.type.schema()
            if not spec.is_required and of and not spec.null:
                of = {"anyOf": [of, {"type": "null"}]}
            schemas[key] = {"description": spec.about, **of} if spec.about else of
        return schemas
