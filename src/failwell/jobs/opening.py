"""What a runtime stands on unless it is told otherwise: the store, the folder beside it, the probe."""

import os
from pathlib import Path
from time import time

from failwell.jobs.resources import Probe
from failwell.jobs.resources_system import SystemProbe
from failwell.jobs.sqlite_store import open_jobs
from failwell.jobs.store import JobStore
from failwell.journal.folder import state_folder

Given = JobStore | str | os.PathLike[str] | None
"""A store, the state folder of one, or nothing: the user's own."""


def new_job_id() -> str:
    """An id for a job: sorted by time, never given twice."""
    return f"{int(time() * 1000):011x}{os.urandom(5).hex()}"


def folder_beside(store: Given) -> Path:
    """The state folder that a store lies in."""
    if store is not None and not isinstance(store, str | os.PathLike):
        return store.folder.parent
    return state_folder(None if store is None else os.fspath(store))


def open_store(given: Given) -> JobStore:
    """The store that was given, or the one of that folder."""
    if given is not None and not isinstance(given, str | os.PathLike):
        return given
    return open_jobs(given)


def system_probe(folder: Path) -> Probe:
    """The real one."""
    return SystemProbe(folder)
