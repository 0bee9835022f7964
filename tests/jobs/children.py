"""The processes that a test has started, apart from those that were there before it."""

import os

from failwell.processes.tree import descendants

_earlier: set[int] = set()


def remember_children() -> None:
    """Take what runs now for other tests' business: a process pool keeps its resource tracker, for one."""
    _earlier.clear()
    _earlier.update(descendants(os.getpid()))


def children() -> list[int]:
    """The descendants of this process that were not there when the test began."""
    return sorted(set(descendants(os.getpid())) - _earlier)
