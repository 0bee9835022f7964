"""How values behave: what a dot reaches, what an operator gives, how a value is written.

Everything here takes plain JSON and what a template makes itself, and checks types exactly: there is
no attribute lookup on a Python object anywhere in this language.
"""

import operator
from collections.abc import Callable
from typing import Any

from failwell.workflow.language.budget import ITEM, WIDEST, Budget, Pair
from failwell.workflow.language.mistakes import Mistake, Sort


class _Undefined:
    """What a name or a key without a value gives. Only `default` and `is defined` can take it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNDEFINED"


UNDEFINED = _Undefined()


class Thing:
    """Something that only templates have: a loop, a namespace, a macro. It has fields, and no text."""

    __slots__ = ()

    def field(self, name: str) -> Any:
        """The value of a field, or `UNDEFINED`."""
        raise NotImplementedError


class Function(Thing):
    """A thing that can be called."""

    __slots__ = ()

    def field(self, name: str) -> Any:  # noqa: ARG002 - it has none
        return UNDEFINED

    def call(self, budget: Budget, args: list[Any], named: dict[str, Any]) -> Any:
        """What the call gives."""
        raise NotImplementedError


def attribute(value: Any, name: str) -> Any:
    """`value.name`: a key of a mapping, or a field of a thing of the template."""
    kind = type(value)
    if kind is dict:
        return value.get(name, UNDEFINED)
    if isinstance(value, Thing):
        return value.field(name)
    if kind is Pair:
        return value[0] if name == "grouper" else value[1] if name == "list" else UNDEFINED
    if value is UNDEFINED:
        raise Mistake(Sort.UNDEFINED)
    return UNDEFINED


def item(value: Any, key: Any) -> Any:
    """`value[key]`."""
    kind = type(value)
    if kind is dict:
        try:
            return value.get(key, UNDEFINED)
        except TypeError:
            raise Mistake(Sort.OPERATION) from None
    if type(key) is int and kind in _INDEXED:
        try:
            return value[key]
        except IndexError:
            return UNDEFINED
    if type(key) is str:
        return attribute(value, key)
    if value is UNDEFINED or key is UNDEFINED:
        raise Mistake(Sort.UNDEFINED)
    return UNDEFINED


_INDEXED = frozenset({str, list, tuple, Pair})


def span(value: Any, start: Any, stop: Any, step: Any, budget: Budget) -> Any:
    """`value[start:stop:step]`."""
    if type(value) not in _INDEXED:
        raise Mistake(Sort.UNDEFINED if value is UNDEFINED else Sort.OPERATION)
    try:
        cut = value[slice(start, stop, step)]
    except (TypeError, ValueError):
        raise Mistake(Sort.OPERATION) from None
    return budget.text(cut) if type(cut) is str else budget.items(cut)


def text_of(value: Any, budget: Budget) -> str:
    """`value` as it is written into the output: as Python writes it."""
    kind = type(value)
    if kind is str:
        return value
    if kind is bool or value is None or kind is float:
        return str(value)
    if kind is int:
        return str(budget.number(value))
    if kind in _WRITTEN:
        budget.weigh(value)
        return budget.text(repr(value))
    raise Mistake(Sort.UNDEFINED if value is UNDEFINED else Sort.RESULT)


_WRITTEN = frozenset({list, dict, tuple, Pair})


def truth(value: Any) -> bool:
    """Whether `value` counts as true."""
    if value is UNDEFINED:
        raise Mistake(Sort.UNDEFINED)
    return bool(value)


def listed(value: Any, budget: Budget) -> list[Any] | tuple[Any, ...]:
    """What a loop goes through: items of a list, keys of a mapping, characters of a text."""
    kind = type(value)
    if kind is list or kind is tuple or kind is Pair:
        return value
    if kind is dict or kind is str:
        return budget.items(list(value))
    raise Mistake(Sort.UNDEFINED if value is UNDEFINED else Sort.OPERATION)


# ---------------------------------------------------------------- operators

_NUMBERS = frozenset({int, float, bool})
_PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "-": operator.sub,
    "/": operator.truediv,
    "//": operator.floordiv,
}


def calculate(sign: str, left: Any, right: Any, budget: Budget) -> Any:
    """`left sign right`."""
    kinds = (type(left), type(right))
    if kinds[0] in _NUMBERS and kinds[1] in _NUMBERS:
        return budget.number(_number(sign, left, right))
    if left is UNDEFINED or right is UNDEFINED:
        raise Mistake(Sort.UNDEFINED)
    if sign == "+" and kinds[0] is kinds[1] and kinds[0] in _GROWING:
        budget.take(len(left) + len(right) if kinds[0] is str else ITEM * (len(left) + len(right)))
        return left + right
    if sign == "*":
        return _repeated(left, right, budget)
    if sign == "%" and kinds[0] is str:
        from failwell.workflow.language.printf import printf

        return printf(left, right, budget)
    raise Mistake(Sort.OPERATION)


_GROWING = frozenset({str, list, tuple})


def _number(sign: str, left: Any, right: Any) -> Any:
    if sign == "+":
        return left + right
    if sign == "*":
        return left * right
    if sign == "%":
        return left % right
    if sign == "**":
        if type(right) is not float and type(left) is not float and right * max(left.bit_length(), 1) > WIDEST:
            raise Mistake(Sort.MEMORY)
        made = left**right
        if type(made) is complex:
            raise Mistake(Sort.OPERATION)
        return made
    return _PLAIN[sign](left, right)


def _repeated(left: Any, right: Any, budget: Budget) -> Any:
    if type(left) is int:
        left, right = right, left
    if type(left) not in _GROWING or type(right) is not int:
        raise Mistake(Sort.OPERATION)
    budget.take(max(right, 0) * len(left) * (1 if type(left) is str else ITEM))
    return left * right


def compare(sign: str, left: Any, right: Any, budget: Budget) -> bool:
    """`left sign right`, for signs that give true or false."""
    if left is UNDEFINED or right is UNDEFINED:
        raise Mistake(Sort.UNDEFINED)
    if sign == "in" or sign == "not in":
        return contains(right, left, budget) is (sign == "in")
    if type(left) in _WRITTEN and type(right) in _WRITTEN:
        budget.weigh(left)
        budget.weigh(right)
    if sign == "==":
        return bool(left == right)
    if sign == "!=":
        return bool(left != right)
    return is_ordered(sign, left, right)


_ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def is_ordered(sign: str, left: Any, right: Any) -> bool:
    """Whether two values of one sort stand in this order."""
    try:
        return bool(_ORDERS[sign](left, right))
    except TypeError:
        raise Mistake(Sort.OPERATION) from None


def contains(whole: Any, part: Any, budget: Budget) -> bool:
    """`part in whole`."""
    kind = type(whole)
    if kind is str:
        if type(part) is not str:
            raise Mistake(Sort.OPERATION)
        return part in whole
    if kind is dict:
        try:
            return part in whole
        except TypeError:
            raise Mistake(Sort.OPERATION) from None
    if kind in _WRITTEN:
        budget.step(len(whole))
        if type(part) in _WRITTEN:
            budget.weigh(whole)
        return part in whole
    raise Mistake(Sort.UNDEFINED if whole is UNDEFINED else Sort.OPERATION)


def negative(value: Any) -> Any:
    """`-value`."""
    if type(value) in _NUMBERS:
        return -value
    raise Mistake(Sort.UNDEFINED if value is UNDEFINED else Sort.OPERATION)


def positive(value: Any) -> Any:
    """`+value`."""
    return -negative(value)
