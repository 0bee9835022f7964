"""The question that every engine asks: may this failure be repeated, and how soon?"""

from failwell.adapters.describe import describe
from failwell.calls.attempt_loop import Parked
from failwell.calls.policy import IN_PROCESS_LIMIT, exhausted_inside, is_unsure
from failwell.errors.axes import Category
from failwell.errors.report import ErrorReport


def repeatable(
    error: BaseException,
    *,
    idempotent: bool | None = None,
    longest: float = IN_PROCESS_LIMIT,
    repeat_exhausted: bool = False,
) -> ErrorReport | None:
    """The report of a failure that a framework may repeat within `longest` seconds, or `None`.

    An interrupt and a cancel are never repeated, nor is what a loop below has parked, nor work that may
    have been done unless the call is declared `idempotent`. What a loop below has repeated up to its limit is
    repeated only if `repeat_exhausted` is set: the calls of both loops multiply.
    """
    if not isinstance(error, Exception) or isinstance(error, Parked):
        return None
    report = describe(error, origin="call", idempotent=idempotent)
    if report.category is Category.CANCELLED or not report.retryable or is_unsure(report, idempotent):
        return None
    if exhausted_inside(report) is not None and not repeat_exhausted:
        return None
    delay = report.not_before
    return None if delay is not None and delay.after > longest else report
