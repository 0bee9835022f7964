"""The value of an unquoted YAML scalar: the core schema of YAML 1.2, with decimal numbers only.

`yes`, `no`, `on`, `off`, dates, `0x1f`, `0o17`, `1:30`, `1_000` and `007` are text. Numbers that JSON
cannot represent are refused, because every value is stored as JSON later.
"""

import re

_WORDS = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FRACTION = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_BEGINNINGS = frozenset("-+.0123456789~tTfFnN")
_MAX_DIGITS = 4_000
_INFINITY = float("inf")


class NotJson(ValueError):
    """A number that JSON cannot represent."""


def scalar_value(text: str) -> str | int | float | bool | None:
    """The value that an unquoted `text` stands for.

    Raises:
        NotJson: it is infinite, not a number, or has too many digits.
    """
    if text and text[0] not in _BEGINNINGS:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if text[0].isalpha():
        return text
    if _WHOLE.fullmatch(text):
        if len(text) <= _MAX_DIGITS:
            return int(text)
        raise NotJson(f"has more than {_MAX_DIGITS:,} digits")
    if _FRACTION.fullmatch(text):
        fraction = float(text)
        if abs(fraction) == _INFINITY:
            raise NotJson("is too large for a number")
        return fraction
    if _NO_NUMBER.fullmatch(text):
        raise NotJson("is not a number that JSON can represent")
    return text
