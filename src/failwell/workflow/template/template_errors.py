"""The types of mistakes in templates.

A mistake has a type and a line, and quotes nothing: no source, no name, no value.
"""

from enum import StrEnum


class MistakeType(StrEnum):
    """The type of a mistake, as messages name it."""

    SYNTAX = "syntax error"
    UNDEFINED = "undefined value"
    OPERATION = "operation that these values do not allow"
    ARGUMENTS = "wrong arguments"
    UNKNOWN_FILTER = "unknown filter"
    UNKNOWN_TEST = "unknown test"
    UNKNOWN_FUNCTION = "call of something that is no function"
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

    def __init__(self, mistake_type: MistakeType, line: int | None = None) -> None:
        super().__init__(mistake_type)
        self.type = mistake_type
        self.line = line
