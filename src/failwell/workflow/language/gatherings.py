"""The filters for lists and mappings: choosing, ordering, grouping.

Whatever a filter gives is a new list; what it was given stays as it is.
"""

from collections.abc import Callable, Iterable
from functools import cmp_to_key
from typing import Any

from failwell.workflow.language.budget import Budget, Pair
from failwell.workflow.language.checks import TESTS
from failwell.workflow.language.filters import FILTERS, Filter
from failwell.workflow.language.mistakes import Mistake, Sort
from failwell.workflow.language.values import UNDEFINED, attribute, calculate, is_ordered, item, listed, text_of, truth

_MOST_COLUMNS = 100_000


def _getter(path: Any, default: Any = UNDEFINED) -> Callable[[Any], Any]:
    """Reads a dotted path out of each item: `a.b.0`."""
    steps: list[Any] = [path] if type(path) is int else [
        int(step) if step.isdigit() else step for step in str(path).split(".")
    ]  # fmt: skip

    def get(value: Any) -> Any:
        for step in steps:
            value = item(value, step) if type(step) is int else attribute(value, step)
            if value is UNDEFINED and default is not UNDEFINED:
                return default
        return value

    return get


def _folded(value: Any) -> Any:
    return value.lower() if type(value) is str else value


def _key(path: Any, case_sensitive: Any) -> Callable[[Any], Any]:
    get: Callable[[Any], Any] = (lambda value: value) if path is None else _getter(path)
    if case_sensitive:
        return get
    return lambda value: _folded(get(value))


def _sorted(values: Iterable[Any], key: Callable[[Any], Any], budget: Budget, *, reverse: bool) -> list[Any]:
    def order(left: Any, right: Any) -> int:
        budget.step(1)
        if left is UNDEFINED or right is UNDEFINED:
            raise Mistake(Sort.UNDEFINED)
        if isinstance(left, list | dict | tuple):
            budget.weigh(left)
        return -1 if is_ordered("<", left, right) else 1 if is_ordered("<", right, left) else 0

    ordered = cmp_to_key(order)
    return sorted(values, key=lambda value: ordered(key(value)), reverse=reverse)


def _sort(
    budget: Budget, value: Any, reverse: Any = False, case_sensitive: Any = False, attribute: Any = None
) -> list[Any]:
    keys = [None if attribute is None else part for part in str(attribute).split(",")]
    made = list(listed(value, budget))
    # The last of several keys first, since sorting keeps the order of equals.
    for path in reversed(keys):
        made = _sorted(made, _key(path, case_sensitive), budget, reverse=bool(reverse))
    return budget.items(made)


def _extreme(sign: str) -> Filter:
    def pick(budget: Budget, value: Any, case_sensitive: Any = False, attribute: Any = None) -> Any:
        key = _key(attribute, case_sensitive)
        best: Any = UNDEFINED
        values = listed(value, budget)
        budget.step(len(values))
        for one in values:
            if best is UNDEFINED or is_ordered(sign, key(one), key(best)):
                best = one
        return best

    return pick


def _unique(budget: Budget, value: Any, case_sensitive: Any = False, attribute: Any = None) -> list[Any]:
    key = _key(attribute, case_sensitive)
    seen: set[Any] = set()
    made: list[Any] = []
    for one in listed(value, budget):
        mark = key(one)
        if mark not in seen:
            seen.add(mark)
            made.append(one)
    return budget.items(made)


def _groupby(
    budget: Budget, value: Any, attribute: Any, default: Any = UNDEFINED, case_sensitive: Any = False
) -> list[Any]:
    get = _getter(attribute, default)
    fold: Callable[[Any], Any] = (lambda one: one) if case_sensitive else _folded
    groups: list[tuple[Any, list[Any]]] = []
    for one in _sorted(listed(value, budget), lambda each: fold(get(each)), budget, reverse=False):
        if groups and fold(groups[-1][0]) == fold(get(one)):
            groups[-1][1].append(one)
        else:
            groups.append((get(one), [one]))
    return budget.items([Pair(group) for group in groups])


def _dictsort(
    budget: Budget, value: Any, case_sensitive: Any = False, by: Any = "key", reverse: Any = False
) -> list[Any]:
    if type(value) is not dict or by not in {"key", "value"}:
        raise Mistake(Sort.OPERATION)
    at = 0 if by == "key" else 1
    return budget.items(
        _sorted(value.items(), _key(at, case_sensitive), budget, reverse=bool(reverse))
    )


def _items(budget: Budget, value: Any) -> list[Any]:
    if type(value) is not dict:
        raise Mistake(Sort.OPERATION)
    return budget.items(list(value.items()))


def _list(budget: Budget, value: Any) -> list[Any]:
    return budget.items(list(listed(value, budget)))


