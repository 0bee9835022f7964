"""Types of values that contain others: lists, mappings, alternatives, and mappings with a fixed set of keys.

A value with a mistake is read as `Invalid`, which keeps the valid part, so that one pass checks the whole file.
`MistakeLog.unknown_topics` lists what is not known because of a mistake.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from failwell.files.item_tree import Item, Path, is_list, is_map
from failwell.files.mistakes import MistakeLog
from failwell.files.suggestions import nearest
from failwell.files.value_types import INVALID, Invalid, Schema, Type, name_of, quotable, type_name


def readable_part(values: Mapping[str, Any]) -> dict[str, Any]:
    """The valid values, and the valid part of invalid ones."""
    return {
        key: value.partial if isinstance(value, Invalid) else value
        for key, value in values.items()
        if not isinstance(value, Invalid) or value.partial is not None
    }


class ListOf:
    """A list. `single` also accepts one value without a list."""

    def __init__(
        self,
        item_type: Type,
        *,
        min_items: int = 0,
        single: bool = False,
        distinct: bool = False,
        hint: str = "",
        instead: str = "write `[…]`, or `- …`",
    ) -> None:
        self.item_type = item_type
        self.min_items = min_items
        self.single = single
        self.distinct = distinct
        self.hint = hint
        self.instead = instead
        """The hint for a value that is not a list."""

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        value = item.value
        if not is_list(value):
            if self.single:
                entry = self.item_type.read(item, path, log)
                return INVALID if isinstance(entry, Invalid) else (entry,)
            log.add_at(
                item, path, f"{name_of(path)} must be a list, not {type_name(value)}", hint=self.instead
            )
            return INVALID
        if len(value) < self.min_items:
            rule = (
                "must not be empty" if self.min_items == 1 else f"must have at least {self.min_items} entries"
            )
            log.add_at(item, path, f"{name_of(path)} {rule}", hint=self.hint)
            return INVALID
        read_item = self.item_type.read
        values = [read_item(child, (path, index), log) for index, child in enumerate(value)]
        if self.distinct:
            self._distinct(value, values, path, log)
        for entry in values:
            if type(entry) is Invalid:
                return Invalid(tuple(_readable_items(values)))
        return tuple(values)

    def _distinct(self, items: list[Item], values: list[Any], path: Path, log: MistakeLog) -> None:
        originals: dict[Any, Item] = {}
        for index, (child, value) in enumerate(zip(items, values, strict=True)):
            if isinstance(value, Invalid):
                continue
            if value in originals:
                quoted = f"`{quotable(child)}` " if quotable(child) else "an entry "
                log.add_at(
                    child,
                    (path, index),
                    f"{quoted}is listed twice in {name_of(path)}",
                    hint="keep one of them",
                    also=(originals[value].place,),
                )
            originals.setdefault(value, child)

    def schema(self) -> Schema:
        item_schema = self.item_type.schema()
        schema: Schema = {"type": "array", "items": item_schema}
        if self.min_items:
            schema["minItems"] = self.min_items
        if self.distinct:
            schema["uniqueItems"] = True
        return {"anyOf": [item_schema, schema]} if self.single else schema


class MapOf:
    """A mapping from names to values of one type."""

    def __init__(
        self, value_type: Type, *, key: str | None = None, must: str = "", min_items: int = 0
    ) -> None:
        self.value_type = value_type
        self.key = None if key is None else re.compile(key)
        self.must = must
        self.min_items = min_items

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        value = item.value
        if not is_map(value):
            log.add_at(
                item,
                path,
                f"{name_of(path)} must be a mapping, not {type_name(value)}",
                hint="write `name: value`",
            )
            return INVALID
        if len(value) < self.min_items:
            log.add_at(item, path, f"{name_of(path)} must not be empty")
            return Invalid({})
        values: dict[str, Any] = {}
        for key, child in value.items():
            if self.key is not None and self.key.fullmatch(key) is None:
                log.add(f"the name `{key[:100]}` must be {self.must}", item.key_place(key), (path, key))
                values[key] = INVALID
            else:
                values[key] = self.value_type.read(child, (path, key), log)
        for entry in values.values():
            if type(entry) is Invalid:
                return Invalid(readable_part(values))
        return values

    def schema(self) -> Schema:
        schema: Schema = {"type": "object", "additionalProperties": self.value_type.schema()}
        if self.key is not None:
            schema["propertyNames"] = {"pattern": f"^(?:{self.key.pattern})$"}
        if self.min_items:
            schema["minProperties"] = self.min_items
        return schema


class ByType:
    """Another type for each JSON type: `text`, `mapping`, `list`, `flag`, `number`."""

    def __init__(self, must: str, **types: Type) -> None:
        self.must = must
        self.types: Mapping[str, Type] = types

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        kind = _KINDS.get(cast("Any", type(item.value)), "nothing")
        value_type = self.types.get(kind)
        if value_type is None:
            log.add_at(item, path, f"{name_of(path)} must be {self.must}, not {type_name(item.value)}")
            return INVALID
        return value_type.read(item, path, log)

    def schema(self) -> Schema:
        return {"anyOf": [value_type.schema() for value_type in self.types.values()]}


_KINDS = {str: "text", dict: "mapping", list: "list", bool: "flag", int: "number", float: "number"}


class Converted:
    """A type whose valid values are converted by `make(value, item, path, log)`."""

    def __init__(self, of: Type, make: Callable[[Any, Item, Path, MistakeLog], Any]) -> None:
        self.of = of
        self.make = make

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        value = self.of.read(item, path, log)
        return value if isinstance(value, Invalid) else self.make(value, item, path, log)

    def schema(self) -> Schema:
        return self.of.schema()


DEFINITIONS: dict[str, Callable[[], Type]] = {}
"""Types that the JSON Schema defines once, under `$defs`."""


class Ref:
    """A reference to a type by name, because it is recursive or used in many places."""

    def __init__(self, name: str, find: Callable[[], Type]) -> None:
        self.name = name
        self.find = find
        DEFINITIONS[name] = find

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        return self.find().read(item, path, log)

    def schema(self) -> Schema:
        return {"$ref": f"#/$defs/{self.name}"}


def _readable_items(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if not isinstance(value, Invalid):
            yield value
        elif value.partial is not None:
            yield value.partial


# ---------------------------------------------------------------- closed mappings

Values = dict[str, Any]
Make = Callable[[Values, Item, Path, MistakeLog], Any]
Rescue = Callable[[Values, Item, Path], Any]


class Key:
    """One key of a shape.

    With `null`, an explicit `null` is a value; otherwise it counts as missing. `topics` names what is not known
    about the whole file if the key cannot be read. `otherwise` is the default on the reference page.
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
    """A mapping with a fixed set of keys.

    Exactly one of the keys in `one_of` is required, and each group in `at_most` allows one of its keys.
    `check` sees all values, invalid ones included. `make` converts values without mistakes; `rescue` converts the
    valid ones if there are others.
    """

    def __init__(
        self,
        name: str,
        keys: Mapping[str, Key],
        *,
        make: Make | None = None,
        rescue: Rescue | None = None,
        check: Callable[[Values, Item, Path, MistakeLog], None] | None = None,
        one_of: tuple[str, ...] = (),
        at_most: tuple[tuple[str, ...], ...] = (),
        about: str = "",
        key_hints: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        """The name of the block in messages, such as `a route`."""
        self.keys = dict(keys)
        self.make = make
        self.rescue = rescue
        self.check = check
        self.one_of = one_of
        self.at_most = at_most
        self.about = about
        self.key_hints = key_hints or {}
        """Hints for keys that do not belong here, such as those of other shapes."""
        self.required = tuple(key for key, spec in self.keys.items() if spec.is_required)

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        """The result of `make`, or the values if there is no `make`."""
        values = self.values(item, path, log)
        if type(values) is Invalid:
            return values
        if self.check is not None:
            self.check(values, item, path, log)
        for value in values.values():
            if type(value) is Invalid:
                break
        else:
            return values if self.make is None else self.make(values, item, path, log)
        if self.make is None:
            return Invalid(readable_part(values))
        return INVALID if self.rescue is None else Invalid(self.rescue(readable_part(values), item, path))

    def values(self, item: Item, path: Path, log: MistakeLog) -> Any:
        """The values by key, with `Invalid` for those with mistakes; `INVALID` if it is not a mapping."""
        if not is_map(item.value):
            log.add_at(
                item, path, f"{name_of(path)} must be a mapping ({self.name}), not {type_name(item.value)}",
                hint=f"its keys are {', '.join(list(self.keys)[:8])}",
            )  # fmt: skip
            self._mark_unknown(self.keys, log)
            return INVALID
        values: Values = {}
        for key, child in item.value.items():
            spec = self.keys.get(key)
            if spec is None:
                self._report_unknown_key(key, item, path, log)
            elif child.value is not None or spec.null:
                value = values[key] = spec.type.read(child, (path, key), log)
                if type(value) is Invalid and value.partial is None:
                    log.unknown_topics.update(spec.topics)
        for key in self.required:
            if key not in values:
                log.add_at(item, path, f"{self.name} needs `{key}`", hint=self.keys[key].about, missing=key)
                values[key] = INVALID
                self._mark_unknown((key,), log)
        if self.one_of:
            self._require_one(values, item, path, log)
        for group in self.at_most:
            self._check_exclusive([key for key in group if key in values], item, path, log)
        return values

    def _mark_unknown(self, keys: Iterable[str], log: MistakeLog) -> None:
        for key in keys:
            log.unknown_topics.update(self.keys[key].topics)

    def _report_unknown_key(self, key: str, item: Item, path: Path, log: MistakeLog) -> None:
        hint = self.key_hints.get(key)
        near = ""
        if hint is None and not log.is_full:
            near = nearest(key, self.keys)
            hint = f"did you mean `{near}`?" if near else f"its keys are {', '.join(sorted(self.keys))}"
        self._mark_unknown((near,) if near else self.keys, log)
        log.add(f"{self.name} has no key `{key[:100]}`", item.key_place(key), (path, key), hint=hint or "")

    def _require_one(self, values: Values, item: Item, path: Path, log: MistakeLog) -> None:
        keys = [key for key in self.one_of if key in values]
        if not keys:
            words = ", ".join(f"`{key}`" for key in self.one_of)
            log.add_at(item, path, f"{self.name} needs exactly one of {words}", hint="add one of them")
            values[self.one_of[0]] = INVALID
            self._mark_unknown(self.one_of, log)
        self._check_exclusive(keys, item, path, log)

    def _check_exclusive(self, keys: list[str], item: Item, path: Path, log: MistakeLog) -> None:
        if len(keys) > 1:
            words = " and ".join(f"`{key}`" for key in keys)
            log.add(
                f"{self.name} cannot have {words} together",
                item.key_place(keys[1]),
                (path, keys[1]),
                hint="keep one of them",
                also=(item.key_place(keys[0]),),
            )
            self._mark_unknown(keys, log)

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
            (key, other)
            for group in groups
            for index, key in enumerate(group)
            for other in group[index + 1 :]
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
