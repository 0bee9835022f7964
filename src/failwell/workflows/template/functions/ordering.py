"""Filters that order values: `sort`, `min`, `max`, `dictsort` and `groupby`, of values that Python orders."""

from collections.abc import Callable
from itertools import groupby
from typing import Any, cast

from failwell.workflows.template.data_views import MISSING_VALUE, ListView, type_name, unwrapped, view
from failwell.workflows.template.functions.operators import path, uncomparable
from failwell.workflows.template.memory_budget import spend
from failwell.workflows.template.template_errors import MistakeType, TemplateMistake


def _items(value: Any, name: str) -> list[Any]:
    plain = unwrapped(value)
    if not isinstance(plain, list | tuple | dict | str):
        raise TemplateMistake(MistakeType.OPERATION, detail=f"`{name}` of {type_name(plain)}")
    spend(0)
    return list(cast("list[Any]", plain))


def _key(attribute: Any, *, case_sensitive: Any) -> Callable[[Any], Any]:
    """What an item is ordered by. Texts are compared without case, as in Jinja2."""

    def folded(value: Any) -> Any:
        return value.lower() if isinstance(value, str) and not case_sensitive else value

    def key(item: Any) -> Any:
        return folded(_attribute(item, attribute))

    def keys(item: Any) -> Any:
        return [folded(_attribute(item, name)) for name in attribute.split(",")]

    return keys if isinstance(attribute, str) and "," in attribute else key


def _attribute(item: Any, attribute: Any) -> Any:
    if attribute is None:
        return item
    value = path(item, *str(attribute).split("."))
    if value is MISSING_VALUE:
        raise TemplateMistake(MistakeType.UNDEFINED, detail=f"an item has no `{attribute}`")
    return unwrapped(value)


def _ordered(items: list[Any], key: Callable[[Any], Any], *, reverse: Any) -> list[Any]:
    try:
        return sorted(items, key=key, reverse=bool(reverse))
    except TypeError:
        raise _unordered(list(map(key, items))) from None


def _unordered(keys: list[Any]) -> TemplateMistake:
    first = keys[0]
    other = next((key for key in keys if type_name(key) != type_name(first)), first)
    return uncomparable("<", first, other)


def _sort(value: Any, reverse: Any = False, case_sensitive: Any = False, attribute: Any = None) -> Any:
    items = _items(value, "sort")
    return view(_ordered(items, _key(attribute, case_sensitive=case_sensitive), reverse=reverse))


def _extreme(name: str, function: Any) -> Callable[..., Any]:
    def call(value: Any, case_sensitive: Any = False, attribute: Any = None) -> Any:
        items = _items(value, name)
        if not items:
            return MISSING_VALUE
        key = _key(attribute, case_sensitive=case_sensitive)
        try:
            return view(function(items, key=key))
        except TypeError:
            raise _unordered(list(map(key, items))) from None

    return call


def _dictsort(value: Any, case_sensitive: Any = False, by: Any = "key", reverse: Any = False) -> Any:
    plain = unwrapped(value)
    if not isinstance(plain, dict):
        raise TemplateMistake(MistakeType.OPERATION, detail=f"`dictsort` of {type_name(plain)}")
    if by not in {"key", "value"}:
        raise TemplateMistake(MistakeType.ARGUMENTS, detail="of `dictsort`")
    index = "0" if by == "key" else "1"
    pairs: list[Any] = list(cast("dict[str, Any]", plain).items())
    return view(_ordered(pairs, _key(index, case_sensitive=case_sensitive), reverse=reverse))


class _Group(ListView):
    """A group of items: a pair, with names for its halves."""

    __slots__ = ()

    @property
    def grouper(self) -> Any:
        """What the items have in common."""
        return self[0]

    @property
    def list(self) -> Any:
        """The items."""
        return self[1]


def _groupby(value: Any, attribute: Any, default: Any = None, case_sensitive: Any = False) -> Any:
    items = _items(value, "groupby")

    def read(item: Any) -> Any:
        found = path(item, *str(attribute).split("."))
        if found is MISSING_VALUE:
            if default is None:
                raise TemplateMistake(MistakeType.UNDEFINED, detail=f"an item has no `{attribute}`")
            return default
        return unwrapped(found)

    def key(item: Any) -> Any:
        value = read(item)
        return value.lower() if isinstance(value, str) and not case_sensitive else value

    groups: list[Any] = []
    for _, members in groupby(_ordered(items, key, reverse=False), key):
        rows = list(members)
        groups.append(_Group((read(rows[0]), rows)))
    return groups


ORDERING: dict[str, Callable[..., Any]] = {
    "sort": _sort, "min": _extreme("min", min), "max": _extreme("max", max), "dictsort": _dictsort, "groupby": _groupby,
}  # fmt: skip
