"""The exception to raise for the stored error of a job."""

import builtins
from collections.abc import Iterator

from failwell.adapters.revival import Recalled, revive
from failwell.errors.fault import Fault
from failwell.errors.faults import (
    CapabilityError,
    CapabilityFatalError,
    CapabilityInputError,
    CapabilityResourceError,
    CapabilityTransientError,
)
from failwell.errors.report import ErrorReport

_CLASSES: dict[str, type[CapabilityError]] = {
    "user_input": CapabilityInputError,
    "transient": CapabilityTransientError,
    "resource": CapabilityResourceError,
    "fatal": CapabilityFatalError,
}


def job_error(report: ErrorReport) -> Fault:
    """The exception for the error of a job. `describe` returns the stored report again.

    It has the class that was raised if that is a fault and this process has imported it. For any other exception it
    has the class of its category: `CapabilityInputError`, `CapabilityTransientError`, `CapabilityResourceError` or
    `CapabilityFatalError`.
    """
    return revive(report, _raised_class(report) or _CLASSES[report.category.job])


def _raised_class(report: ErrorReport) -> type[Fault] | None:
    """The fault class with the name in the report. Reports have no module, so a name that two classes have is not used."""
    if hasattr(builtins, report.error_type):
        return None
    classes = [cls for cls in set(_subclasses(Fault)) if cls.__name__ == report.error_type]
    if len(classes) != 1:
        return None
    (cls,) = classes
    if issubclass(cls, CapabilityError):
        return cls if cls.category == report.category.job else None
    # A foreign exception may have the name of a class of ours.
    return cls if cls.declared_kind in (None, report.kind) else None


def _subclasses(cls: type[Fault]) -> Iterator[type[Fault]]:
    for subclass in cls.__subclasses__():
        if not issubclass(subclass, Recalled):
            yield subclass
            yield from _subclasses(subclass)
