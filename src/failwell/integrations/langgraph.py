"""LangGraph: `RetryPolicy(retry_on=retry_on)` repeats a node only after failures that a repeat can cure.

Example:
    >>> from failwell.integrations.langgraph import retry_on
    >>> retry_on(ConnectionRefusedError(111, "Connection refused")), retry_on(ValueError("no"))
    (True, False)
"""

from failwell.integrations._repeatable import repeatable

__all__ = ["retry_on"]


def retry_on(error: Exception, *, idempotent: bool | None = None, repeat_exhausted: bool = False) -> bool:
    """Whether the node may run again.

    LangGraph counts and waits by its own numbers, so a server-requested delay is not honoured to the second: one that is
    too long to sleep is a `False`, and for shorter ones set `initial_interval` to what your provider asks.

    Args:
        error: What the node raised.
        idempotent: Whether a repeat is harmless although the outcome is unknown; bind it with `partial`.
        repeat_exhausted: Whether to repeat what a failwell loop below has repeated up to its limit.
    """
    return repeatable(error, idempotent=idempotent, repeat_exhausted=repeat_exhausted) is not None
