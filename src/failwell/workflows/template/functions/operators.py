"""The operators of templates in Python: comparisons of values that Python orders, paths with missing steps, exact arithmetic."""

import operator
from collections.abc import Callable
from typing import Any, cast

from failwell.workflows.template.data_views import (
    MISSING_VALUE,
    BigNumber,
    behind,
    is_missing,
    type_name,
    unwrapped,
    view,
)
from failwell.workflows.template.functions.filters import bounded, format_text
from failwell.workflows.template.lookup import NEVER_RAN
from failwell.workflows.template.memory_budget import LARGEST, spend, spend_text
from failwell.workflows.template.template_errors import MistakeType, TemplateMistake

_MAX_BITS = 14_280
"""Of a whole number: as many as Python prints."""

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def compare(value: Any, start: int, end: int, *rest: Any) -> bool:
    """Whether a chain of comparisons holds; `rest` are operators and operands in turn."""
    left = value
    for index in range(0, len(rest), 2):
        right = rest[index + 1]
        if not _holds(rest[index], left, right, (start, end)):
            return False
        left = right
    return True


def _holds(name: str, left: Any, right: Any, place: tuple[int, int] | None) -> bool:
    if is_missing(left) or is_missing(right):
        raise TemplateMistake(MistakeType.UNDEFINED, place=place)
    left, right = unwrapped(left), unwrapped(right)
    if name in {"in", "not in"}:
        return _contains(right, left, place, name) is (name == "in")
    try:
        return bool(_COMPARISONS[name](left, right))
    except TypeError:
        raise uncomparable(name, left, right, place) from None


def _contains(container: Any, item: Any, place: tuple[int, int] | None, name: str) -> bool:
    if isinstance(container, str):
        if isinstance(item, str):
            return item in container
    elif isinstance(container, list | tuple):
        spend(0)
        return item in container
    elif isinstance(container, dict):
        return isinstance(item, str | int | float | None) and item in container
    raise uncomparable(name, item, container, place)


def uncomparable(name: str, left: Any, right: Any, place: tuple[int, int] | None = None) -> TemplateMistake:
    """The mistake for an operator between two values that it does not take."""
    types = f"`{name}` between {type_name(left)} and {type_name(right)}"
    mistake_type = MistakeType.COMPARISON if name in _COMPARISONS else MistakeType.OPERATION
    if name in {"in", "not in"}:
        mistake_type = MistakeType.COMPARISON
    return TemplateMistake(mistake_type, detail=types, place=place)


def _test(name: str) -> Callable[[Any, Any], bool]:
    def call(value: Any, other: Any) -> bool:
        return _holds(name, value, other, None)

    return call


# ---------------------------------------------------------------- paths


def path(value: Any, *steps: Any) -> Any:
    """What is at a path below a value; missing if a step is missing."""
    for step in steps:
        if is_missing(value) or is_missing(step):
            return MISSING_VALUE
        value = _step(behind(value), step)
    return view(value)


def _step(value: Any, step: Any) -> Any:
    if isinstance(value, dict):
        is_key = isinstance(step, str | int | float | None)
        return cast("dict[Any, Any]", value).get(step, MISSING_VALUE) if is_key else MISSING_VALUE
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        index = int(step) if isinstance(step, str) and step.isdecimal() else step
        return items[index] if type(index) is int and -len(items) <= index < len(items) else MISSING_VALUE
    return MISSING_VALUE


def has_run(value: Any) -> bool:
    """Whether a marked value is none of a step that has not run. Any other undefined value is a mistake."""
    if value is MISSING_VALUE:
        raise TemplateMistake(MistakeType.UNDEFINED)
    return value is not NEVER_RAN


def is_defined(value: Any) -> bool:
    """Whether a marked value exists; null does."""
    return not is_missing(value)


def is_undefined(value: Any) -> bool:
    """Whether a marked value does not exist."""
    return is_missing(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, BigNumber) or (isinstance(value, int | float) and not isinstance(value, bool))


def _is_callable(_: Any) -> bool:
    return False


