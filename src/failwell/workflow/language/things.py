"""The things that only templates have: loops, namespaces, cyclers, and the functions that make them."""

from collections.abc import Callable, Sequence
from typing import Any

from failwell.workflow.language.budget import Budget, length
from failwell.workflow.language.mistakes import Mistake, Sort
from failwell.workflow.language.values import UNDEFINED, Function, Thing, text_of

_LONGEST_RANGE = 100_000


class Builtin(Function):
    """A function of the language itself."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def call(self, budget: Budget, args: list[Any], named: dict[str, Any]) -> Any:
        return self._function(budget, *args, **named)


class Namespace(Thing):
    """Fields that a loop may set and that keep their values after it."""

    __slots__ = ("fields",)

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields

    def field(self, name: str) -> Any:
        return self.fields.get(name, UNDEFINED)


class Loop(Function):
    """`loop` inside of a `for`. Called in a recursive one, it goes through another list the same way."""

    __slots__ = ("_again", "_changed", "at", "depth", "items")

    def __init__(self, items: Sequence[Any], depth: int, again: Callable[[Any, int], str] | None) -> None:
        self.items = items
        self.at = 0
        self.depth = depth
        self._again = again
        self._changed: Any = UNDEFINED

    def field(self, name: str) -> Any:
        read = _LOOP_FIELDS.get(name)
        return UNDEFINED if read is None else read(self)

    def call(self, budget: Budget, args: list[Any], named: dict[str, Any]) -> Any:
        if self._again is None or len(args) != 1 or named:
            raise Mistake(Sort.ARGUMENTS)
        return self._again(args[0], self.depth + 1)

    def cycle(self, _: Budget, *values: Any) -> Any:
        """The value whose turn it is."""
        return values[self.at % len(values)]

    def changed(self, budget: Budget, *values: Any) -> bool:
        """Whether the values differ from those of the last call."""
        budget.weigh(values)
        last, self._changed = self._changed, values
        return last != values


_LOOP_FIELDS: dict[str, Callable[[Loop], Any]] = {
    "index": lambda loop: loop.at + 1,
    "index0": lambda loop: loop.at,
    "revindex": lambda loop: len(loop.items) - loop.at,
    "revindex0": lambda loop: len(loop.items) - loop.at - 1,
    "first": lambda loop: loop.at == 0,
    "last": lambda loop: loop.at == len(loop.items) - 1,
    "length": lambda loop: len(loop.items),
    "depth": lambda loop: loop.depth + 1,
    "depth0": lambda loop: loop.depth,
    "previtem": lambda loop: loop.items[loop.at - 1] if loop.at else UNDEFINED,
    "nextitem": lambda loop: loop.items[loop.at + 1] if loop.at + 1 < len(loop.items) else UNDEFINED,
    "cycle": lambda loop: Builtin(loop.cycle),
    "changed": lambda loop: Builtin(loop.changed),
}


class Cycler(Thing):
    """Gives its values in turn, over and over."""

    __slots__ = ("_at", "_values")

    def __init__(self, values: tuple[Any, ...]) -> None:
        self._values = values
        self._at = 0

    def field(self, name: str) -> Any:
        if name == "current":
            return self._values[self._at]
        return {"next": Builtin(self._next), "reset": Builtin(self._reset)}.get(name, UNDEFINED)

    def _next(self, _: Budget) -> Any:
        value = self._values[self._at]
        self._at = (self._at + 1) % len(self._values)
        return value

    def _reset(self, _: Budget) -> None:
        self._at = 0


class Joiner(Function):
    """Gives nothing the first time and the separator ever after."""

    __slots__ = ("_between", "_used")

    def __init__(self, between: str) -> None:
        self._between = between
        self._used = False

    def call(self, budget: Budget, args: list[Any], named: dict[str, Any]) -> Any:
        if self._used:
            return self._between
        self._used = True
        return ""


# ---------------------------------------------------------------- functions


def _range(budget: Budget, *bounds: Any) -> list[int]:
    numbers = range(*bounds)
    if len(numbers) > _LONGEST_RANGE:
        raise Mistake(Sort.MEMORY)
    return budget.items(list(numbers))


def _dict(budget: Budget, given: Any = None, **fields: Any) -> dict[str, Any]:
    if given is not None and type(given) is not dict:
        raise Mistake(Sort.ARGUMENTS)
    return budget.items({**(given or {}), **fields})


def _namespace(budget: Budget, given: Any = None, **fields: Any) -> Namespace:
    return Namespace(_dict(budget, given, **fields))


def _cycler(_: Budget, *values: Any) -> Cycler:
    if not values:
        raise Mistake(Sort.ARGUMENTS)
    return Cycler(values)


def _joiner(budget: Budget, sep: Any = ", ") -> Joiner:
    return Joiner(text_of(sep, budget))


def _int(_: Budget, value: Any = 0) -> int:
    return int(value)


def _float(_: Budget, value: Any = 0.0) -> float:
    return float(value)


def _str(budget: Budget, value: Any = "") -> str:
    return text_of(value, budget)


def _bool(_: Budget, value: Any = False) -> bool:
    return bool(value)


def _abs(_: Budget, value: Any) -> Any:
    return abs(value)


def _len(_: Budget, value: Any) -> int:
    return length(value)


FUNCTIONS: dict[str, Any] = {
    name: Builtin(function)
    for name, function in (
        ("range", _range),
        ("dict", _dict),
        ("namespace", _namespace),
        ("cycler", _cycler),
        ("joiner", _joiner),
    )
}
"""What every template can call."""

CONDITION_FUNCTIONS: dict[str, Any] = {
    name: Builtin(function)
    for name, function in (
        ("int", _int),
        ("float", _float),
        ("str", _str),
        ("bool", _bool),
        ("len", _len),
        ("abs", _abs),
    )
}
"""What a condition without `{{ }}` can call."""
