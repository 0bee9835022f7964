"""JSON text read without `NaN` and infinities, which are no numbers of JSON although Python reads them."""

import re
from json import loads
from typing import Any


class NotFinite(ValueError):
    """A JSON text holds a number that JSON cannot represent; `number` is how it is written."""

    def __init__(self, number: str) -> None:
        super().__init__(f"`{number}` is no number that JSON can represent")
        self.number = number


_MAY_BE_INFINITE = re.compile(r"[eE]\+?[0-9]{3}|[0-9]{309}")


def load_finite(text: str) -> Any:
    """The value of a JSON text without `NaN` and without infinities, which Python reads by default.

    Raises:
        NotFinite: it holds one of them, and is JSON otherwise.
        ValueError, RecursionError: as `json.loads` raises them.
    """
    # A function for every float is slow, so it is called only where one may be infinite.
    to_float = _finite if _MAY_BE_INFINITE.search(text) else None
    try:
        return loads(text, parse_constant=_refuse, parse_float=to_float)
    except NotFinite:
        # A mistake behind the number makes the text no JSON at all.
        loads(text)
        raise


def _refuse(word: str) -> Any:
    raise NotFinite(word)


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0:
        raise NotFinite(text[:40])
    return number