TESTS: dict[str, Callable[..., bool]] = {
    **{name: _test(name) for name in ("<", "<=", ">", ">=", "in")},
    **dict.fromkeys(("lt", "lessthan"), _test("<")),
    **dict.fromkeys(("gt", "greaterthan"), _test(">")),
    "le": _test("<="),
    "ge": _test(">="),
    "_defined": is_defined,
    "_undefined": is_undefined,
    "_ran": has_run,
    "number": _is_number,
    "callable": _is_callable,
}


# ---------------------------------------------------------------- arithmetic


def arithmetic(value: Any, start: int, end: int, *rest: Any) -> Any:
    """The result of operators of one precedence, from left to right."""
    result = unwrapped(value)
    for index in range(0, len(rest), 2):
        name, right = rest[index], unwrapped(rest[index + 1])
        if is_missing(result) or is_missing(right):
            raise TemplateMistake(MistakeType.UNDEFINED, place=(start, end))
        try:
            result = _bounded_number(_ARITHMETIC[name](result, right))
        except TypeError:
            raise uncomparable(name, result, right, (start, end)) from None
        except ZeroDivisionError:
            raise TemplateMistake(
                MistakeType.OPERATION, detail="division by zero", place=(start, end)
            ) from None
        except OverflowError:
            detail = "a number that is too large for a fraction"
            raise TemplateMistake(MistakeType.OPERATION, detail=detail, place=(start, end)) from None
    return spend_text(result) if isinstance(result, str) else view(bounded(result))


def _bounded_number(value: Any) -> Any:
    # Each product can double the digits, so a loop would exhaust memory.
    if type(value) is int and value.bit_length() > _MAX_BITS:
        raise TemplateMistake(MistakeType.MEMORY)
    return value


def negate(value: Any, start: int, end: int) -> Any:
    """A number with its sign changed."""
    plain = unwrapped(value)
    if not isinstance(plain, int | float):
        detail = f"`-` before {type_name(plain)}"
        raise TemplateMistake(MistakeType.OPERATION, detail=detail, place=(start, end))
    return view(-plain)


def absolute(value: Any) -> Any:
    """A number without its sign."""
    return view(abs(unwrapped(value)))


def total(value: Any, attribute: Any = None, start: Any = 0) -> Any:
    """The sum of a list."""
    items = unwrapped(value)
    if not isinstance(items, list | tuple):
        raise TemplateMistake(MistakeType.OPERATION, detail=f"`sum` of {type_name(items)}")
    result = start
    for item in cast("list[Any]", items):
        part = item if attribute is None else unwrapped(path(item, *str(attribute).split(".")))
        try:
            result = result + part
        except TypeError:
            raise uncomparable("+", result, part) from None
    return view(result)


def big(digits: str) -> Any:
    """A whole number that the engine cannot hold."""
    return view(int(digits))


def _plus(left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str) and len(left) + len(right) > LARGEST:
        raise TemplateMistake(MistakeType.MEMORY)
    return left + right


def _times(left: Any, right: Any) -> Any:
    for text, count in ((left, right), (right, left)):
        if isinstance(text, str | list) and isinstance(count, int) and len(text) * count > LARGEST:  # pyright: ignore[reportUnknownArgumentType]
            raise TemplateMistake(MistakeType.MEMORY)
    return left * right


def _modulo(left: Any, right: Any) -> Any:
    if not isinstance(left, str):
        return left % right
    if isinstance(right, dict):
        return format_text(left, **{str(key): part for key, part in cast("dict[Any, Any]", right).items()})
    return format_text(left, *(cast("list[Any]", right) if isinstance(right, list | tuple) else [right]))


def _power(left: Any, right: Any) -> Any:
    if (
        isinstance(left, int)
        and isinstance(right, int)
        and right > 0
        and left.bit_length() * right > _MAX_BITS
    ):
        raise TemplateMistake(MistakeType.MEMORY)
    return left**right


def _joined(left: Any, right: Any) -> str:
    texts = [part if isinstance(part, str) else str(part) for part in (left, right)]
    if len(texts[0]) + len(texts[1]) > LARGEST:
        raise TemplateMistake(MistakeType.MEMORY)
    return texts[0] + texts[1]


_DIVISIONS: Any = operator
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": _plus, "-": operator.sub, "*": _times, "/": _DIVISIONS.truediv, "//": _DIVISIONS.floordiv, "%": _modulo,
    "**": _power, "~": _joined,
}  # fmt: skip
