"""stamina: `@stamina.retry(on=retry_on)` repeats what may be repeated, when the provider says.

Example:
    >>> from failwell.integrations.stamina import retry_on
    >>> retry_on(ConnectionRefusedError(111, "Connection refused")), retry_on(ValueError("no"))
    (True, False)
"""

from datetime import timedelta

from failwell.calls.task_calls import repeatable

__all__ = ["retry_on"]


def retry_on(
    error: BaseException, *, idempotent: bool | None = None, repeat_exhausted: bool = False
) -> bool | float | timedelta:
    """`False` for what must not be repeated, the exact delay where the server requested one, else `True`.

    A delay that is too long to sleep is a `False`: put the work aside instead. stamina asks about
    cancels and interrupts too, which are not repeated.

    Args:
        error: What was raised.
        idempotent: Whether a repeat is harmless although the outcome is unknown; bind it with `partial`.
        repeat_exhausted: Whether to repeat what a failwell loop below has repeated up to its limit.
    """
    report = repeatable(error, idempotent=idempotent, repeat_exhausted=repeat_exhausted)
    if report is None:
        return False
    return True if report.not_before is None else report.not_before.after
