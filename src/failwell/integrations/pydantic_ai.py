"""Pydantic AI: `FallbackModel(..., fallback_on=fallback_on)` moves on only where another model may succeed.

Example:
    >>> from failwell.integrations.pydantic_ai import fallback_on
    >>> fallback_on(ConnectionRefusedError(111, "Connection refused")), fallback_on(ValueError("no"))
    (True, False)
"""

from failwell.decision.policy import falls_through
from failwell.report.describe import describe

__all__ = ["fallback_on"]


def fallback_on(error: Exception, *, idempotent: bool | None = None) -> bool:
    """Whether pydantic-ai should ask another provider, because it may succeed where this one failed.

    As in a `Chain`: a call that is itself at fault fails anywhere, and one whose outcome is unknown is
    not made twice unless it is declared `idempotent`.

    Args:
        error: What the model raised.
        idempotent: Whether a second call is harmless although the first may have been served; bind it
            with `partial`.
    """
    return falls_through(describe(error, origin="call", idempotent=idempotent), idempotent)
