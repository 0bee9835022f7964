"""The limits of one rendering beside its steps: characters of text, and time.

The engine counts steps, but not what a step writes. So every value that is written and every filter that
can grow a text, all of which pass through Python, take their size from this budget.
"""

from threading import local
from time import monotonic

from failwell.workflow.template.template_errors import Sort, TemplateMistake

LARGEST = 4 * 1024 * 1024
"""Characters of one text, and of all that comes out."""
ROOM = 8 * LARGEST
"""Characters of all texts that one rendering makes, those it throws away included."""
LONGEST = 5.0
"""Seconds. Steps run out long before, unless each of them goes through large data."""


class _Left(local):
    room = ROOM
    until = 0.0


_LEFT = _Left()


def begin() -> None:
    """Start a rendering in this thread."""
    _LEFT.room = ROOM
    _LEFT.until = monotonic() + LONGEST


def take(size: int) -> None:
    """Take `size` characters from the budget."""
    _LEFT.room -= size
    if _LEFT.room < 0:
        raise TemplateMistake(Sort.MEMORY)
    if monotonic() > _LEFT.until:
        raise TemplateMistake(Sort.STEPS)


def taken(text: str) -> str:
    """`text`, after its size was taken from the budget."""
    if len(text) > LARGEST:
        raise TemplateMistake(Sort.MEMORY)
    take(len(text))
    return text
