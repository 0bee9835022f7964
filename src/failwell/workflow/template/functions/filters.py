"""Filters that the engine lacks, or has without a size limit or with other behaviour than Jinja2's.

They receive Python values: views of data, and dicts and lists that the template created. `MISSING_VALUE`
is an undefined value.
"""

import json
import re
from collections.abc import Callable
from string import Formatter
from typing import Any, cast

from failwell.workflow.template.data_views import behind, is_view, unwrapped, view
from failwell.workflow.template.memory_budget import LARGEST, spend, spend_text
from failwell.workflow.template.template_errors import MistakeType, TemplateMistake

LARGEST_VALUE = 8 * LARGEST
"""Characters of all texts in one value that is assigned to a name."""
MAX_ITEMS = 1_000_000
"""Items of one value."""
MAX_DEPTH = 256
_WIDEST = 10_000
_IN_JSON = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "'": "\\u0027"})
_WIDE = re.compile(r"\d{5}")
_WORD = re.compile(r"\w+")
_FIELD = re.compile(r"%(?:\([^)]*\))?[-#0 +]*(\*|\d+)?(?:\.(\*|\d+))?")


class _MissingValue:
    """An undefined value, as filters receive it."""

    __slots__ = ()

    def __str__(self) -> str:
        return ""


MISSING_VALUE = _MissingValue()


def bounded(value: Any) -> Any:
    """`value`, if it is within the size limits. A part that occurs several times counts each time."""
    if type(value) is str:
        if len(value) > LARGEST:
            raise TemplateMistake(MistakeType.MEMORY)
        return value
    level: list[Any] = [value]
    room, items = LARGEST_VALUE, MAX_ITEMS
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for part in level:
            plain = behind(part)
            if isinstance(plain, str):
                room -= len(plain)
            elif isinstance(plain, dict):
                items -= len(cast("dict[Any, Any]", plain))
                below += (*plain, *plain.values())
            elif isinstance(plain, list | tuple):
                items -= len(cast("list[Any]", plain))
                below += plain
            if room < 0 or items < 0 or len(below) > MAX_ITEMS * 2:
                raise TemplateMistake(MistakeType.MEMORY)
        if not below:
            return value
        level = below
    raise TemplateMistake(MistakeType.DEPTH)


def plain_json(value: Any) -> Any:
    """The JSON of a value. The size of a value that a template created is checked; a view is within the limits."""
    return behind(value) if is_view(value) else bounded(unwrapped(value))


def _width(value: Any) -> int:
    if type(value) is not int:
        raise TemplateMistake(MistakeType.ARGUMENTS)
    if value > _WIDEST:
        raise TemplateMistake(MistakeType.MEMORY)
    return max(value, 0)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return str(value if isinstance(value, int | float) else plain_json(value))


def checked_value(value: Any) -> Any:
    """A value that a template assigns to a name, if it is within the size limits."""
    if value is MISSING_VALUE:
        raise TemplateMistake(MistakeType.UNDEFINED)
    plain = bounded(unwrapped(value))
    spend(len(plain) if isinstance(plain, str) else 0)
    return view(plain)


def default_filter(value: Any, default: Any = "", boolean: Any = False) -> Any:
    """`default`: null is replaced as well, since an optional input without a value is null."""
    return default if value is None or value is MISSING_VALUE or (boolean and not value) else value


def _dumps(value: Any, indent: Any, **options: Any) -> str:
    plain = plain_json(value)
    if indent is not None:
        indent = min(_width(indent), 16)
    return json.dumps(plain, indent=indent, **options)


def _json(value: Any, indent: Any = 2) -> str:
    return _dumps(value, indent, ensure_ascii=False)


def _tojson(value: Any, indent: Any = None) -> str:
    return _dumps(value, indent, sort_keys=True).translate(_IN_JSON)


def _int(value: Any, default: Any = 0, base: Any = 10) -> Any:
    try:
        return int(value, base) if type(value) is str else int(value)
    except (TypeError, ValueError, OverflowError):
        try:
            return int(float(value))
        except (TypeError, ValueError, OverflowError):
            return default


def _float(value: Any, default: Any = 0.0) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return default


def _round(value: Any, precision: Any = 0, method: Any = "common") -> Any:
    if method not in {"common", "ceil", "floor"} or type(precision) is not int or abs(precision) > 300:
        raise TemplateMistake(MistakeType.ARGUMENTS)
    if method == "common":
        return round(value, precision)
    from math import ceil, floor

    power = 10.0**precision
    return (ceil if method == "ceil" else floor)(value * power) / power


def _format(value: Any, *args: Any, **kwargs: Any) -> str:
    pattern = _text(value)
    room = len(pattern)
    for field in _FIELD.finditer(pattern):
        for part in field.groups():
            # A `*` takes the width from the data, so it cannot be checked before.
            if part is not None and (part == "*" or len(part) > 5 or int(part) > _WIDEST):
                raise TemplateMistake(MistakeType.MEMORY)
            room += int(part or 0)
    values = [bounded(unwrapped(argument)) for argument in (*args, *kwargs.values())]
    if room > LARGEST:
        raise TemplateMistake(MistakeType.MEMORY)
    return pattern % (dict(zip(kwargs, values, strict=True)) if kwargs else tuple(values))


def _replace(value: Any, old: Any, new: Any, count: Any = -1) -> str:
    text, old, new = _text(value), _text(old), _text(new)
    if len(text) + text.count(old) * max(len(new) - len(old), 0) > LARGEST:
        raise TemplateMistake(MistakeType.MEMORY)
    return text.replace(old, new, -1 if count is None else count)


