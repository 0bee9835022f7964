"""A job queue that runs each capability in its own worker process and admits jobs by measured memory.

The worker's side uses the standard library only, so that it runs in any interpreter. This room imports
`failwell.store` and below, and not `failwell.workflows`.

Example:
    >>> from failwell.jobs import Manifest
    >>> manifest = Manifest(name="resize", object="images:resize")
    >>> manifest.name
    'resize'
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    from failwell.jobs.client.async_client import AsyncClient as AsyncClient
    from failwell.jobs.client.async_client import AsyncJobHandle as AsyncJobHandle
    from failwell.jobs.client.client import Client as Client
    from failwell.jobs.client.client import JobHandle as JobHandle
    from failwell.jobs.job import Job as Job
    from failwell.jobs.job import JobRequest as JobRequest
    from failwell.jobs.job import JobState as JobState
    from failwell.jobs.manifest import Manifest as Manifest
    from failwell.jobs.manifest_file import read_manifest as read_manifest
    from failwell.jobs.memory.machine import Limits as Limits
    from failwell.jobs.platform import Resources as Resources
    from failwell.jobs.runtime import Runtime as Runtime
    from failwell.jobs.schedule_spec import JobSchedule as JobSchedule
    from failwell.jobs.schedule_spec import ScheduleSpec as ScheduleSpec
    from failwell.jobs.settings_schema import UnknownConfigWarning as UnknownConfigWarning
    from failwell.jobs.store.groups import JobGroup as JobGroup
    from failwell.jobs.workers.supervisor import SupervisedWorker as SupervisedWorker
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "failwell.jobs.client.async_client": "AsyncClient AsyncJobHandle",
            "failwell.jobs.client.client": "Client JobHandle",
            "failwell.jobs.job": "Job JobRequest JobState",
            "failwell.jobs.manifest": "Manifest",
            "failwell.jobs.manifest_file": "read_manifest",
            "failwell.jobs.memory.machine": "Limits",
            "failwell.jobs.platform": "Resources",
            "failwell.jobs.runtime": "Runtime",
            "failwell.jobs.schedule_spec": "JobSchedule ScheduleSpec",
            "failwell.jobs.settings_schema": "UnknownConfigWarning",
            "failwell.jobs.store.groups": "JobGroup",
            "failwell.jobs.workers.supervisor": "SupervisedWorker",
        },
    )
