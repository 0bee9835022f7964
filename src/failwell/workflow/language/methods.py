"""The methods that a template may call: a closed table, all of them reading only."""

from collections.abc import Callable
from typing import Any

from failwell.workflow.language.budget import Budget
from failwell.workflow.language.filters import replaced, width
from failwell.workflow.language.mistakes import Mistake, Sort
from failwell.workflow.language.values import UNDEFINED, Function, attribute

Method = Callable[..., Any]


def call_method(budget: Budget, value: Any, name: str, args: list[Any], named: dict[str, Any]) -> Any:
    """`value.name(args)`. A key of a mapping comes before the method of that name."""
    if value is UNDEFINED:
        raise Mistake(Sort.UNDEFINED)
    found = attribute(value, name)
    if found is not UNDEFINED:
        if isinstance(found, Function):
            return found.call(budget, args, named)
        raise Mistake(Sort.UNKNOWN_FUNCTION)
    method = METHODS.get(type(value), {}).get(name)
    if method is None:
        raise Mistake(Sort.UNKNOWN_FUNCTION)
    return method(budget, value, *args, **named)


def _texts(method: Method) -> Method:
    """A method of `str` that gives a text no longer than the one it is given, give or take a few signs."""

    def call(budget: Budget, value: str, *args: Any) -> str:
        return budget.text(method(value, *args))

    return call


def _tells(method: Method) -> Method:
    def call(budget: Budget, value: str, *args: Any) -> Any:
        budget.step(len(value) >> 6)
        return method(value, *args)

    return call


def _splits(method: Method) -> Method:
    def call(budget: Budget, value: str, *args: Any, **named: Any) -> list[str]:
        budget.take(len(value))
        return budget.items(list(method(value, *args, **named)))

    return call


def _pads(method: Method) -> Method:
    def call(budget: Budget, value: str, wide: Any, *args: Any) -> str:
        return budget.text(method(value, width(wide), *args))

    return call


def _join(budget: Budget, value: str, parts: Any) -> str:
    if not isinstance(parts, list | tuple | dict | str):
        raise Mistake(Sort.OPERATION)
    texts = [part for part in parts if type(part) is str]
    if len(texts) != len(parts):
        raise Mistake(Sort.OPERATION)
    budget.take(sum(map(len, texts)) + len(value) * len(texts))
    return value.join(texts)


def _replace(budget: Budget, value: str, old: Any, new: Any, count: Any = None) -> str:
    return replaced(budget, value, old, new, count)


def _get(_: Budget, value: dict[Any, Any], key: Any, default: Any = None) -> Any:
    return value.get(key, default)


def _keys(budget: Budget, value: dict[Any, Any]) -> list[Any]:
    return budget.items(list(value))


def _values(budget: Budget, value: dict[Any, Any]) -> list[Any]:
    return budget.items(list(value.values()))


def _items(budget: Budget, value: dict[Any, Any]) -> list[Any]:
    return budget.items(list(value.items()))


def _count(budget: Budget, value: list[Any], one: Any) -> int:
    budget.weigh(value)
    return value.count(one)


def _index(budget: Budget, value: list[Any], one: Any) -> int:
    budget.weigh(value)
    return value.index(one)


_OF_TEXT: dict[str, Method] = {
    **{name: _texts(getattr(str, name)) for name in (
        "capitalize", "casefold", "lower", "lstrip", "removeprefix", "removesuffix", "rstrip", "strip",
        "swapcase", "title", "upper",
    )},
    **{name: _tells(getattr(str, name)) for name in (
        "count", "endswith", "find", "index", "isalnum", "isalpha", "isdecimal", "isdigit", "isidentifier",
        "islower", "isnumeric", "isspace", "istitle", "isupper", "rfind", "rindex", "startswith",
    )},
    **{name: _splits(getattr(str, name)) for name in (
        "partition", "rpartition", "rsplit", "split", "splitlines",
    )},
    **{name: _pads(getattr(str, name)) for name in ("center", "ljust", "rjust", "zfill")},
    "join": _join,
    "replace": _replace,
}  # fmt: skip

METHODS: dict[type, dict[str, Method]] = {
    str: _OF_TEXT,
    dict: {"get": _get, "items": _items, "keys": _keys, "values": _values},
    list: {"count": _count, "index": _index},
    tuple: {"count": _count, "index": _index},
}
"""By type, then by name."""