def _reverse(budget: Budget, value: Any) -> Any:
    if type(value) is str:
        return budget.text(value[::-1])
    return budget.items(list(reversed(listed(value, budget))))


def _first(budget: Budget, value: Any) -> Any:
    values = value if type(value) is str else listed(value, budget)
    return values[0] if values else UNDEFINED


def _last(budget: Budget, value: Any) -> Any:
    values = value if type(value) is str else listed(value, budget)
    return values[-1] if values else UNDEFINED


def _join(budget: Budget, value: Any, d: Any = "", attribute: Any = None) -> str:
    values = listed(value, budget)
    if attribute is not None:
        values = [_getter(attribute)(one) for one in values]
    budget.step(len(values))
    between = text_of(d, budget)
    texts = [text_of(one, budget) for one in values]
    budget.take(sum(map(len, texts)) + len(between) * max(len(texts) - 1, 0))
    return between.join(texts)


def _sum(budget: Budget, value: Any, attribute: Any = None, start: Any = 0) -> Any:
    get = None if attribute is None else _getter(attribute)
    total = start
    values = listed(value, budget)
    budget.step(len(values))
    for one in values:
        total = calculate("+", total, one if get is None else get(one), budget)
    return total


def _batch(budget: Budget, value: Any, linecount: Any, fill_with: Any = None) -> list[Any]:
    if type(linecount) is not int or linecount < 1:
        raise Mistake(Sort.ARGUMENTS)
    values = listed(value, budget)
    made = [list(values[at : at + linecount]) for at in range(0, len(values), linecount)]
    if made and fill_with is not None:
        lacking = linecount - len(made[-1])
        budget.take(lacking * 8)
        made[-1] += [fill_with] * lacking
    budget.items(values)
    return budget.items(made)


def _slice(budget: Budget, value: Any, slices: Any, fill_with: Any = None) -> list[Any]:
    if type(slices) is not int or slices < 1:
        raise Mistake(Sort.ARGUMENTS)
    if slices > _MOST_COLUMNS:
        raise Mistake(Sort.MEMORY)
    values = listed(value, budget)
    each, longer = divmod(len(values), slices)
    made: list[Any] = []
    at = 0
    for column in range(slices):
        end = at + each + (1 if column < longer else 0)
        part = list(values[at:end])
        if fill_with is not None and column >= longer:
            part.append(fill_with)
        made.append(part)
        at = end
    budget.items(values)
    return budget.items(made)


# ---------------------------------------------------------------- filters over filters


def _map(budget: Budget, value: Any, *args: Any, **named: Any) -> list[Any]:
    values = listed(value, budget)
    budget.step(len(values))
    if not args and "attribute" in named:
        default = named.pop("default", UNDEFINED)
        get = _getter(named.pop("attribute"), default)
        if named:
            raise Mistake(Sort.ARGUMENTS)
        return budget.items([get(one) for one in values])
    if not args:
        raise Mistake(Sort.ARGUMENTS)
    chosen = FILTERS.get(args[0]) if type(args[0]) is str else None
    if chosen is None:
        raise Mistake(Sort.UNKNOWN_FILTER)
    return budget.items([chosen(budget, one, *args[1:], **named) for one in values])


def _choosing(*, keep: bool, by_attribute: bool) -> Filter:
    def choose(budget: Budget, value: Any, *args: Any, **named: Any) -> list[Any]:
        values = listed(value, budget)
        budget.step(len(values))
        get: Callable[[Any], Any] = lambda one: one  # noqa: E731 - one line says it
        if by_attribute:
            if not args:
                raise Mistake(Sort.ARGUMENTS)
            get, args = _getter(args[0]), args[1:]
        if not args:
            return budget.items([one for one in values if truth(get(one)) is keep])
        test = TESTS.get(args[0]) if type(args[0]) is str else None
        if test is None:
            raise Mistake(Sort.UNKNOWN_TEST)
        return budget.items([one for one in values if test(budget, get(one), *args[1:], **named) is keep])

    return choose


def _attr(_: Budget, value: Any, name: Any) -> Any:
    return attribute(value, name)


FILTERS.update(
    {
        "attr": _attr,
        "batch": _batch,
        "dictsort": _dictsort,
        "first": _first,
        "groupby": _groupby,
        "items": _items,
        "join": _join,
        "last": _last,
        "list": _list,
        "map": _map,
        "max": _extreme(">"),
        "min": _extreme("<"),
        "reject": _choosing(keep=False, by_attribute=False),
        "rejectattr": _choosing(keep=False, by_attribute=True),
        "reverse": _reverse,
        "select": _choosing(keep=True, by_attribute=False),
        "selectattr": _choosing(keep=True, by_attribute=True),
        "slice": _slice,
        "sort": _sort,
        "sum": _sum,
        "unique": _unique,
    }
)
