"""The filters, tests and functions of templates: Jinja2's, those of conductor, and Python's for conditions.

What calls Python for a value counts it first; see `limits`.
"""

import json
import math
import operator
from collections.abc import Callable, Iterable
from functools import partial, wraps
from typing import Any, cast

from jinja2 import Undefined, pass_environment
from jinja2.exceptions import FilterArgumentError
from jinja2.filters import FILTERS, make_attrgetter
from jinja2.tests import TESTS

from failwell.workflows.template import limits
from failwell.workflows.template.mistakes import MistakeType, TemplateMistake, failed_call

FAILURES = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, AssertionError)
"""What a call of Python raises for values that it does not take."""
_LONGEST_NUMBER = 4_300
_JINJA_FILTERS = cast("dict[str, Callable[..., Any]]", FILTERS)
_JINJA_TESTS = cast("dict[str, Callable[..., Any]]", TESTS)


def filter_of(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that counts what it does."""
    lead = int(hasattr(function, "jinja_pass_arg"))

    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        given = [*arguments]
        if len(given) > lead:
            extra = [*given[lead + 1 :], *keywords.values()]
            given[lead] = limits.check_filter(name, given[lead], extra)
        problem: TemplateMistake
        try:
            return limits.counted(function(*given, **keywords))
        except (FilterArgumentError, *FAILURES) as error:
            problem = failed_call(name, given[lead] if len(given) > lead else None, error)
        raise problem

    return call


def _default(value: Any, default: Any = "", boolean: Any = False) -> Any:
    """`default`: null is replaced as well, since an optional input without a value is null."""
    return default if isinstance(value, Undefined) or value is None or (boolean and not value) else value


def dumps(value: Any, indent: Any = None, **options: Any) -> str:
    """`value` as JSON. What an indentation adds is counted while it is written."""
    if indent is None:
        return json.dumps(value, **options)
    if isinstance(indent, str) and len(indent) > 16:
        raise TemplateMistake(MistakeType.MEMORY)
    pieces: list[str] = []
    size = 0
    for piece in json.JSONEncoder(indent=indent, **options).iterencode(value):
        pieces.append(piece)
        size += len(piece)
        if size > limits.LARGEST:
            raise TemplateMistake(MistakeType.MEMORY)
    return "".join(pieces)


def _json(value: Any, indent: Any = 2) -> str:
    return dumps(value, indent, ensure_ascii=False)


def _int(value: Any, default: Any = 0, base: Any = 10) -> Any:
    if isinstance(value, str) and len(value) > _LONGEST_NUMBER:
        return default
    return _JINJA_FILTERS["int"](value, default, base)


def _round(value: Any, precision: Any = 0, method: Any = "common") -> Any:
    # Python does not limit the size of 10 ** precision.
    if not isinstance(precision, int) or abs(precision) > 300:
        raise FilterArgumentError
    return _JINJA_FILTERS["round"](value, precision, method)


@pass_environment
def _sum(environment: Any, value: Iterable[Any], attribute: Any = None, start: Any = 0) -> Any:
    read = make_attrgetter(environment, attribute)
    for item in value:
        start = limits.calculated("+", start, read(item))
    return start


def _format(value: Any, *arguments: Any, **keywords: Any) -> str:
    if arguments and keywords:
        raise FilterArgumentError
    return limits.formatted(limits.text_of(value), keywords or arguments)


# ---------------------------------------------------------------- what expressions are rewritten to


def spend(steps: int) -> bool:
    """Count the steps of a block before it is rendered."""
    limits.step(abs(steps))
    return True


def compared(left: Any, *rest: Any) -> bool:
    """Whether a chain of comparisons holds; `rest` are operators and operands in turn."""
    for name, right in zip(rest[::2], rest[1::2], strict=True):
        if not limits.holds(name, left, right):
            return False
        left = right
    return True


def concatenated(*parts: Any) -> str:
    """`~`."""
    limits.step()
    return limits.joined(limits.text_of(part) for part in parts)


def cut(value: Any, start: Any, stop: Any, step: Any) -> Any:
    """`value[start:stop:step]`."""
    limits.step()
    try:
        return limits.counted(value[start:stop:step])
    except FAILURES as error:
        problem = failed_call("[:]", value, error)
    raise problem


def key(value: Any) -> Any:
    """A key of a mapping that a template writes."""
    if isinstance(value, str | int | float | None):
        return value
    raise TemplateMistake(MistakeType.OPERATION, detail="a key of a mapping that is no text or number")


INNER: dict[str, Callable[..., Any]] = {
    "_spend": spend, "_compared": compared, "_concatenated": concatenated, "_cut": cut, "_key": key,
}  # fmt: skip
ALL_FILTERS: dict[str, Callable[..., Any]] = {
    **{
        name: filter_of(name, function)
        for name, function in (
            _JINJA_FILTERS | {
                "default": _default, "d": _default, "json": _json, "int": _int, "round": _round, "sum": _sum, "format": _format,
            }
        ).items()
        if name != "random"
    },
    **INNER,
}  # fmt: skip


# ---------------------------------------------------------------- tests and functions

_OPERATORS = {
    "==": "==", "eq": "==", "equalto": "==", "!=": "!=", "ne": "!=", ">": ">", "gt": ">", "greaterthan": ">", ">=": ">=", "ge": ">=",
    "<": "<", "lt": "<", "lessthan": "<", "<=": "<=", "le": "<=", "in": "in",
}  # fmt: skip


def _test_of(name: str) -> Callable[[Any, Any], bool]:
    return lambda value, other: limits.holds(name, value, other)


def _test(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*arguments: Any) -> Any:
        problem: TemplateMistake
        try:
            return function(*arguments)
        except FAILURES as error:
            lead = int(hasattr(function, "jinja_pass_arg"))
            problem = failed_call(f"is {name}", arguments[lead], error)
        raise problem

    return call


ALL_TESTS: dict[str, Callable[..., Any]] = {
    **{name: _test(name, function) for name, function in _JINJA_TESTS.items()},
    **{name: _test_of(symbol) for name, symbol in _OPERATORS.items()},
    **{
        name: partial(operator.is_, constant)
        for name, constant in (("None", None), ("True", True), ("False", False))
    },
}


# Functions instead of Python's types, whose methods a template could call.


def _int_function(value: Any = 0) -> int:
    if isinstance(value, str) and len(value) > _LONGEST_NUMBER:
        raise ValueError
    return int(value)


def _float_function(value: Any = 0.0) -> float:
    result = float(value)
    if math.isnan(result):
        raise ValueError
    return result


def _str_function(value: Any = "") -> str:
    return limits.text_of(value)


def _bool_function(value: Any = False) -> bool:
    return bool(value)


def _len_function(value: Any) -> int:
    return len(value)


def _abs_function(value: Any) -> Any:
    return abs(value)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "int": _int_function, "float": _float_function, "str": _str_function, "bool": _bool_function, "len": _len_function,
    "abs": _abs_function,
}  # fmt: skip
FUNCTION_NAMES = {function: name for name, function in FUNCTIONS.items()}
