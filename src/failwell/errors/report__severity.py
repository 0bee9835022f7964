"""Which failures deserve a person: the severity of a report, from values alone.

A failure that was handled or is retried deserves nobody. One that a person has to end does:
attempts that are exhausted, a wrong key, an empty account, an unknown outcome, a bug.
"""

from enum import StrEnum

from failwell.errors.axes import Category, Domain


class Severity(StrEnum):
    """How much attention a failure deserves."""

    INFO = "info"
    """It was handled, or stopped on purpose."""
    WARNING = "warning"
    """Its caller can correct it."""
    ERROR = "error"
    """The work failed, and nobody has to act now."""
    CRITICAL = "critical"
    """A person has to act."""


_FOR_A_PERSON = frozenset(
    {Category.AMBIGUOUS, Category.CAPACITY, Category.CONFIGURATION, Category.FATAL, Category.UNKNOWN}
)
_EXHAUSTED = frozenset({"provider.exhausted", "retry.exhausted"})


def severity_of(kind: str, category: Category, *, handled: bool = False, exhausted: bool = False) -> Severity:
    """The severity of a failure.

    Args:
        kind: Its kind.
        category: Its category.
        handled: Whether it is retried, was ignored on purpose, or something else goes on in its place.
        exhausted: Whether everything that a loop may do about it has been done.
    """
    if handled or category is Category.CANCELLED:
        return Severity.INFO
    if category.domain is Domain.INPUT:
        return Severity.WARNING
    if exhausted or category in _FOR_A_PERSON or kind in _EXHAUSTED:
        return Severity.CRITICAL
    return Severity.ERROR
