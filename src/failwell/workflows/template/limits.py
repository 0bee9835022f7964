"""The limits of one rendering: its steps, and the size of what it creates.

Both are counted, without a clock, so the same template over the same data always ends in the same way. What a single
call of Python would do beyond the limits is estimated before the call, since nothing can stop it later.
"""

import operator
import re
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, ValuesView
from threading import local
from typing import Any, cast

from failwell.workflows.template.mistakes import MistakeType, TemplateMistake, uncomparable

LARGEST = 4 * 1024 * 1024
"""Characters of one text and of the output; one outside of ASCII counts twice."""
TOTAL = 8 * LARGEST
"""Characters of all texts that one rendering creates, including temporary ones, and of one value."""
ITEM = 32
"""What an item of a list or mapping counts, in characters."""
MAX_STEPS = 1_000_000
MAX_DEPTH = 256
"""Levels of one value."""
WIDEST = 10_000
"""Characters that a text may be padded to."""
MAX_BITS = 14_280
"""Of a whole number: as many as Python prints."""
_VIEWS: Any = (KeysView, ValuesView, ItemsView)
_LISTS: Any = (list, tuple)
_CONTAINERS: Any = (list, tuple, dict)
_GROWING: Any = (str, list, tuple)
_SPEED = 32
"""Characters that are read in the time of a step."""


class _Left(local):
    steps = MAX_STEPS
    size = TOTAL


_LEFT = _Left()


def start() -> None:
    """Start to count for a rendering in this thread."""
    _LEFT.steps = MAX_STEPS
    _LEFT.size = TOTAL


def step(count: int = 1) -> None:
    """Count steps."""
    _LEFT.steps -= count
    if _LEFT.steps < 0:
        raise TemplateMistake(MistakeType.STEPS)


def create(size: int, most: int = LARGEST) -> None:
    """Count something of this size that is about to be created, or was. Texts are limited to `LARGEST`, lists to `TOTAL`."""
    _LEFT.size -= size
    if size > most or _LEFT.size < 0:
        raise TemplateMistake(MistakeType.MEMORY)


def size_of(text: str) -> int:
    """The size of a text."""
    return len(text) if text.isascii() else 2 * len(text)


