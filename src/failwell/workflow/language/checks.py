"""The tests after `is`: `x is defined`, `x is divisibleby 3`.

A test gets the budget and the value, then its arguments, and gives true or false.
"""

from collections.abc import Callable
from typing import Any

from failwell.workflow.language.budget import Budget
from failwell.workflow.language.mistakes import Mistake, Sort
from failwell.workflow.language.values import UNDEFINED, Thing, compare

Check = Callable[..., bool]

_NUMBERS = frozenset({int, float, bool})
_SEQUENCES = frozenset({str, list, tuple, dict})


def _of(*kinds: type) -> Check:
    exactly = frozenset(kinds)
    return lambda _, value: type(value) in exactly


def _comparing(sign: str) -> Check:
    return lambda budget, value, other: compare(sign, value, other, budget)


def _is_defined(_: Budget, value: Any) -> bool:
    return value is not UNDEFINED


def _is_undefined(_: Budget, value: Any) -> bool:
    return value is UNDEFINED


def _is_none(_: Budget, value: Any) -> bool:
    return value is None


def _is_true(_: Budget, value: Any) -> bool:
    return value is True


def _is_false(_: Budget, value: Any) -> bool:
    return value is False


def _remainder(value: Any, by: Any) -> Any:
    if type(value) not in _NUMBERS or type(by) not in _NUMBERS:
        raise Mistake(Sort.OPERATION)
    return value % by


def _is_even(_: Budget, value: Any) -> bool:
    return _remainder(value, 2) == 0


def _is_odd(_: Budget, value: Any) -> bool:
    return _remainder(value, 2) == 1


def _is_divisible(_: Budget, value: Any, num: Any) -> bool:
    return _remainder(value, num) == 0


def _is_sequence(_: Budget, value: Any) -> bool:
    return isinstance(value, tuple) or type(value) in _SEQUENCES


def _is_lower(_: Budget, value: Any) -> bool:
    return str(value).islower() if type(value) in _SEQUENCES | _NUMBERS else False


def _is_upper(_: Budget, value: Any) -> bool:
    return str(value).isupper() if type(value) in _SEQUENCES | _NUMBERS else False


def _is_same(_: Budget, value: Any, other: Any) -> bool:
    # Identity says nothing about JSON; null and booleans, which people ask about, are told by type.
    return type(value) is type(other) and value == other


def _is_callable(_: Budget, value: Any) -> bool:
    return isinstance(value, Thing)


def _is_filter(_: Budget, value: Any) -> bool:
    from failwell.workflow.language.filters import FILTERS

    return type(value) is str and value in FILTERS


def _is_test(_: Budget, value: Any) -> bool:
    return type(value) is str and value in TESTS


def _is_escaped(_: Budget, value: Any) -> bool:
    return False


TESTS: dict[str, Check] = {
    "!=": _comparing("!="),
    "<": _comparing("<"),
    "<=": _comparing("<="),
    "==": _comparing("=="),
    ">": _comparing(">"),
    ">=": _comparing(">="),
    "boolean": _of(bool),
    "callable": _is_callable,
    "defined": _is_defined,
    "divisibleby": _is_divisible,
    "eq": _comparing("=="),
    "equalto": _comparing("=="),
    "escaped": _is_escaped,
    "even": _is_even,
    "false": _is_false,
    "filter": _is_filter,
    "float": _of(float),
    "ge": _comparing(">="),
    "greaterthan": _comparing(">"),
    "gt": _comparing(">"),
    "in": _comparing("in"),
    "integer": _of(int),
    "iterable": _is_sequence,
    "le": _comparing("<="),
    "lessthan": _comparing("<"),
    "lower": _is_lower,
    "lt": _comparing("<"),
    "mapping": _of(dict),
    "ne": _comparing("!="),
    "none": _is_none,
    "number": _of(int, float, bool),
    "odd": _is_odd,
    "sameas": _is_same,
    "sequence": _is_sequence,
    "string": _of(str),
    "test": _is_test,
    "true": _is_true,
    "undefined": _is_undefined,
    "upper": _is_upper,
}
"""By name. `defined` and `undefined` take an undefined value; so do the tests of `selectattr`."""
