"""Types of single values: text, number, boolean, choice, duration, or any JSON.

A type reads an item of the tree and describes itself as JSON Schema. The value of an environment variable is
text; where a number or a boolean is expected, it is parsed as one.
"""

import re
from typing import Any, Final, Protocol

from failwell.files.item_tree import Item, Path
from failwell.files.mistakes import MistakeLog
from failwell.files.suggestions import nearest
from failwell.files.yaml_reader import NotJson, scalar_value

Schema = dict[str, Any]


class Invalid:
    """The result of reading a value that has a mistake. `partial` is the part that could be read, `None` if none could."""

    __slots__ = ("partial",)

    def __init__(self, partial: Any = None) -> None:
        self.partial = partial

    def __repr__(self) -> str:
        return f"Invalid({self.partial!r})"


INVALID: Final = Invalid()
VARIABLE: Final[Schema] = {"type": "string", "pattern": r"\$\{"}
"""A text with an environment variable, allowed where another type is expected."""


class Type(Protocol):
    """The type of a value in a file."""

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        """The value, or `Invalid` after a mistake was added to `log`."""
        ...

    def schema(self) -> Schema:
        """The type as JSON Schema."""
        ...


def type_name(value: object) -> str:
    """The type of a value, as messages name it."""
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


def typed_value(item: Item) -> Any:
    """The value of an item. The text of a variable is parsed like an unquoted scalar."""
    if item.from_env and type(item.value) is str:
        try:
            return scalar_value(item.value)
        except NotJson:
            return item.value
    return item.value


def quotable(item: Item) -> str:
    """A value that a message may quote: short, printable and not from the environment; else nothing."""
    if item.from_env or type(item.value) in (dict, list):
        return ""
    text = item.value if type(item.value) is str else type_name(item.value)
    return text if len(text) <= 60 and text.isprintable() else ""


def name_of(path: Path) -> str:
    """The last key of a path, as messages quote it."""
    while path:
        path, step = path
        if isinstance(step, str):
            return f"`{step[:60]}`"
    return "the file"


def quote_hint(value: object) -> str:
    """The hint for a number or boolean where text is expected."""
    return "put it in quotes to make it text" if isinstance(value, bool | int | float) else ""


class Text:
    """A text. `pattern` must match all of it; `must` describes the pattern in messages."""

    def __init__(
        self, pattern: str | None = None, must: str = "", *, allow_empty: bool = False, hint: str = ""
    ) -> None:
        self.pattern = None if pattern is None else re.compile(pattern)
        self.must = must
        self.allow_empty = allow_empty
        self.hint = hint

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        value = item.value
        if type(value) is not str:
            log.add_at(
                item, path, f"{name_of(path)} must be text, not {type_name(value)}", hint=quote_hint(value)
            )
        elif not value and not self.allow_empty:
            log.add_at(item, path, f"{name_of(path)} must not be empty")
        elif self.pattern is not None and self.pattern.fullmatch(value) is None:
            quoted = f", not `{quotable(item)}`" if quotable(item) else ""
            log.add_at(item, path, f"{name_of(path)} must be {self.must}{quoted}", hint=self.hint)
        else:
            return value
        return INVALID

    def schema(self) -> Schema:
        schema: Schema = {"type": "string"}
        if not self.allow_empty:
            schema["minLength"] = 1
        if self.pattern is not None:
            schema["pattern"] = f"^(?:{self.pattern.pattern})$"
        return schema


_LARGEST = 2**63
"""Settings are stored and passed on in 64 bits; data are not."""


