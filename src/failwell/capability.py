"""For authors of capabilities: raise, classify and record a failure, and report on a call while it runs.

`progress`, `check_cancel` and the like speak to the worker that runs the call. Anywhere else, in a test for
example, they do nothing. A worker offers this module where failwell is not installed.

Example:
    >>> from failwell.capability import CapabilityInputError, classify_exception, progress
    >>> def resize(width: int) -> int:
    ...     if width <= 0:
    ...         raise CapabilityInputError("the width must be positive", fields_invalid=["width"])
    ...     progress(1.0, "done")
    ...     return width
    >>> resize(640)
    640
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    from failwell.adapters.job_errors import classify_exception as classify_exception
    from failwell.adapters.job_errors import (
        map_bare_exception_to_job_error as map_bare_exception_to_job_error,
    )
    from failwell.errors.axes import JobCategory as JobCategory
    from failwell.errors.facts import ResourceShortfall as ResourceShortfall
    from failwell.errors.faults import CapabilityCancelledError as CapabilityCancelledError
    from failwell.errors.faults import CapabilityConfigError as CapabilityConfigError
    from failwell.errors.faults import CapabilityDisabledError as CapabilityDisabledError
    from failwell.errors.faults import CapabilityError as CapabilityError
    from failwell.errors.faults import CapabilityFatalError as CapabilityFatalError
    from failwell.errors.faults import CapabilityInputError as CapabilityInputError
    from failwell.errors.faults import CapabilityNotLoadedError as CapabilityNotLoadedError
    from failwell.errors.faults import CapabilityResourceError as CapabilityResourceError
    from failwell.errors.faults import CapabilityTimeoutError as CapabilityTimeoutError
    from failwell.errors.faults import CapabilityTransientError as CapabilityTransientError
    from failwell.errors.faults import WorkerOOMError as WorkerOOMError
    from failwell.errors.report import TracebackPolicy as TracebackPolicy
    from failwell.errors.views import JobError as JobError
    from failwell.jobs.worker_process.author import Capability as Capability
    from failwell.jobs.worker_process.author import capability as capability
    from failwell.jobs.worker_process.author import check_cancel as check_cancel
    from failwell.jobs.worker_process.author import heartbeat as heartbeat
    from failwell.jobs.worker_process.author import is_cancelled as is_cancelled
    from failwell.jobs.worker_process.author import on_cancel as on_cancel
    from failwell.jobs.worker_process.author import progress as progress
    from failwell.jobs.worker_process.author import usage as usage
else:
    import sys

    from failwell._lazy import lazy_names

    # Inside a worker, the module that knows the calls in flight is the worker's own.
    _AUTHOR = (
        "_failwell_worker.author"
        if "_failwell_worker.author" in sys.modules
        else "failwell.jobs.worker_process.author"
    )
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "failwell.adapters.job_errors": "classify_exception map_bare_exception_to_job_error",
            "failwell.errors.axes": "JobCategory",
            "failwell.errors.facts": "ResourceShortfall",
            "failwell.errors.faults": (
                "CapabilityCancelledError CapabilityConfigError CapabilityDisabledError CapabilityError "
                "CapabilityFatalError CapabilityInputError CapabilityNotLoadedError CapabilityResourceError "
                "CapabilityTimeoutError CapabilityTransientError WorkerOOMError"
            ),
            "failwell.errors.report": "TracebackPolicy",
            "failwell.errors.views": "JobError",
            _AUTHOR: "Capability capability check_cancel heartbeat is_cancelled on_cancel progress usage",
        },
    )
