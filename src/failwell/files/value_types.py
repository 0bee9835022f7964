"""What a single value of a file may be: text, number, truth value, word, duration, or anything.

Every type can read an item of the tree and can describe itself as JSON Schema. A value that came from an
environment variable is text; where a number or a truth value is wanted it is read as one.
"""

import re
from typing import Any, Final, Protocol

from failwell.files.item_tree import Item, Path
from failwell.files.mistakes import Problems
from failwell.files.scalars import NotJson, meaning
from failwell.files.suggestions import nearest

Schema = dict[str, Any]


class Invalid:
    """The result of reading a value that has a mistake. `rest` is the part that could be read, `None` if none could."""

    __slots__ = ("rest",)

    def __init__(self, rest: Any = None) -> None:
        self.rest = rest

    def __repr__(self) -> str:
        return f"Invalid({self.rest!r})"


INVALID: Final = Invalid()
VARIABLE: Final[Schema] = {"type": "string", "pattern": r"\$\{"}
"""A text that an environment variable stands in, where something else is wanted."""


class Type(Protocol):
    """What a value may be."""

    def read(self, item: Item, path: Path, problems: Problems) -> Any:
        """The value, or a `Invalid` after a mistake was put on the list."""
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


def name_of(path: Path) -> str:
    """The nearest name in a path, as messages quote it."""
    while path:
        path, step = path
        if isinstance(step, str):
            return f"`{step[:60]}`"
    return "the file"


def quotes(value: object) -> str:
    """What to do with a value that should have been text."""
    return "put it in quotes to make it text" if isinstance(value, bool | int | float) else ""


class Text:
    """A text. `pattern` must fit the whole of it; `must` says so in words."""

    def __init__(
        self, pattern: str | None = None, must: str = "", *, empty: bool = False, hint: str = ""
    ) -> None:
        self.pattern = None if pattern is None else re.compile(pattern)
        self.must = must
        self.empty = empty
        self.hint = hint

    def read(self, item: Item, path: Path, problems: Problems) -> Any:
        value = item.value
        if type(value) is not str:
            problems.wrong(
                item, path, f"{name_of(path)} must be text, not {sort_of(value)}", hint=quotes(value)
            )
        elif not value and not self.empty:
            problems.wrong(item, path, f"{name_of(path)} must not be empty")
        elif self.pattern is not None and self.pattern.fullmatch(value) is None:
            quoted = f", not `{shown(item)}`" if shown(item) else ""
            problems.wrong(item, path, f"{name_of(path)} must be {self.must}{quoted}", hint=self.hint)
        else:
            return value
        return INVALID

    def schema(self) -> Schema:
        schema: Schema = {"type": "string"}
        if not self.empty:
            schema["minLength"] = 1
        if self.pattern is not None:
            schema["pattern"] = f"^(?:{self.pattern.pattern})$"
        return schema


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

    def read(self, item: Item, path: Path, problems: Problems) -> Any:
        value = unquoted(item)
        # A truth value is an int to Python, so it is refused by its type before anything is compared.
        if type(value) is int or (type(value) is float and not self.whole):
            if self._fits(value):
                return value
            what = "between" if self.least is not None and self.most is not None else "in range"
        else:
            what = sort_of(value)
        hint = "write the number without quotes" if type(value) is str and not item.veiled else ""
        instead = "" if what in ("between", "in range") else f", not {what}"
        problems.wrong(item, path, f"{name_of(path)} must be {self._words()}{instead}", hint=hint)
        return INVALID

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
        schema: Schema = {"type": "integer" if self.whole else "number"}
        for key, bound in (("minimum", self.least), ("maximum", self.most), ("exclusiveMinimum", self.above)):
            if bound is not None:
                schema[key] = bound
        return {"anyOf": [schema, VARIABLE]}


class Flag:
    """`true` or `false`."""

    def read(self, item: Item, path: Path, problems: Problems) -> Any:
        value = unquoted(item)
        if type(value) is bool:
            return value
        hint = (
            "write `true` or `false`" if type(value) is not str else "write `true` or `false`, without quotes"
        )
        problems.wrong(item, path, f"{name_of(path)} must be true or false, not {sort_of(value)}", hint=hint)
        return INVALID

    def schema(self) -> Schema:
        return {"anyOf": [{"type": "boolean"}, VARIABLE]}


class Choice:
    """One of a closed set of words."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def read(self, item: Item, path: Path, problems: Problems) -> Any:
        value = item.value
        if type(value) is str and value in self.words:
            return value
        near = "" if item.veiled or problems.is_full or type(value) is not str else nearest(value, self.words)
        problems.wrong(
            item,
            path,
            f"{name_of(path)} must be one of {', '.join(self.words)}",
            hint=f"did you mean `{near}`?" if near else "",
        )
        return INVALID

    def schema(self) -> Schema:
        return {"anyOf": [{"enum": list(self.words)}, VARIABLE]}


class Free:
    """Any JSON value."""

    def read(self, item: Item, path: Path, problems: Problems) -> Any:
        del path, problems  # every value is allowed
        return item.plain()

    def schema(self) -> Schema:
        return {}


LONGEST = 86_400.0
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SPELLED = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)\s*(ms|s|m|h)?")
_HINT = "write seconds as a number, or `500ms`, `60s`, `2.5m`, `1h`"


class Duration:
    """A time above zero and up to a day, read as seconds."""

    further_patterns: tuple[str, ...] = ()
    """Texts that are accepted beside a spelled duration, as patterns."""

    def __init__(self, *, most: float | None = LONGEST) -> None:
        self.most = most

    def read(self, item: Item, path: Path, problems: Problems) -> Any:
        value = unquoted(item)
        seconds: float | None = None
        # A truth value is a number to Python; it is no duration.
        if type(value) is int or type(value) is float:
            seconds = float(value)
        elif type(value) is str and (match := _SPELLED.fullmatch(value.strip())):
            seconds = float(match[1]) * _UNITS[match[2] or "s"]
        if seconds is None:
            problems.wrong(
                item, path, f"{name_of(path)} must be a duration, not {sort_of(value)}", hint=_HINT
            )
        elif seconds <= 0:
            problems.wrong(item, path, f"{name_of(path)} must be longer than nothing", hint=_HINT)
        elif self.most is not None and seconds > self.most:
            problems.wrong(
                item, path, f"{name_of(path)} must be at most 24 hours", hint="use `limits` for the whole run"
            )
        else:
            return seconds
        return INVALID

    def schema(self) -> Schema:
        number: Schema = {"type": "number", "exclusiveMinimum": 0}
        if self.most is not None:
            number["maximum"] = self.most
        texts = [f"^\\s*{_SPELLED.pattern}\\s*$", r"\$\{", *self.further_patterns]
        return {
            "anyOf": [number, {"type": "string", "pattern": "|".join(f"(?:{pattern})" for pattern in texts)}]
        }
