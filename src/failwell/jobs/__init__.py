"""Queued work in processes of its own: leases, workers, and the memory they hold.

The worker side is standard library alone, so that it can run in any interpreter. Imports
`failwell.journal` and below, and neither `failwell.workflow` nor `failwell.agents`.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from failwell.jobs.job import Job as Job
    from failwell.jobs.job import JobRequest as JobRequest
    from failwell.jobs.job import JobState as JobState
    from failwell.jobs.manifest import Manifest as Manifest
    from failwell.jobs.memory.machine import Limits as Limits
    from failwell.jobs.runtime import Runtime as Runtime
    from failwell.jobs.schema_language import UnknownConfigWarning as UnknownConfigWarning

_HOMES = {
    "Job": "failwell.jobs.job",
    "JobRequest": "failwell.jobs.job",
    "JobState": "failwell.jobs.job",
    "Limits": "failwell.jobs.memory.machine",
    "Manifest": "failwell.jobs.manifest",
    "Runtime": "failwell.jobs.runtime",
    "UnknownConfigWarning": "failwell.jobs.schema_language",
}

__all__ = ["Job", "JobRequest", "JobState", "Limits", "Manifest", "Runtime", "UnknownConfigWarning"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
