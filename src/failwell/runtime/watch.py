"""Whoever wants to follow the attempts: told of every failed one, and of how it all ended.

An observer is given to one loop, or watches all of them for a while. It cannot break what it watches.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeAlias

from failwell.fault.frozen import frozen
from failwell.report.ledger import Ledger
from failwell.report.record import Attempt, ErrorReport
from failwell.runtime.observer import suppressed
from failwell.runtime.observer import tell as tell_suppressed


@frozen
class Tried:
    """One attempt failed, and this was decided about it."""

    layer: str
    attempt: Attempt
    """Its number, kind, wait and reason."""
    report: ErrorReport
    type: str = "tried"


@frozen
class Ended:
    """An operation that failed at least once is over."""

    ledger: Ledger
    succeeded: bool
    type: str = "ended"


Happening: TypeAlias = Tried | Ended
Watcher: TypeAlias = Callable[[Happening], object]

_watchers: list[Watcher] = []


@contextmanager
def watch(watcher: Watcher) -> Generator[None]:
    """Tell `watcher` of every attempt in this process while the block runs."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def is_watched(own: Watcher | None) -> bool:
    """Whether anybody would hear."""
    return own is not None or bool(_watchers)


def tell(happening: Happening, own: Watcher | None) -> None:
    """Tell the loop's own watcher and those of the whole process."""
    for watcher in [*_watchers] if own is None else [own, *_watchers]:
        try:
            watcher(happening)
        except Exception as problem:  # noqa: BLE001  (a watcher must not break what it watches)
            tell_suppressed(suppressed(problem, "a watcher of attempts failed and was passed over"))
