"""What a single value of a file may be: text, template, number, truth value, word, or anything.

Every type can read an item and can say itself as JSON Schema. A value that came from an environment
variable is text; where a number or a truth value is wanted it is read as one.
"""

import re
from typing import Any

from failwell.workflow.compile.values import (
    VARIABLE,
    WRONG,
    Schema,
    name_of,
    nearest,
    quotes,
    shown,
    sort_of,
    template_of,
    templates_in,
    unquoted,
)
from failwell.workflow.source.problems import Problems
from failwell.workflow.source.tree import Item, Path


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
            on.wrong(item, at, f"{name_of(at)} must be text, not {sort_of(value)}", hint=quotes(value))
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
            on.wrong(item, at, f"{name_of(at)} must be text, not {sort_of(value)}", hint=quotes(value))
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
        return {"anyOf": [made, VARIABLE]}


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
        return {"anyOf": [{"type": "boolean"}, VARIABLE]}


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
        return {"anyOf": [words, *others, VARIABLE]}


class Free:
    """Any JSON; with `templated`, its texts are templates."""

    def __init__(self, *, templated: bool = False) -> None:
        self.templated = templated

    def read(self, item: Item, at: Path, on: Problems) -> Any:
        del at, on  # whatever it is, it is right
        return templates_in(item) if self.templated else item.plain()

    def schema(self) -> Schema:
        return {}
