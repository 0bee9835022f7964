"""Whoever wants to hear what happens: observers are told, never asked, and cannot break anything."""

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime

from failwell.fault.frozen import frozen
from failwell.report.describe import describe
from failwell.report.record import ErrorReport

_log = logging.getLogger("failwell")


@frozen
class Suppressed:
    """An error was ignored on purpose, and this is the record of it."""

    reason: str
    cause: str
    """What was ignored, in words that hold no secret: its type and its kind."""
    report: ErrorReport
    at: datetime
    type: str = "suppressed"


Event = Suppressed
Observer = Callable[[Event], None]

_observers: list[Observer] = []


@contextmanager
def observe(observer: Observer) -> Generator[None]:
    """Tell `observer` of every event while the block runs."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


def tell(event: Event) -> None:
    """Tell every observer; what none of them hears goes to the log, so it is never lost."""
    told = list(_observers)
    heard = False
    for observer in told:
        try:
            observer(event)
            heard = True
        except Exception as problem:  # noqa: BLE001  (an observer must not break what it observes)
            _tell_of_failure(observer, problem, told)
    if not heard:
        _log.info("suppressed %s: %s", event.cause, event.reason)


def suppressed(error: BaseException, reason: str) -> Suppressed:
    """The event for an error that is being ignored."""
    report = describe(error)
    return Suppressed(
        reason=reason, cause=f"{report.error_type} ({report.kind})", report=report, at=report.occurred_at
    )


def _tell_of_failure(broken: Observer, problem: Exception, told: list[Observer]) -> None:
    event = suppressed(problem, "an observer failed and was passed over")
    others = [observer for observer in told if observer is not broken]
    if not others:
        _log.warning("suppressed %s: %s", event.cause, event.reason)
    for observer in others:
        try:
            observer(event)
        except Exception:  # noqa: BLE001  (telling of a failed observer is not told of again)
            _log.warning("an observer failed while it was told of another one's failure")
