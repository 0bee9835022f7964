"""Everything the author of a capability needs to raise, classify and record a failure.

What an author says during a call (`progress`, `check_cancel`, …) goes to the worker that runs it; anywhere
else, in a test for example, it does nothing. A worker offers this module, without the classifying part,
where failwell is not installed.
"""

from typing import TYPE_CHECKING, Any

from failwell.fault.axes import JobCategory
from failwell.fault.capability import (
    CapabilityCancelledError,
    CapabilityConfigError,
    CapabilityDisabledError,
    CapabilityError,
    CapabilityFatalError,
    CapabilityInputError,
    CapabilityNotLoadedError,
    CapabilityResourceError,
    CapabilityTimeoutError,
    CapabilityTransientError,
    WorkerOOMError,
)
from failwell.fault.facts import ResourceShortfall
from failwell.report.job_error import JobError, classify_exception, map_bare_exception_to_job_error
from failwell.report.policy import TracebackPolicy

if TYPE_CHECKING:
    from failwell.jobs.child.author import (
        capability,
        check_cancel,
        heartbeat,
        is_cancelled,
        on_cancel,
        progress,
        usage,
    )

__all__ = [
    "CapabilityCancelledError",
    "CapabilityConfigError",
    "CapabilityDisabledError",
    "CapabilityError",
    "CapabilityFatalError",
    "CapabilityInputError",
    "CapabilityNotLoadedError",
    "CapabilityResourceError",
    "CapabilityTimeoutError",
    "CapabilityTransientError",
    "JobCategory",
    "JobError",
    "ResourceShortfall",
    "TracebackPolicy",
    "WorkerOOMError",
    "capability",
    "check_cancel",
    "classify_exception",
    "heartbeat",
    "is_cancelled",
    "map_bare_exception_to_job_error",
    "on_cancel",
    "progress",
    "usage",
]

_DURING_A_CALL = frozenset(
    {"capability", "check_cancel", "heartbeat", "is_cancelled", "on_cancel", "progress", "usage"}
)


def __getattr__(name: str) -> Any:
    if name not in _DURING_A_CALL:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import sys
    from importlib import import_module

    # Inside a worker, the module that knows the calls in flight is the worker's own.
    spoken = sys.modules.get("_failwell_worker.author") or import_module("failwell.jobs.child.author")
    return getattr(spoken, name)
