"""Filters that the engine lacks, or has without a size limit or with other behaviour than Jinja2's.

They receive Python values: views of data, and dicts and lists that the template created.
"""

import json
import re
from collections.abc import Callable
from typing import Any, cast

from failwell.workflows.template.data_views import (
    BigNumber,
    behind,
    is_missing,
    is_view,
    type_name,
    unwrapped,
    view,
)
from failwell.workflows.template.functions.methods import WIDEST, bounded_width
from failwell.workflows.template.memory_budget import LARGEST, spend, spend_text
from failwell.workflows.template.template_errors import MistakeType, TemplateMistake

LARGEST_VALUE = 8 * LARGEST
"""Characters of all texts in one value that is assigned to a name."""
MAX_ITEMS = 1_000_000
"""Items of one value."""
MAX_DEPTH = 256
_IN_JSON = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "'": "\\u0027"})
_WORD = re.compile(r"\w+")
_FIELD = re.compile(r"%(?:\([^)]*\))?[-#0 +]*(\*|\d+)?(?:\.(\*|\d+))?")


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


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return str(value if isinstance(value, int | float) else plain_json(value))


def checked_value(value: Any) -> Any:
    """A value that a template assigns to a name, if it is within the size limits."""
    if is_missing(value):
        raise TemplateMistake(MistakeType.UNDEFINED)
    plain = bounded(unwrapped(value))
    spend(len(plain) if isinstance(plain, str) else 0)
    return view(plain)


def default_filter(value: Any, default: Any = "", boolean: Any = False) -> Any:
    """`default`: null is replaced as well, since an optional input without a value is null."""
    return default if value is None or is_missing(value) or (boolean and not value) else value


def _dumps(value: Any, indent: Any, **options: Any) -> str:
    plain = plain_json(value)
    if indent is not None:
        indent = min(bounded_width(indent), 16)
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


def format_text(value: Any, *args: Any, **kwargs: Any) -> str:
    """`%` of a text and `format`, with a limit on the width of each field."""
    pattern = _text(value)
    room = len(pattern)
    for field in _FIELD.finditer(pattern):
        for part in field.groups():
            # A `*` takes the width from the data, so it cannot be checked before.
            if part is not None and (part == "*" or len(part) > 5 or int(part) > WIDEST):
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
    space = width if type(width) is str else " " * bounded_width(width)
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
    return _text(value).center(bounded_width(width))


def _wordwrap(
    value: Any,
    width: Any = 79,
    break_long_words: Any = True,
    wrapstring: Any = None,
    break_on_hyphens: Any = True,
) -> str:
    from textwrap import TextWrapper

    text, between = _text(value), "\n" if wrapstring is None else _text(wrapstring)
    if bounded_width(width) < 1:
        raise TemplateMistake(MistakeType.ARGUMENTS)
    wrapper = TextWrapper(
        width,
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=bool(break_long_words),
        break_on_hyphens=bool(break_on_hyphens),
    )
    lines = [part for line in text.splitlines() for part in wrapper.wrap(line) or [""]]
    if len(text) + len(lines) * len(between) > LARGEST:
        raise TemplateMistake(MistakeType.MEMORY)
    return between.join(lines)


def _wordcount(value: Any) -> int:
    return sum(1 for _ in _WORD.finditer(_text(value)))


def _rows(value: Any) -> list[Any]:
    rows = list(value) if isinstance(value, str) else unwrapped(value)
    if not isinstance(rows, list | tuple):
        raise TemplateMistake(MistakeType.OPERATION)
    return list(rows)  # pyright: ignore[reportUnknownArgumentType] - JSON


def _batch(value: Any, linecount: Any, fill_with: Any = None) -> Any:
    if bounded_width(linecount) < 1:
        raise TemplateMistake(MistakeType.ARGUMENTS)
    values = _rows(value)
    batches = [values[start : start + linecount] for start in range(0, len(values), linecount)]
    if batches and fill_with is not None:
        batches[-1] += [fill_with] * (linecount - len(batches[-1]))
    return view(batches)


def _slice(value: Any, slices: Any, fill_with: Any = None) -> Any:
    if bounded_width(slices) < 1:
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


def strict(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that refuses undefined values, and whose result is within the limits."""

    def call(value: Any, *args: Any, **kwargs: Any) -> Any:
        if is_missing(value) or any(is_missing(argument) for argument in args):
            raise TemplateMistake(MistakeType.UNDEFINED)
        if isinstance(value, BigNumber):
            value = behind(value)
        try:
            result = function(value, *args, **kwargs)
        except TemplateMistake as mistake:
            if mistake.detail is None and mistake.type in {MistakeType.OPERATION, MistakeType.ARGUMENTS}:
                mistake.detail = f"`{name}` of {type_name(value)}"
            raise
        except (TypeError, ValueError, AttributeError, KeyError, IndexError):
            raise TemplateMistake(MistakeType.OPERATION, detail=f"`{name}` of {type_name(value)}") from None
        return spend_text(result) if isinstance(result, str) else view(result)

    return call


FILTERS: dict[str, Callable[..., Any]] = {
    name: strict(name, function)
    for name, function in (
        ("batch", _batch), ("center", _center), ("float", _float), ("format", format_text), ("indent", _indent),
        ("int", _int), ("join", _join), ("json", _json), ("replace", _replace), ("round", _round),
        ("slice", _slice), ("tojson", _tojson), ("truncate", _truncate), ("wordcount", _wordcount),
        ("wordwrap", _wordwrap),
    )
}  # fmt: skip
"""Filters by name. The engine's own `default` marks undefined values before each of them: see `source_guard`."""
