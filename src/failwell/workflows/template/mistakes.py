"""The types of mistakes in templates.

A mistake has a type, a line, and words about it. The words contain names and types, and never a value.
"""

import re
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
        self, mistake_type: MistakeType, line: int | None = None, *, detail: str | None = None
    ) -> None:
        super().__init__(mistake_type)
        self.type = mistake_type
        self.line = line
        self.detail = detail
        """Names and types that help to find it; never a value."""

    @property
    def words(self) -> str:
        """The type and the details."""
        return self.type.value if self.detail is None else f"{self.type.value}: {self.detail}"


TYPE_NAMES = {
    "bool": "boolean", "str": "text", "Markup": "text", "int": "number", "float": "number", "list": "list",
    "tuple": "list", "dict": "mapping", "NoneType": "null",
}  # fmt: skip
_ORDERED = re.compile(r"'([<>]=?)' not supported between instances of '(\w+)' and '(\w+)'")


def type_name(value: object) -> str:
    """The type of a value, as messages name it."""
    return TYPE_NAMES.get(type(value).__name__, "object")


def uncomparable(name: str, left: object, right: object) -> TemplateMistake:
    """The mistake for an operator between two values that it does not take."""
    is_comparison = name in {"<", "<=", ">", ">=", "==", "!=", "in", "not in"}
    mistake_type = MistakeType.COMPARISON if is_comparison else MistakeType.OPERATION
    return TemplateMistake(mistake_type, detail=f"`{name}` between {type_name(left)} and {type_name(right)}")


def failed_call(name: str, value: object, error: Exception) -> TemplateMistake:
    """The mistake for a filter, a function or a method that raised `error`, whose text may quote data."""
    ordered = _ORDERED.match(str(error)) if isinstance(error, TypeError) else None
    if ordered is not None:
        left, right = (TYPE_NAMES.get(word, "object") for word in ordered.groups()[1:])
        return TemplateMistake(MistakeType.COMPARISON, detail=f"`{ordered[1]}` between {left} and {right}")
    return TemplateMistake(MistakeType.OPERATION, detail=f"`{name}` of {type_name(value)}")
