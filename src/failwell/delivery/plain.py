r"""Text that is safe to show: nothing hidden in it moves a cursor, a reading direction or a reader.

Whatever a terminal, a browser or a model would act on without showing it is written out as an
escape such as `\x1b`, so that it is seen and does nothing.
"""

import re
from collections.abc import Mapping
from json import dumps
from math import isfinite
from typing import Any, cast

from failwell.report.redact import cut

LINE_CAP = 240
"""Characters of a message when a person is shown one line of it."""

_SPACES = re.compile("[\t\n\v\f\r\x1c-\x20\x85\u2028\u2029]+")
_LINE_ENDS = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
# Controls, lone surrogates, marks that turn or hide text, and the tag and variation planes, in which
# whole sentences can be hidden. The joiners U+200C and U+200D stay: scripts and emoji need them.
_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)


def neutral(text: str) -> str:
    """`text` with its lines kept, line ends made plain, and everything that acts written out."""
    return _ACTING.sub(_written_out, _LINE_ENDS.sub("\n", text))


def one_line(text: str, limit: int = LINE_CAP) -> str:
    """`text` on one line of at most `limit` characters; a mark says when some of it was cut."""
    return cut(_ACTING.sub(_written_out, _SPACES.sub(" ", text).strip()), limit)


def _written_out(match: re.Match[str]) -> str:
    point = ord(match.group())
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def finite(value: Any) -> Any:
    """`value` with every number that JSON cannot write replaced by null."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(inner) for key, inner in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in cast("list[Any]", value)]
    return value


def json_text(value: object, *, indent: int | None = None) -> str:
    """`value` as JSON text; what JSON does not know is named by its type."""
    return dumps(finite(value), ensure_ascii=False, allow_nan=False, indent=indent, default=_named)


def _named(value: object) -> str:
    return f"<{type(value).__name__}>"
