"""The types of mistakes in templates.

A mistake has a type, a line, and words about it. The words contain names and types, and never a value.
"""

from enum import StrEnum


class MistakeType(StrEnum):
    """The type of a mistake, as messages name it."""

    SYNTAX = "syntax error"
    UNDEFINED = "undefined value"
    COMPARISON = "comparison of different types"
    OPERATION = "operation that these values do not allow"
    ARGUMENTS = "wrong arguments"
    UNKNOWN_FILTER = "unknown filter"
    UNKNOWN_TEST = "unknown test"
    UNKNOWN_FUNCTION = "unknown function or method"
    PART = "included part that cannot be read"
    STEPS = "too many steps"
    MEMORY = "too much text or too many items"
    DEPTH = "too deep a nesting"
    LENGTH = "source that is too long"
    RESULT = "result that is no JSON value"


TIMEOUTS = frozenset({MistakeType.STEPS})
LIMITS = frozenset({MistakeType.MEMORY, MistakeType.DEPTH, MistakeType.LENGTH, MistakeType.RESULT})


class TemplateMistake(Exception):
    """A template cannot be parsed or rendered."""

    def __init__(
        self,
        mistake_type: MistakeType,
        line: int | None = None,
        *,
        detail: str | None = None,
        place: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(mistake_type)
        self.type = mistake_type
        self.line = line
        self.detail = detail
        """Names and types that help to find it; never a value."""
        self.place = place
        """Start and end of the expression in the text, if they are known."""
        self.engine_types: str | None = None
        """The types that the engine refused, if it named any."""

    @property
    def words(self) -> str:
        """The type and the details."""
        return self.type.value if self.detail is None else f"{self.type.value}: {self.detail}"
