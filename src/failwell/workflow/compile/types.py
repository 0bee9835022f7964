"""What a value of a file may be: the words that the tables of shapes are written in.

Every type can read an item and can say itself as JSON Schema. A value that came from an environment
variable is text; where a number or a truth value is wanted it is read as one.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, cast

from failwell.workflow.plan import Place, Template
from failwell.workflow.source.problems import Problems
from failwell.workflow.source.scalars import NotJson, meaning
from failwell.workflow.source.tree import Item, Path, is_list, is_map

Schema = dict[str, Any]


class _Wrong:
    """The result of reading a value that is a mistake."""

    def __repr__(self) -> str:
        return "WRONG"


WRONG: Final = _Wrong()
_VARIABLE: Final[Schema] = {"type": "string", "pattern": r"\$\{"}


class Type(Protocol):
    """What a value may be."""

    def read(self, item: Item, at: Path, on: Problems) -> Any:
        """The value, or `WRONG` after a mistake was put on the list."""
        ...

    def schema(self) -> Schema:
        """The same as JSON Schema."""
        ...


def sort_of(value: object) -> str:
    """What a value is, in words."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "a number"
        case str():
            return "text" if value else "an empty text"
        case list():
            return "a list"
        case _:
            return "a mapping"


def unquoted(item: Item) -> Any:
    """The value of an item; a variable's text is read as if it stood in the file without quotes."""
    if item.veiled and type(item.value) is str:
        try:
            return meaning(item.value)
        except NotJson:
            return item.value
    return item.value


def shown(item: Item) -> str:
    """A short value as it may be quoted in a message."""
    if item.veiled or type(item.value) in (dict, list):
        return ""
    text = item.value if type(item.value) is str else sort_of(item.value)
    return text if len(text) <= 60 and text.isprintable() else ""


def template_of(item: Item) -> Template:
    """The text of an item as a template."""
    return Template(
        text=item.value,
        place=Place(file=item.file, line=item.line + 1, column=item.column + 1),
        folder=item.folder,
    )


class Text:
    """A text. `pattern` must fit the whole of it; `must` says so in words."""

    def __init__(
        self, pattern: str | None = None, must: str = "", *, empty: bool = False, hint: str = ""
    ) -> None:
        self.pattern = None if pattern is None else re.compile(pattern)
        self.must = must
        self.empty = empty
        self.hint = hint

    def read(self, item: Item, at: Path, on: Problems) -> Any:
        value = item.value
        if type(value) is not str:
            on.wrong(item, at, f"{name_of(at)} must be text, not {sort_of(value)}", hint=_quotes(value))
        elif not value and not self.empty:
            on.wrong(item, at, f"{name_of(at)} must not be empty")
        elif self.pattern is not None and self.pattern.fullmatch(value) is None:
            quoted = f", not `{shown(item)}`" if shown(item) else ""
            on.wrong(item, at, f"{name_of(at)} must be {self.must}{quoted}", hint=self.hint)
        else:
            return value
        return WRONG

    def schema(self) -> Schema:
        made: Schema = {"type": "string"}
        if not self.empty:
            made["minLength"] = 1
        if self.pattern is not None:
            made["pattern"] = f"^(?:{self.pattern.pattern})$"
        return made


class Templated:
    """A text that may hold `{{ }}`; read as a `Template`."""

    def __init__(self, *, empty: bool = False) -> None:
        self.empty = empty

    def read(self, item: Item, at: Path, on: Problems) -> Any:
        value = item.value
        if type(value) is str and (value or self.empty):
            return template_of(item)
        if value == "":
            on.wrong(item, at, f"{name_of(at)} must not be empty")
        else:
            on.wrong(item, at, f"{name_of(at)} must be text, not {sort_of(value)}", hint=_quotes(value))
        return WRONG

    def schema(self) -> Schema:
        return {"type": "string"} if self.empty else {"type": "string", "minLength": 1}


