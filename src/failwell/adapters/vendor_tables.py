"""Rows of an adapter's table: classes that name a kind by themselves, and classes that carry another exception."""

from collections.abc import Mapping
from typing import Any

from failwell.adapters.classification import Reading
from failwell.adapters.registry import Entry, Table
from failwell.adapters.vendor_tables__wrapper import carries, cause_of
from failwell.errors.foreign_objects import safe_getattr

_HOLDERS = ("cause", "inner_exception", "original_error")
"""Attributes in which frameworks keep the exception that they wrap, where it is not the cause."""


def rows(library: str, names: Mapping[str, str], **facts: Any) -> Table:
    """Rows for classes that name a kind: kind → class names, separated by spaces."""
    return {
        name: Reading.from_rule(kind=kind, rule=f"{library}.{name}", saw=name, **facts)
        for kind, classes in names.items()
        for name in classes.split()
    }


def envelopes(library: str, names: Mapping[str, str]) -> Table:
    """Rows for classes that carry another exception, which decides. The kind counts where it is unknown or missing."""
    return {
        name: _envelope(library, name, kind) for kind, classes in names.items() for name in classes.split()
    }


def _envelope(library: str, name: str, kind: str) -> Entry:
    def read_inner(error: BaseException) -> Reading:
        return carries(inner_of(error), f"{library}.{name}", otherwise=kind, saw=type(error).__name__)

    return read_inner


def inner_of(error: BaseException) -> BaseException | None:
    """The exception that `error` wraps: its cause, or the one in the attribute where frameworks keep it."""
    cause = cause_of(error)
    if cause is not None:
        return cause
    held = (safe_getattr(error, name) for name in _HOLDERS)
    return next((inner for inner in held if isinstance(inner, BaseException)), None)