class Number:
    """A number between two bounds. `integer` refuses fractions; `above` is an exclusive lower bound."""

    def __init__(
        self,
        minimum: float | None = None,
        maximum: float | None = None,
        *,
        above: float | None = None,
        integer: bool = False,
    ) -> None:
        self.minimum = minimum
        self.maximum = maximum
        self.above = above
        self.integer = integer

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        value = typed_value(item)
        # `bool` is a subclass of `int`, so the exact type is compared.
        if type(value) is int or (type(value) is float and not self.integer):
            is_large = type(value) is int and not -_LARGEST <= value < _LARGEST
            if self._fits(value) and not is_large:
                return value
            actual = " of at most 64 bits" if is_large else ""
        else:
            actual = f", not {type_name(value)}"
        hint = "write the number without quotes" if type(value) is str and not item.from_env else ""
        log.add_at(item, path, f"{name_of(path)} must be {self._words()}{actual}", hint=hint)
        return INVALID

    def _fits(self, value: float) -> bool:
        return (
            (self.minimum is None or value >= self.minimum)
            and (self.maximum is None or value <= self.maximum)
            and (self.above is None or value > self.above)
        )

    def _words(self) -> str:
        kind = "a whole number" if self.integer else "a number"
        if self.minimum is not None and self.maximum is not None:
            return f"{kind} between {self.minimum:,} and {self.maximum:,}"
        bounds = [
            f"{word} {bound:,}"
            for word, bound in (("at least", self.minimum), ("above", self.above), ("at most", self.maximum))
            if bound is not None
        ]
        return " ".join([kind, " and ".join(bounds)]).strip()

    def schema(self) -> Schema:
        schema: Schema = {"type": "integer" if self.integer else "number"}
        for key, bound in (
            ("minimum", self.minimum),
            ("maximum", self.maximum),
            ("exclusiveMinimum", self.above),
        ):
            if bound is not None:
                schema[key] = bound
        return {"anyOf": [schema, VARIABLE]}


class Flag:
    """`true` or `false`."""

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        value = typed_value(item)
        if type(value) is bool:
            return value
        hint = (
            "write `true` or `false`" if type(value) is not str else "write `true` or `false`, without quotes"
        )
        log.add_at(item, path, f"{name_of(path)} must be true or false, not {type_name(value)}", hint=hint)
        return INVALID

    def schema(self) -> Schema:
        return {"anyOf": [{"type": "boolean"}, VARIABLE]}


class Choice:
    """One of a fixed set of words."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        value = item.value
        if type(value) is str and value in self.words:
            return value
        near = "" if item.from_env or log.is_full or type(value) is not str else nearest(value, self.words)
        log.add_at(
            item,
            path,
            f"{name_of(path)} must be one of {', '.join(self.words)}",
            hint=f"did you mean `{near}`?" if near else "",
        )
        return INVALID

    def schema(self) -> Schema:
        return {"anyOf": [{"enum": list(self.words)}, VARIABLE]}


class AnyJson:
    """Any JSON value."""

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        del path, log  # every value is allowed
        return item.plain()

    def schema(self) -> Schema:
        return {}


LONGEST = 86_400.0
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)\s*(ms|s|m|h)?")
_HINT = "write seconds as a number, or `500ms`, `60s`, `2.5m`, `1h`"


class Duration:
    """A duration above zero and up to a day, in seconds."""

    further_patterns: tuple[str, ...] = ()
    """Further patterns of text that are accepted."""

    def __init__(self, *, maximum: float | None = LONGEST) -> None:
        self.maximum = maximum

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        value = typed_value(item)
        seconds: float | None = None
        if type(value) is int or type(value) is float:
            seconds = float(value)
        elif type(value) is str and (match := _DURATION.fullmatch(value.strip())):
            seconds = float(match[1]) * _UNITS[match[2] or "s"]
        if seconds is None:
            log.add_at(item, path, f"{name_of(path)} must be a duration, not {type_name(value)}", hint=_HINT)
        elif seconds <= 0:
            log.add_at(item, path, f"{name_of(path)} must be longer than nothing", hint=_HINT)
        elif self.maximum is not None and seconds > self.maximum:
            log.add_at(
                item, path, f"{name_of(path)} must be at most 24 hours", hint="use `limits` for the whole run"
            )
        else:
            return seconds
        return INVALID

    def schema(self) -> Schema:
        number: Schema = {"type": "number", "exclusiveMinimum": 0}
        if self.maximum is not None:
            number["maximum"] = self.maximum
        texts = [f"^\\s*{_DURATION.pattern}\\s*$", r"\$\{", *self.further_patterns]
        return {
            "anyOf": [number, {"type": "string", "pattern": "|".join(f"(?:{pattern})" for pattern in texts)}]
        }