class Number:
    """A number between two bounds; `whole` refuses fractions, `above` is a bound that it must exceed."""

    def __init__(
        self,
        least: float | None = None,
        most: float | None = None,
        *,
        above: float | None = None,
        whole: bool = False,
    ) -> None:
        self.least = least
        self.most = most
        self.above = above
        self.whole = whole

    def read(self, item: Item, at: Path, on: Problems) -> Any:
        value = unquoted(item)
        # A truth value is an int to Python, so it is refused by its type before anything is compared.
        if type(value) is int or (type(value) is float and not self.whole):
            if self._fits(value):
                return value
            what = "between" if self.least is not None and self.most is not None else "in range"
        else:
            what = sort_of(value)
        hint = "write the number without quotes" if type(value) is str and not item.veiled else ""
        given = "" if what in ("between", "in range") else f", not {what}"
        on.wrong(item, at, f"{name_of(at)} must be {self._words()}{given}", hint=hint)
        return WRONG

    def _fits(self, value: float) -> bool:
        return (
            (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or value > self.above)
        )

    def _words(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        if self.least is not None and self.most is not None:
            return f"{kind} between {self.least:,} and {self.most:,}"
        bounds = [
            f"{word} {bound:,}"
            for word, bound in (("at least", self.least), ("above", self.above), ("at most", self.most))
            if bound is not None
        ]
        return " ".join([kind, " and ".join(bounds)]).strip()

    def schema(self) -> Schema:
        made: Schema = {"type": "integer" if self.whole else "number"}
        for key, bound in (("minimum", self.least), ("maximum", self.most), ("exclusiveMinimum", self.above)):
            if bound is not None:
                made[key] = bound
        return {"anyOf": [made, _VARIABLE]}


class Flag:
    """`true` or `false`."""

    def read(self, item: Item, at: Path, on: Problems) -> Any:
        value = unquoted(item)
        if type(value) is bool:
            return value
        hint = (
            "write `true` or `false`" if type(value) is not str else "write `true` or `false`, without quotes"
        )
        on.wrong(item, at, f"{name_of(at)} must be true or false, not {sort_of(value)}", hint=hint)
        return WRONG

    def schema(self) -> Schema:
        return {"anyOf": [{"type": "boolean"}, _VARIABLE]}


class Choice:
    """One of a closed set of words. With `templated`, a `{{ }}` may stand for one of them."""

    def __init__(self, *words: str, templated: bool = False) -> None:
        self.words = words
        self.templated = templated

    def read(self, item: Item, at: Path, on: Problems) -> Any:
        value = item.value
        if type(value) is str:
            if value in self.words:
                return value
            if self.templated and ("{{" in value or "{%" in value):
                return template_of(item)
        near = "" if item.veiled or on.is_full or type(value) is not str else nearest(value, self.words)
        on.wrong(
            item,
            at,
            f"{name_of(at)} must be one of {', '.join(self.words)}",
            hint=f"did you mean `{near}`?" if near else "",
        )
        return WRONG

    def schema(self) -> Schema:
        words: Schema = {"enum": list(self.words)}
        others = [{"type": "string", "pattern": r"\{\{|\{%"}] if self.templated else []
        return {"anyOf": [words, *others, _VARIABLE]}


class Free:
    """Any JSON; with `templated`, its texts are templates."""

    def __init__(self, *, templated: bool = False) -> None:
        self.templated = templated

    def read(self, item: Item, at: Path, on: Problems) -> Any:
        del at, on  # whatever it is, it is right
        return templates_in(item) if self.templated else item.plain()

    def schema(self) -> Schema:
        return {}


def templates_in(item: Item) -> Any:
    """The value of an item with every text in it as a template."""
    value = item.value
    if type(value) is str:
        return template_of(item)
    if is_map(value):
        return {key: templates_in(child) for key, child in value.items()}
    if is_list(value):
        return [templates_in(child) for child in value]
    return value


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


def name_of(at: Path) -> str:
    """The nearest name in a path, as messages quote it."""
    while at:
        at, step = at
        if isinstance(step, str):
            return f"`{step[:60]}`"
    return "the file"


def nearest(word: str, known: Any) -> str:
    """The known word that is spelled most like `word`, or nothing."""
    from difflib import get_close_matches

    near = get_close_matches(word[:60], list(known), n=1, cutoff=0.6)
    return near[0] if near else ""


def _quotes(value: object) -> str:
    return "put it in quotes to make it text" if isinstance(value, bool | int | float) else ""
