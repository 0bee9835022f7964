"""Everything the author of a capability needs to raise, classify and record a failure."""

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
    "classify_exception",
    "map_bare_exception_to_job_error",
]
