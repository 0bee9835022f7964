"""What an unquoted scalar means: YAML 1.2's core schema, with decimal numbers only.

`yes`, `no`, `on`, `off`, dates, `0x1f`, `0o17`, `1:30`, `1_000` and `007` are text. Numbers that JSON
cannot carry are refused, because everything read here is written as JSON sooner or later.
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
_LARGEST = 2**63
_INFINITY = float("inf")


class NotJson(ValueError):
    """A number that JSON cannot carry."""


def meaning(text: str) -> str | int | float | bool | None:
    """The value that an unquoted `text` stands for.

    Raises:
        NotJson: it is infinite, not a number, or larger than 64 bits.
    """
    if text and text[0] not in _BEGINNINGS:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if text[0].isalpha():
        return text
    if _WHOLE.fullmatch(text):
        if len(text) <= 20 and -_LARGEST <= (whole := int(text)) < _LARGEST:
            return whole
        raise NotJson("is larger than 64 bits can hold")
    if _FRACTION.fullmatch(text):
        fraction = float(text)
        if abs(fraction) == _INFINITY:
            raise NotJson("is too large for a number")
        return fraction
    if _NO_NUMBER.fullmatch(text):
        raise NotJson("is not a number that JSON can carry")
    return text