def _join(value: Any, d: Any = "", attribute: Any = None) -> str:
    if type(value) is str:
        parts: list[Any] = list(value)
    else:
        plain = unwrapped(value)
        if not isinstance(plain, list | tuple | dict):
            raise TemplateMistake(MistakeType.OPERATION)
        parts = list(plain)  # pyright: ignore[reportUnknownArgumentType] - JSON
    if attribute is not None:
        for step in str(attribute).split("."):
            parts = [part[int(step)] if isinstance(part, list) else part[step] for part in parts]
    texts, between = [_text(part) for part in parts], _text(d)
    if sum(map(len, texts)) + len(between) * len(texts) > LARGEST:
        raise TemplateMistake(MistakeType.MEMORY)
    return between.join(texts)


def _indent(value: Any, width: Any = 4, first: Any = False, blank: Any = False) -> str:
    text = _text(value)
    space = width if type(width) is str else " " * _width(width)
    if len(text) + (text.count("\n") + 1) * len(space) > LARGEST:
        raise TemplateMistake(MistakeType.MEMORY)
    head, *lines = text.split("\n")
    indented = "\n".join([head, *(space + line if line or blank else line for line in lines)])
    return space + indented if first else indented


def _truncate(
    value: Any, length: Any = 255, killwords: Any = False, end: Any = "...", leeway: Any = 5
) -> str:
    text = _text(value)
    if length < len(end) or leeway < 0:
        raise TemplateMistake(MistakeType.ARGUMENTS)
    if len(text) <= length + leeway:
        return text
    head = text[: length - len(end)]
    return (head if killwords else head.rsplit(" ", 1)[0]) + end


def _center(value: Any, width: Any = 80) -> str:
    return _text(value).center(_width(width))


def _wordcount(value: Any) -> int:
    return sum(1 for _ in _WORD.finditer(_text(value)))


def _rows(value: Any) -> list[Any]:
    rows = unwrapped(value)
    if not isinstance(rows, list | tuple):
        raise TemplateMistake(MistakeType.OPERATION)
    return list(rows)  # pyright: ignore[reportUnknownArgumentType] - JSON


def _batch(value: Any, linecount: Any, fill_with: Any = None) -> Any:
    if _width(linecount) < 1:
        raise TemplateMistake(MistakeType.ARGUMENTS)
    values = _rows(value)
    batches = [values[start : start + linecount] for start in range(0, len(values), linecount)]
    if batches and fill_with is not None:
        batches[-1] += [fill_with] * (linecount - len(batches[-1]))
    return view(batches)


def _slice(value: Any, slices: Any, fill_with: Any = None) -> Any:
    if _width(slices) < 1:
        raise TemplateMistake(MistakeType.ARGUMENTS)
    values = _rows(value)
    size, longer = divmod(len(values), slices)
    columns: list[Any] = []
    start = 0
    for column in range(slices):
        end = start + size + (column < longer)
        fill = [fill_with] if fill_with is not None and column >= longer else []
        columns.append(values[start:end] + fill)
        start = end
    return view(columns)


def _join_method(value: Any, items: Any) -> str:
    return _join(items, value)


class _SafeFormatter(Formatter):
    """`str.format` without access to the attributes of Python objects."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        if not field_name.isidentifier() and not field_name.isdigit():
            raise TemplateMistake(MistakeType.ARGUMENTS)
        return self.get_value(
            int(field_name) if field_name.isdigit() else field_name, args, kwargs
        ), field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        if _WIDE.search(format_spec):
            raise TemplateMistake(MistakeType.MEMORY)
        return format(value if isinstance(value, str | int | float) else _text(value), format_spec)


def _format_method(value: Any, *args: Any, **kwargs: Any) -> str:
    return _SafeFormatter().vformat(_text(value), args, kwargs)


def _strict(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(value: Any, *args: Any, **kwargs: Any) -> Any:
        if value is MISSING_VALUE:
            raise TemplateMistake(MistakeType.UNDEFINED)
        result = function(value, *args, **kwargs)
        return spend_text(result) if isinstance(result, str) else result

    return call


def _of_text(function: Callable[..., str]) -> Callable[..., str]:
    def call(value: Any, *args: Any, **kwargs: Any) -> str:
        if not isinstance(value, str):
            raise TemplateMistake(MistakeType.UNKNOWN_FUNCTION)
        return function(value, *args, **kwargs)

    return call


FILTERS: dict[str, Callable[..., Any]] = {
    name: _strict(function)
    for name, function in (
        ("batch", _batch), ("center", _center), ("float", _float), ("format", _format), ("indent", _indent),
        ("int", _int), ("join", _join), ("json", _json), ("replace", _replace), ("round", _round),
        ("slice", _slice), ("tojson", _tojson), ("truncate", _truncate), ("wordcount", _wordcount),
    )
}  # fmt: skip
"""Filters by name. The engine's own `default` marks undefined values before each of them: see `source_guard`."""

METHODS: dict[str, Callable[..., Any]] = {
    name: _strict(_of_text(function))
    for name, function in (("format", _format_method), ("join", _join_method), ("replace", _replace))
}  # fmt: skip
"""Methods that can grow a text. The source guard calls these instead of the engine's."""

INNER: dict[str, Callable[..., Any]] = {
    "_kept": checked_value,
    "_default": default_filter,
    "_d": default_filter,
} | {f"_method_{name}": function for name, function in METHODS.items()}
"""Filters that the source guard adds to templates."""
