"""The methods of texts, lists and mappings that templates may call, as Python has them.

Data are read-only in templates. A method that would change a list or a mapping is a mistake that names what to write instead.
"""

import re
from collections.abc import Callable
from string import Formatter
from typing import Any, cast

from failwell.workflows.template.data_views import MISSING_VALUE, is_missing, type_name, unwrapped, view
from failwell.workflows.template.memory_budget import LARGEST, spend_text
from failwell.workflows.template.template_errors import MistakeType, TemplateMistake

WIDEST = 10_000
"""Characters that a text may be padded to."""
_WIDE = re.compile(r"\d{5}")

_CHANGES = {
    "append": "`LIST + [ITEM]`",
    "extend": "`LIST + OTHER`",
    "insert": "`LIST[:N] + [ITEM] + LIST[N:]`",
    "remove": "`LIST | reject('eq', ITEM) | list`",
    "sort": "`LIST | sort`",
    "reverse": "`LIST | reverse`",
    "clear": "`[]` or `{}`",
    "pop": "`LIST | last` and `LIST[:-1]`, or `MAP.get(KEY)`",
    "popitem": "`MAP | items | last`",
    "update": "a `set` step, or `dict(MAP, KEY=VALUE)`",
    "setdefault": "`MAP.get(KEY, VALUE)`",
    "add": "`LIST + [ITEM]`",
    "discard": "`LIST | reject('eq', ITEM) | list`",
}
"""Methods that change a list or a mapping, and what to write instead."""


def bounded_width(value: Any) -> int:
    """A number of characters that a text is padded to."""
    if type(value) is not int:
        raise TemplateMistake(MistakeType.ARGUMENTS)
    if value > WIDEST:
        raise TemplateMistake(MistakeType.MEMORY)
    return max(value, 0)


def replacement(name: str) -> str | None:
    """What to write instead of a method that changes data."""
    return _CHANGES.get(name)


def call_method(value: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """Call a method of a value. Raises `TemplateMistake` if the value has no such method."""
    if is_missing(value):
        raise TemplateMistake(MistakeType.UNDEFINED)
    plain: Any = unwrapped(value)
    table = _TABLES.get(cast("Any", type(plain)), _NO_METHODS)
    function = table.get(name)
    if function is None:
        raise TemplateMistake(MistakeType.UNKNOWN_FUNCTION, detail=_no_method(name, plain))
    if any(is_missing(argument) for argument in (*args, *kwargs.values())):
        raise TemplateMistake(MistakeType.UNDEFINED)
    try:
        result = function(
            plain, *map(unwrapped, args), **{key: unwrapped(part) for key, part in kwargs.items()}
        )
    except (TypeError, ValueError, KeyError, IndexError, OverflowError):
        raise TemplateMistake(MistakeType.ARGUMENTS, detail=f"of `{name}`") from None
    return spend_text(result) if isinstance(result, str) else view(result)


def call_safe_method(value: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """The same; of a missing value it is missing."""
    return MISSING_VALUE if is_missing(value) or value is None else call_method(value, name, *args, **kwargs)


def _no_method(name: str, value: object) -> str:
    instead = _CHANGES.get(name)
    if instead is not None:
        return f"`{name}` would change a {type_name(value)}, and data are read-only here; write {instead}"
    return f"{type_name(value)} has no method `{name}`"


class _SafeFormatter(Formatter):
    """`str.format` for templates, without access to the attributes of Python objects."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        if not field_name.isidentifier() and not field_name.isdigit():
            raise TemplateMistake(MistakeType.ARGUMENTS)
        return self.get_value(
            int(field_name) if field_name.isdigit() else field_name, args, kwargs
        ), field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        if _WIDE.search(format_spec):
            raise TemplateMistake(MistakeType.MEMORY)
        return format(value if isinstance(value, str | int | float) else str(value), format_spec)


def _format(text: str, *args: Any, **kwargs: Any) -> str:
    return _SafeFormatter().vformat(text, args, kwargs)


def _join(text: str, items: Any) -> str:
    texts = [item if isinstance(item, str) else str(item) for item in items]
    if sum(map(len, texts)) + len(text) * len(texts) > LARGEST:
        raise TemplateMistake(MistakeType.MEMORY)
    return text.join(texts)


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    if len(text) + text.count(old) * max(len(new) - len(old), 0) > LARGEST:
        raise TemplateMistake(MistakeType.MEMORY)
    return text.replace(old, new, count)


def _expandtabs(text: str, tabsize: int = 8) -> str:
    if len(text) + text.count("\t") * bounded_width(tabsize) > LARGEST:
        raise TemplateMistake(MistakeType.MEMORY)
    return text.expandtabs(tabsize)


def _padded(function: Callable[..., str]) -> Callable[..., str]:
    def call(text: str, size: Any, *fill: Any) -> str:
        return function(text, bounded_width(size), *fill)

    return call


def _affix(function: Callable[..., bool]) -> Callable[..., bool]:
    def call(text: str, affix: Any, *bounds: int) -> bool:
        # Python takes a tuple of texts here, and templates write one as a list too.
        return function(text, tuple(cast("list[str]", affix)) if isinstance(affix, list) else affix, *bounds)

    return call


def _get(mapping: dict[Any, Any], key: Any, default: Any = None) -> Any:
    return mapping.get(key, default)


def _items(mapping: dict[Any, Any]) -> list[Any]:
    return list(mapping.items())


def _values(mapping: dict[Any, Any]) -> list[Any]:
    return list(mapping.values())


_TEXT: dict[str, Callable[..., Any]] = {
    name: getattr(str, name)
    for name in (
        "capitalize", "casefold", "count", "find", "index", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit",
        "isidentifier", "islower", "isnumeric", "isprintable", "isspace", "istitle", "isupper", "lower", "lstrip",
        "partition", "removeprefix", "removesuffix", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "split",
        "splitlines", "strip", "swapcase", "title", "upper",
    )
} | {
    "center": _padded(str.center), "ljust": _padded(str.ljust), "rjust": _padded(str.rjust), "zfill": _padded(str.zfill),
    "startswith": _affix(str.startswith), "endswith": _affix(str.endswith), "expandtabs": _expandtabs,
    "format": _format, "join": _join, "replace": _replace,
}  # fmt: skip
_LIST: dict[str, Callable[..., Any]] = {
    "count": list[Any].count,
    "index": list[Any].index,
    "copy": list[Any].copy,
}
_MAP: dict[str, Callable[..., Any]] = {
    "get": _get, "items": _items, "keys": list, "values": _values, "copy": dict[Any, Any].copy,
}  # fmt: skip
_TABLES: dict[type, dict[str, Callable[..., Any]]] = {str: _TEXT, list: _LIST, tuple: _LIST, dict: _MAP}
_NO_METHODS: dict[str, Callable[..., Any]] = {}
METHOD_NAMES = frozenset({*_TEXT, *_LIST, *_MAP, *_CHANGES})
"""The names of all methods, of those that change data too."""
