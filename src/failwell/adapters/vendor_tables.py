"""Rows of an adapter's table: classes that name a kind by themselves, and classes that carry another exception.

Exceptions that carry others: the inner exception, read safely, and what it means for a model's answer.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from failwell.adapters.classification import Classification
from failwell.adapters.registry import Entry, Table, read
from failwell.errors.causes import below
from failwell.errors.foreign_objects import safe_call, safe_getattr


def cause_of(error: BaseException) -> BaseException | None:
    """The exception right below `error`, if any."""
    under = below(error)
    return None if under is None else under[0]


def last_attempt(error: object) -> BaseException | None:
    """The exception of the last attempt that a `RetryError` keeps; it is never waited for."""
    attempt: Any = safe_getattr(error, "last_attempt")
    # A foreign future may raise anything, a cancellation too.
    inner = safe_call(lambda: attempt.exception() if attempt.done() else None, None)
    return inner if isinstance(inner, BaseException) else None


def carries(
    inner: BaseException | None, rule: str, *, otherwise: str = "internal.unknown", **facts: Any
) -> Classification:
    """The reading of an envelope: the inner exception decides, or `otherwise` if its kind is unknown."""
    return Classification.from_rule(kind=otherwise, rule=rule, inner=inner, **facts)


def bad_answer(error: BaseException, rule: str, **facts: Any) -> Classification:
    """A model's answer that did not pass a check: which fields and rules, nothing of the answer."""
    known = read(error)
    reading = Classification.from_rule(
        kind="provider.output_invalid", rule=rule, saw=type(error).__name__, **facts
    )
    if known is None or known.fields_invalid is None:
        return reading
    fields = tuple(known.fields_invalid)
    names = ", ".join(f"`{name}`" for name in fields[:5])
    return replace(
        reading, fields_invalid=fields, message=f"The model's answer does not fit its schema: {names}."
    )


_HOLDERS = ("cause", "inner_exception", "original_error")
"""Attributes in which frameworks keep the exception that they wrap, where it is not the cause."""


def rows(library: str, names: Mapping[str, str], **facts: Any) -> Table:
    """Rows for classes that name a kind: kind → class names, separated by spaces."""
    return {
        name: Classification.from_rule(kind=kind, rule=f"{library}.{name}", saw=name, **facts)
        for kind, classes in names.items()
        for name in classes.split()
    }


def envelopes(library: str, names: Mapping[str, str]) -> Table:
    """Rows for classes that carry another exception, which decides. The kind counts where it is unknown or missing."""
    return {
        name: _envelope(library, name, kind) for kind, classes in names.items() for name in classes.split()
    }


def _envelope(library: str, name: str, kind: str) -> Entry:
    def read_inner(error: BaseException) -> Classification:
        return carries(inner_of(error), f"{library}.{name}", otherwise=kind, saw=type(error).__name__)

    return read_inner


def inner_of(error: BaseException) -> BaseException | None:
    """The exception that `error` wraps: its cause, or the one in the attribute where frameworks keep it."""
    cause = cause_of(error)
    if cause is not None:
        return cause
    held = (safe_getattr(error, name) for name in _HOLDERS)
    return next((inner for inner in held if isinstance(inner, BaseException)), None)