def weigh(value: Any) -> int:
    """The size of a value, in which a part that occurs several times counts each time, after counting steps for it.

    Raises `TemplateMistake` if the value is too large or too deep, or not JSON.
    """
    if isinstance(value, str):
        size = size_of(value)
        step(1 + size // _SPEED)
        return size
    level: list[Any] = [value]
    size = 0
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for part in level:
            if isinstance(part, str):
                size += size_of(part)
            elif isinstance(part, dict):
                below += cast("dict[Any, Any]", part)
                below += cast("dict[Any, Any]", part).values()
            elif isinstance(part, (*_LISTS, *_VIEWS)):
                below += part
            elif not isinstance(part, int | float | range | None):
                _refuse(part)
            if size + ITEM * len(below) > TOTAL:
                raise TemplateMistake(MistakeType.MEMORY)
        if not below:
            step(1 + size // _SPEED)
            return size
        size += ITEM * len(below)
        level = below
    raise TemplateMistake(MistakeType.DEPTH)


def _refuse(value: Any) -> None:
    """Refuse a value that is not JSON; an undefined one raises its own error."""
    from jinja2 import Undefined

    if isinstance(value, Undefined):
        str(value)
    elif isinstance(value, Iterator):
        raise TemplateMistake(
            MistakeType.RESULT, detail="a filter whose items were not read; write `| list` after it"
        )
    else:
        word = "a function" if callable(value) else "an object"
        name = getattr(value, "__name__", None)
        detail = (
            f"`{name.strip('_')}` is {word}" if isinstance(name, str) and callable(value) else f"it is {word}"
        )
        raise TemplateMistake(MistakeType.RESULT, detail=detail)


def counted(result: Any) -> Any:
    """What a call returned, after its size was counted; of an iterator, each item is counted when it is read."""
    if isinstance(result, str):
        create(size_of(result))
    elif isinstance(result, _CONTAINERS):
        create(ITEM // 2 * len(result), TOTAL)
    elif isinstance(result, Iterator):
        return each(cast("Iterator[Any]", result))
    return result


def each(items: Iterable[Any]) -> Iterator[Any]:
    """The items, each of them a step."""
    for item in items:
        step()
        yield item


def joined(parts: Iterable[str]) -> str:
    """Texts as one."""
    texts = list(parts)
    create(sum(map(len, texts)))
    return "".join(texts)


def text_of(value: Any) -> str:
    """The text of a value."""
    if not isinstance(value, str | int | float | None):
        create(weigh(value))
    return str(value)


# ---------------------------------------------------------------- operators

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "in": lambda left, right: left in right, "not in": lambda left, right: left not in right,
}  # fmt: skip
_SCALARS: tuple[type, ...] = (int, float, str, bool, type(None))


def _is_mapping(value: object) -> bool:
    return isinstance(value, dict)


def holds(name: str, left: Any, right: Any) -> bool:
    """Whether a comparison holds."""
    step()
    if name in {"in", "not in"}:
        weigh(left if _is_mapping(right) else right)
    elif not isinstance(left, _SCALARS) and not isinstance(right, _SCALARS):
        weigh(left)
    try:
        return bool(_COMPARISONS[name](left, right))
    except TypeError:
        raise uncomparable(name, left, right) from None


_PYTHON: Any = operator
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _PYTHON.truediv, "//": _PYTHON.floordiv,
    "%": operator.mod, "**": _PYTHON.pow,
}  # fmt: skip


def calculated(name: str, left: Any, right: Any) -> Any:
    """The result of an operator between two values."""
    step()
    if name == "%" and isinstance(left, str):
        return formatted(left, right)
    if name in {"*", "+", "**"}:
        _check_growth(name, left, right)
    try:
        result = _ARITHMETIC[name](left, right)
    except TypeError:
        raise uncomparable(name, left, right) from None
    except ZeroDivisionError:
        raise TemplateMistake(MistakeType.OPERATION, detail="division by zero") from None
    except OverflowError:
        raise TemplateMistake(
            MistakeType.OPERATION, detail="a number that is too large for a fraction"
        ) from None
    if type(result) is int and result.bit_length() > MAX_BITS:
        raise TemplateMistake(MistakeType.MEMORY)
    return result


def _check_growth(name: str, left: Any, right: Any) -> None:
    if name == "**" and isinstance(left, int) and isinstance(right, int):
        if left.bit_length() * right > MAX_BITS:
            raise TemplateMistake(MistakeType.MEMORY)
    elif name == "+" and isinstance(left, _GROWING) and isinstance(right, _GROWING):
        create(_length(left) + _length(right), LARGEST if isinstance(left, str) else TOTAL)
    elif name == "*":
        for value, count in ((left, right), (right, left)):
            if isinstance(value, _GROWING) and isinstance(count, int):
                create(_length(value) * max(count, 0), LARGEST if isinstance(value, str) else TOTAL)


def _length(value: Any) -> int:
    return size_of(value) if isinstance(value, str) else ITEM // 8 * len(value)


_WIDE_FIELD = r"[-#0 +]*(?:\d{5}|\*|\d*\.(?:\d{5}|\*))"
_WIDE = re.compile("%" + _WIDE_FIELD)
_WIDE_NAMED = re.compile(r"\)" + _WIDE_FIELD)
_WIDTHS = re.compile(r"[%)][-#0 +]*(\d{1,4})?(?:\.(\d{1,4}))?")


def formatted(pattern: str, values: Any) -> str:
    """`pattern % values`. A field may not be wider than `WIDEST`, nor take its width from the data."""
    if _WIDE.search(pattern) or ("%(" in pattern and _WIDE_NAMED.search(pattern)):
        raise TemplateMistake(MistakeType.MEMORY)
    widths = sum(int(width or 0) for match in _WIDTHS.finditer(pattern) for width in match.groups())
    fields = pattern.count("%") if isinstance(values, dict) else 1
    create(size_of(pattern) + widths + fields * weigh(values))
    try:
        return counted(pattern % values)
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        detail = "an entry is missing" if isinstance(error, KeyError) else "its fields do not fit the values"
    raise TemplateMistake(MistakeType.ARGUMENTS, detail=f"of `%`: {detail}")


# ---------------------------------------------------------------- calls

_FREE = frozenset({
    "default", "d", "first", "last", "length", "count", "attr", "abs", "float", "safe", "items", "sum",
    "map", "select", "reject", "selectattr", "rejectattr",
})  # fmt: skip
"""Filters whose cost does not depend on the size of the value, or that count each item when it is read."""
_PADDED = frozenset(
    {"center", "ljust", "rjust", "zfill", "expandtabs", "batch", "slice", "indent", "tojson", "json"}
)
_SPLIT = frozenset({"split", "rsplit", "splitlines"})
_SPACES = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"
_ITEMS = frozenset({"list", "sort", "unique", "batch", "slice", "join", "groupby", "wordcount"})
"""Filters that take a text apart; each piece is a text of its own."""
_QUADRATIC = frozenset({"striptags", "wordwrap", "urlize", "unescape"})


def check_filter(name: str, value: Any, arguments: list[Any]) -> Any:
    """Count what a filter is about to do; returns the value for it."""
    step()
    if name in _FREE:
        return value
    if isinstance(value, Iterator):
        value = list(each(cast("Iterator[Any]", value)))
    size = weigh(value)
    sizes = [weigh(argument) for argument in arguments]
    if isinstance(value, str):
        if name in _ITEMS:
            create(2 * ITEM * len(value), TOTAL)
        check_text(name, value, arguments)
    else:
        _check_numbers(name, arguments)
        if name == "join" and sizes:
            create(size + sizes[0] * len(value) if isinstance(value, _CONTAINERS) else size)
        elif name in {"pprint", "sort"}:
            step(size // (1 if name == "pprint" else 8))
    return value


def _check_numbers(name: str, arguments: list[Any]) -> None:
    widest = 300 if name == "round" else 16 if name in {"tojson", "json"} else WIDEST
    if name in _PADDED or name == "round":
        for argument in arguments:
            if isinstance(argument, int) and abs(argument) > widest:
                raise TemplateMistake(MistakeType.MEMORY)


def check_text(name: str, text: str, arguments: list[Any]) -> None:
    """Estimate the size of what a filter or a method makes of a text, and the time that it takes."""
    _check_numbers(name, arguments)
    growth = 6 if hasattr(text, "__html__") else 1  # arguments of markup are escaped
    number = max((argument for argument in arguments if isinstance(argument, int)), default=8)
    texts = [str(argument) for argument in arguments if isinstance(argument, str | int | float)]
    if name == "replace" and len(texts) > 1:
        create(size_of(text) + text.count(texts[0]) * size_of(texts[1]) * growth)
    elif name == "join" and texts:
        create((len(text) + 1) * size_of(texts[0]) + size_of(text))
    elif name == "indent":
        width = size_of(texts[0]) if texts and isinstance(arguments[0], str) else number
        create(size_of(text) + (text.count("\n") + 1) * width)
    elif name == "expandtabs":
        create(len(text) + text.count("\t") * number)
    elif name == "urlencode":
        create(4 * size_of(text))
    elif name in _QUADRATIC:
        pieces = (
            text.count("<") + text.count("&") if name in {"striptags", "unescape"} else _longest_word(text)
        )
        step(len(text) * pieces // 4096)
        create(sum(map(size_of, texts)) * (text.count(" ") + text.count("\n") + 1) + size_of(text))


def _longest_word(text: str) -> int:
    return max(map(len, text.split(None, LARGEST // ITEM)), default=0)


def check_method(name: str, owner: Any, arguments: list[Any], keywords: dict[str, Any]) -> list[Any]:
    """Count what a method is about to do; returns the arguments for it."""
    arguments = [list(each(cast("Iterator[Any]", a))) if isinstance(a, Iterator) else a for a in arguments]
    given = [*arguments, *keywords.values()]
    if isinstance(owner, str):
        weigh(owner)
        if name == "join" and arguments:
            parts = weigh(arguments[0])
            create(parts + size_of(owner) * len(arguments[0]) * (6 if hasattr(owner, "__html__") else 1))
        elif name == "translate":
            table = (
                cast("dict[Any, Any]", arguments[0]) if arguments and isinstance(arguments[0], dict) else {}
            )
            create(len(owner) * max((len(str(part)) for part in table.values()), default=1))
        elif name in _SPLIT:
            _check_split(name, owner, given)
        elif name not in {"format", "format_map"}:
            check_text(name, owner, given)
    elif owner is not None:
        if isinstance(owner, _LISTS) and name in {"count", "index"}:
            weigh(owner)
        for argument in given:
            if not isinstance(argument, _SCALARS):
                weigh(argument)
    return arguments


def _check_split(name: str, text: str, given: list[Any]) -> None:
    between = given[0] if name != "splitlines" and given and isinstance(given[0], str) else None
    if between:
        pieces = text.count(between)
    else:
        pieces = sum(map(text.count, _SPACES)) if text.isascii() else len(text) // 2
    create(2 * ITEM * min(pieces, len(text)), TOTAL)
