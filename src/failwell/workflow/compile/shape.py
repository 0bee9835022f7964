"""Closed mappings: the keys a block may have, which it must have, and which exclude each other."""

from collections.abc import Callable, Mapping
from typing import Any

from failwell.workflow.compile.values import WRONG, Schema, Type, name_of, nearest, sort_of
from failwell.workflow.source.problems import Problems
from failwell.workflow.source.tree import Item, Path, is_map

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
