r"""Text that is safe to show: nothing hidden in it moves a cursor, a reading direction or a reader.

Whatever a terminal, a browser or a model would act on without showing it is written out as an
escape such as `\x1b`, so that it is seen and does nothing.
"""

import re
from collections.abc import Sized
from json import dumps
from math import isfinite
from sys import getrecursionlimit
from typing import Any, cast

from failwell.errors.foreign_objects import safe_call
from failwell.errors.json_walk import map_values
from failwell.errors.redact import cut
from failwell.errors.safe_str import is_printable

LINE_CAP = 240
"""Characters of a message when a person is shown one line of it."""

_CONTAINERS = (dict, list, tuple, set, frozenset, bytes, bytearray)
_MOST_ITEMS = 200
"""Items of a container that is still written out."""

_SPACES = re.compile("[\t\n\v\f\r\x1c-\x20\x85\u2028\u2029]+")
_LINE_ENDS = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
# Controls, lone surrogates, marks that turn or hide text, and the tag and variation planes, in which
# whole sentences can be hidden. The joiners U+200C and U+200D stay: scripts and emoji need them.
_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def is_large(value: object) -> bool:
    """Whether `value` is a container with so many items that it is not to be written out."""
    # By exact type: a subclass may misreport its length, and a metaclass raise when it is hashed.
    kind = type(value)
    return any(kind is each for each in _CONTAINERS) and len(cast("Sized", value)) > _MOST_ITEMS


def bounded_str(value: object) -> str:
    """`str(value)` where that is short work: what is large, raises or runs unknown code is named by its type."""
    if isinstance(value, str):
        return value
    if is_large(value):
        return f"<large {type(value).__name__}>"
    return safe_call(str, _named(value), value) if is_printable(value) else _named(value)


def text_or(value: object, default: str) -> str:
    """`value` if it is a string, else `default`: for texts in foreign documents."""
    return value if isinstance(value, str) else default


def neutral(text: str) -> str:
    """`text` with its lines kept, line ends normalized, and control characters escaped."""
    return _ACTING.sub(_written_out, _LINE_ENDS.sub("\n", text))


def one_line(text: str, limit: int = LINE_CAP) -> str:
    """`text` on one line of at most `limit` characters; a mark says when some of it was cut."""
    line = _ACTING.sub(_written_out, _SPACES.sub(" ", text).strip())
    return line if len(line) <= limit else cut(line, limit)


def neutral_json(text: str) -> str:
    """JSON text with control characters as JSON's own escapes; a reader gets the same values."""
    return _ACTING.sub(lambda match: dumps(match.group())[1:-1], text)


def _written_out(match: re.Match[str]) -> str:
    point = ord(match.group())
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def finite(value: Any) -> Any:
    """`value` with every number that JSON cannot write replaced by null, and every key a text.

    Raises:
        RecursionError: it has more levels than Python can walk.
    """
    return map_values(
        value,
        lambda leaf: None if isinstance(leaf, float) and not isfinite(leaf) else leaf,
        key=lambda name: name if type(name) is str else bounded_str(name),
        deepest=getrecursionlimit(),
    )


def json_text(value: object, *, indent: int | None = None) -> str:
    """`value` as JSON text; what JSON does not know is named by its type."""
    return dumps(finite(value), ensure_ascii=False, allow_nan=False, indent=indent, default=_named)


def _named(value: object) -> str:
    return f"<{type(value).__name__}>"
