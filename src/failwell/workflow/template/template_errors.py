"""The sorts of mistakes that a template can have.

A mistake carries its sort and a line and nothing else: no piece of the source, no name, no value.
"""

from enum import StrEnum


class Sort(StrEnum):
    """The sort of a mistake, in the words a message uses."""

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


TIMEOUTS = frozenset({Sort.STEPS})
LIMITS = frozenset({Sort.MEMORY, Sort.DEPTH, Sort.LENGTH, Sort.RESULT})


class TemplateMistake(Exception):
    """A template cannot be parsed or rendered."""

    def __init__(self, sort: Sort, line: int | None = None) -> None:
        super().__init__(sort)
        self.sort = sort
        self.line = line
