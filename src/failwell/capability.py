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
    from failwell.fault.axes import JobCategory as JobCategory
    from failwell.fault.capability import CapabilityCancelledError as CapabilityCancelledError
    from failwell.fault.capability import CapabilityConfigError as CapabilityConfigError
    from failwell.fault.capability import CapabilityDisabledError as CapabilityDisabledError
    from failwell.fault.capability import CapabilityError as CapabilityError
    from failwell.fault.capability import CapabilityFatalError as CapabilityFatalError
    from failwell.fault.capability import CapabilityInputError as CapabilityInputError
    from failwell.fault.capability import CapabilityNotLoadedError as CapabilityNotLoadedError
    from failwell.fault.capability import CapabilityResourceError as CapabilityResourceError
    from failwell.fault.capability import CapabilityTimeoutError as CapabilityTimeoutError
    from failwell.fault.capability import CapabilityTransientError as CapabilityTransientError
    from failwell.fault.capability import WorkerOOMError as WorkerOOMError
    from failwell.fault.facts import ResourceShortfall as ResourceShortfall
    from failwell.jobs.child.author import Capability as Capability
    from failwell.jobs.child.author import capability as capability
    from failwell.jobs.child.author import check_cancel as check_cancel
    from failwell.jobs.child.author import heartbeat as heartbeat
    from failwell.jobs.child.author import is_cancelled as is_cancelled
    from failwell.jobs.child.author import on_cancel as on_cancel
    from failwell.jobs.child.author import progress as progress
    from failwell.jobs.child.author import usage as usage
    from failwell.report.record import TracebackPolicy as TracebackPolicy
    from failwell.report.views import JobError as JobError
    from failwell.report.views import classify_exception as classify_exception
    from failwell.report.views import map_bare_exception_to_job_error as map_bare_exception_to_job_error
else:
    import sys

    from failwell._lazy import lazy_names

    # Inside a worker, the module that knows the calls in flight is the worker's own.
    _AUTHOR = (
        "_failwell_worker.author"
        if "_failwell_worker.author" in sys.modules
        else "failwell.jobs.child.author"
    )
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "Capability": _AUTHOR,
            "CapabilityCancelledError": "failwell.fault.capability",
            "CapabilityConfigError": "failwell.fault.capability",
            "CapabilityDisabledError": "failwell.fault.capability",
            "CapabilityError": "failwell.fault.capability",
            "CapabilityFatalError": "failwell.fault.capability",
            "CapabilityInputError": "failwell.fault.capability",
            "CapabilityNotLoadedError": "failwell.fault.capability",
            "CapabilityResourceError": "failwell.fault.capability",
            "CapabilityTimeoutError": "failwell.fault.capability",
            "CapabilityTransientError": "failwell.fault.capability",
            "JobCategory": "failwell.fault.axes",
            "JobError": "failwell.report.views",
            "ResourceShortfall": "failwell.fault.facts",
            "TracebackPolicy": "failwell.report.record",
            "WorkerOOMError": "failwell.fault.capability",
            "capability": _AUTHOR,
            "check_cancel": _AUTHOR,
            "classify_exception": "failwell.report.views",
            "heartbeat": _AUTHOR,
            "is_cancelled": _AUTHOR,
            "map_bare_exception_to_job_error": "failwell.report.views",
            "on_cancel": _AUTHOR,
            "progress": _AUTHOR,
            "usage": _AUTHOR,
        },
    )
