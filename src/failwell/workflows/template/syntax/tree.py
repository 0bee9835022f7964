"""The tree of an expression in a template."""

from collections.abc import Iterator
from typing import Any


class Expression:
    """A part of an expression, with its place in the text. What `parts` holds depends on the kind.

    - `const`, `name`: the value; no parts.
    - `list`, `tuple`, `dict`, `group`: the items.
    - `chain`: what it begins with, and the `Step`s after it.
    - `filters`: what is filtered, and the `Step`s for the filters.
    - `test`: what is tested, and its arguments; `value` is the name.
    - `arithmetic`, `compare`: the operands, between them the `operators`.
    - `and`, `or`, `not`, `negate`: the operands.
    - `if`: the value, the condition, and the other value if there is one.
    """

    __slots__ = ("end", "is_negated", "kind", "line", "operators", "parts", "start", "value")

    def __init__(
        self, kind: str, start: int, end: int, line: int, parts: "list[Any]", value: Any = None
    ) -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.line = line
        self.parts = parts
        self.value = value
        self.operators: list[tuple[str, int, int]] = []
        """Each operator with its place; of a test, its name."""
        self.is_negated = False
        """Whether a test has `not`."""

    def inner(self) -> "Iterator[Expression]":
        """The expressions directly inside."""
        for part in self.parts:
            if isinstance(part, Step):
                yield from part.arguments
            else:
                yield part

    def walk(self) -> "Iterator[Expression]":
        """This expression and every one inside."""
        yield self
        for part in self.inner():
            yield from part.walk()


class Step:
    """An attribute, an item, a slice, a call or a filter."""

    __slots__ = ("arguments", "end", "keywords", "kind", "name", "name_start", "opens", "start")

    def __init__(
        self,
        kind: str,
        start: int,
        end: int,
        arguments: list[Expression],
        name: str = "",
        name_start: int = 0,
    ) -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.arguments = arguments
        self.name = name
        self.name_start = name_start
        self.opens = 0
        """The end of the bracket that opens the arguments; 0 without one."""
        self.keywords: frozenset[int] = frozenset()
        """The indexes of arguments with a name."""

    def names_argument(self, index: int) -> bool:
        """Whether an argument up to `index` has a name, so that positions do not count."""
        return any(keyword <= index for keyword in self.keywords)
