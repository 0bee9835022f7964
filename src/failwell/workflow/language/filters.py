"""The filters for single values: texts, numbers, and writing things out.

A filter gets the budget and the value, then its arguments. Names and defaults are Jinja's.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from failwell.workflow.language.budget import Budget, length
from failwell.workflow.language.mistakes import Mistake, Sort
from failwell.workflow.language.printf import printf
from failwell.workflow.language.values import UNDEFINED, text_of

Filter = Callable[..., Any]

_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", '"': "&#34;"})
_IN_JSON = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "'": "\\u0027"})
_WORD = re.compile(r"\w+")
_TAG = re.compile(r"<!--.*?-->|<[^>]*>", re.DOTALL)
_WORD_START = re.compile(r"([-\s({\[<]+)")
_WIDEST = 10_000
_BY_ROUNDING = {"common", "ceil", "floor"}


def width(value: Any) -> int:
    """`value` as a number of columns that no text grows too wide by."""
    if type(value) is not int:
        raise Mistake(Sort.ARGUMENTS)
    if value > _WIDEST:
        raise Mistake(Sort.MEMORY)
    return max(value, 0)


# ---------------------------------------------------------------- any value


def _default(_: Budget, value: Any, default: Any = "", boolean: Any = False) -> Any:
    # Null is replaced as well, since an optional input without a value is null.
    if value is UNDEFINED or value is None or (boolean and not value):
        return default
    return value


def _string(budget: Budget, value: Any) -> str:
    return text_of(value, budget)


def _written(budget: Budget, value: Any, indent: Any, *, ascii_only: bool, sort: bool) -> str:
    spread = budget.weigh(value)
    if indent is not None:
        indent = width(indent) if type(indent) is int else text_of(indent, budget)
        budget.take((indent if type(indent) is int else len(indent)) * spread)
    try:
        made = json.dumps(value, indent=indent, ensure_ascii=ascii_only, sort_keys=sort)
    except (TypeError, ValueError):
        raise Mistake(Sort.OPERATION) from None
    return budget.text(made)


def _json(budget: Budget, value: Any, indent: Any = 2) -> str:
    return _written(budget, value, indent, ascii_only=False, sort=False)


def _tojson(budget: Budget, value: Any, indent: Any = None) -> str:
    return _written(budget, value, indent, ascii_only=True, sort=True).translate(_IN_JSON)


def _pprint(budget: Budget, value: Any) -> str:
    from pprint import pformat

    budget.weigh(value)
    return budget.text(pformat(value))


def _length(_: Budget, value: Any) -> int:
    return length(value)


def _safe(_: Budget, value: Any) -> Any:
    return value


# ---------------------------------------------------------------- numbers


def _int(_: Budget, value: Any, default: Any = 0, base: Any = 10) -> Any:
    try:
        if isinstance(value, str):
            return int(value, base)
        return int(value)
    except (TypeError, ValueError, OverflowError):
        try:
            return int(float(value))
        except (TypeError, ValueError, OverflowError):
            return default


def _float(_: Budget, value: Any, default: Any = 0.0) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return default


def _abs(_: Budget, value: Any) -> Any:
    return abs(value)


def _round(_: Budget, value: Any, precision: Any = 0, method: Any = "common") -> Any:
    if method not in _BY_ROUNDING or type(precision) is not int or abs(precision) > 300:
        raise Mistake(Sort.ARGUMENTS)
    if method == "common":
        return round(value, precision)
    from math import ceil, floor

    power = 10.0**precision
    return (ceil if method == "ceil" else floor)(value * power) / power


def _filesizeformat(_: Budget, value: Any, binary: Any = False) -> str:
    size = float(value)
    base = 1024 if binary else 1000
    if size == 1:
        return "1 Byte"
    if size < base:
        return f"{int(size)} Bytes"
    units = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB") if binary else (
        "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB")  # fmt: skip
    power = next((n for n in range(2, 10) if size < base**n), 9)
    return f"{base * size / base**power:.1f} {units[power - 2]}"


# ---------------------------------------------------------------- texts


def _upper(budget: Budget, value: Any) -> str:
    return budget.text(text_of(value, budget).upper())


def _lower(budget: Budget, value: Any) -> str:
    return budget.text(text_of(value, budget).lower())


def _capitalize(budget: Budget, value: Any) -> str:
    return budget.text(text_of(value, budget).capitalize())


def _title(budget: Budget, value: Any) -> str:
    pieces = _WORD_START.split(text_of(value, budget))
    return budget.text("".join(piece[:1].upper() + piece[1:].lower() for piece in pieces if piece))


def _trim(budget: Budget, value: Any, chars: Any = None) -> str:
    return budget.text(text_of(value, budget).strip(chars))


def replaced(budget: Budget, value: str, old: Any, new: Any, count: Any = None) -> str:
    """`value` with `old` replaced, counted before it is made."""
    most = value.count(old)
    if count is not None and count >= 0:
        most = min(most, count)
    budget.take(len(value) + most * max(len(new) - len(old), 0))
    return value.replace(old, new, -1 if count is None else count)


def _replace(budget: Budget, value: Any, old: Any, new: Any, count: Any = None) -> str:
    return replaced(budget, text_of(value, budget), text_of(old, budget), text_of(new, budget), count)


def _format(budget: Budget, value: Any, *args: Any, **named: Any) -> str:
    if args and named:
        raise Mistake(Sort.ARGUMENTS)
    return printf(text_of(value, budget), named or args, budget)


def _indent(budget: Budget, value: Any, width_: Any = 4, first: Any = False, blank: Any = False) -> str:
    text = text_of(value, budget)
    space = width_ if isinstance(width_, str) else " " * width(width_)
    budget.take(len(text) + (text.count("\n") + 1) * len(space))
    lines = (text + "\n").splitlines() if not blank else text.split("\n")
    made = lines.pop(0) if lines else ""
    if lines:
        made += "\n" + "\n".join(space + line if line or blank else line for line in lines)
    return space + made if first else made


def indent_filter(budget: Budget, value: Any, *args: Any, **named: Any) -> str:
    """`indent`, whose first argument is named `width`."""
    if "width" in named:
        named["width_"] = named.pop("width")
    return _indent(budget, value, *args, **named)


def _truncate(
    budget: Budget, value: Any, length_: Any = 255, killwords: Any = False, end: Any = "...", leeway: Any = 5
) -> str:
    text = text_of(value, budget)
    if length_ < len(end) or leeway < 0:
        raise Mistake(Sort.ARGUMENTS)
    if len(text) <= length_ + leeway:
        return text
    if killwords:
        return budget.text(text[: length_ - len(end)] + end)
    return budget.text(text[: length_ - len(end)].rsplit(" ", 1)[0] + end)


def truncate_filter(budget: Budget, value: Any, *args: Any, **named: Any) -> str:
    """`truncate`, whose first argument is named `length`."""
    if "length" in named:
        named["length_"] = named.pop("length")
    return _truncate(budget, value, *args, **named)


def _center(budget: Budget, value: Any, wide: Any = 80) -> str:
    return budget.text(text_of(value, budget).center(width(wide)))


def _wordcount(budget: Budget, value: Any) -> int:
    return sum(1 for _ in _WORD.finditer(text_of(value, budget)))


def _wordwrap(
    budget: Budget,
    value: Any,
    wide: Any = 79,
    break_long_words: Any = True,
    wrapstring: Any = None,
    break_on_hyphens: Any = True,
) -> str:
    from textwrap import wrap

    text = text_of(value, budget)
    budget.step(len(text))
    joiner = "\n" if wrapstring is None else wrapstring
    lines = [
        joiner.join(
            wrap(
                line,
                width=max(width(wide), 1),
                expand_tabs=False,
                replace_whitespace=False,
                break_long_words=bool(break_long_words),
                break_on_hyphens=bool(break_on_hyphens),
            )
        )
        for line in text.splitlines()
    ]
    return budget.text(joiner.join(lines))


def wordwrap_filter(budget: Budget, value: Any, *args: Any, **named: Any) -> str:
    """`wordwrap`, whose first argument is named `width`."""
    if "width" in named:
        named["wide"] = named.pop("width")
    return _wordwrap(budget, value, *args, **named)


def _urlencode(budget: Budget, value: Any) -> str:
    from urllib.parse import quote, quote_plus

    if type(value) is str:
        budget.take(3 * len(value))
        return quote(value, safe="/")
    pairs = value.items() if type(value) is dict else value
    if type(pairs) in {int, float, bool} or pairs is None:
        return quote(str(pairs), safe="/")
    budget.weigh(value)
    made = "&".join(f"{quote_plus(text_of(k, budget))}={quote_plus(text_of(v, budget))}" for k, v in pairs)
    return budget.text(made)


def _escape(budget: Budget, value: Any) -> str:
    return budget.text(text_of(value, budget).translate(_HTML))


def _striptags(budget: Budget, value: Any) -> str:
    from html import unescape

    text = text_of(value, budget)
    budget.step(len(text))
    return budget.text(" ".join(unescape(_without_tags(text)).split()))


def _without_tags(text: str) -> str:
    # Without a closing sign nothing after the last one can be a tag; looking for one from each opening
    # sign would take the square of the length.
    end = text.rfind(">") + 1
    return _TAG.sub("", text[:end]) + text[end:]


FILTERS: dict[str, Filter] = {
    "abs": _abs,
    "capitalize": _capitalize,
    "center": _center,
    "count": _length,
    "d": _default,
    "default": _default,
    "e": _escape,
    "escape": _escape,
    "filesizeformat": _filesizeformat,
    "float": _float,
    "forceescape": _escape,
    "format": _format,
    "indent": indent_filter,
    "int": _int,
    "json": _json,
    "length": _length,
    "lower": _lower,
    "pprint": _pprint,
    "replace": _replace,
    "round": _round,
    "safe": _safe,
    "string": _string,
    "striptags": _striptags,
    "title": _title,
    "tojson": _tojson,
    "trim": _trim,
    "truncate": truncate_filter,
    "upper": _upper,
    "urlencode": _urlencode,
    "wordcount": _wordcount,
    "wordwrap": wordwrap_filter,
}
"""By name. `default` is the one that takes an undefined value."""
