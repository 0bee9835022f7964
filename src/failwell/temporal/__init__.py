"""Temporal as the engine: workflow runs and jobs that several machines share.

A Temporal server keeps the state, and `failwell temporal worker` does the work. This room imports
`failwell.workflows`, `failwell.jobs` and below. `temporalio` is loaded when a connection is opened.

Example:
    >>> from failwell.temporal import ConnectionOptions
    >>> ConnectionOptions(address="temporal.example.com:7233").namespace
    'default'
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    from failwell.temporal.connection import ConnectionOptions as ConnectionOptions
    from failwell.temporal.dev_server import DevServer as DevServer
    from failwell.temporal.jobs.job_client import AsyncClient as AsyncClient
    from failwell.temporal.jobs.job_client import AsyncJobHandle as AsyncJobHandle
    from failwell.temporal.jobs.job_client import Client as Client
    from failwell.temporal.jobs.job_client import JobHandle as JobHandle
    from failwell.temporal.runs.remote_driver import TemporalEngine as TemporalEngine
    from failwell.temporal.worker import TemporalWorker as TemporalWorker
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "failwell.temporal.connection": "ConnectionOptions",
            "failwell.temporal.dev_server": "DevServer",
            "failwell.temporal.jobs.job_client": "AsyncClient AsyncJobHandle Client JobHandle",
            "failwell.temporal.runs.remote_driver": "TemporalEngine",
            "failwell.temporal.worker": "TemporalWorker",
        },
    )
