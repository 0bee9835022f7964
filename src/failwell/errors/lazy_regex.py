"""Regular expressions that are compiled when they are first used: a process that fails once needs few of them."""

import re
from typing import Any, cast


class _LazyRegex:
    __slots__ = ("_flags", "_source", "findall", "finditer", "fullmatch", "match", "search", "split", "sub")

    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        # Called for a slot that is empty; once the methods are in their slots a call costs nothing more.
        compiled = re.compile(self._source, self._flags)
        for method in self.__slots__[2:]:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def lazy_regex(source: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile`, put off until the pattern is used."""
    return cast("re.Pattern[str]", _LazyRegex(source, flags))
