"""Opening the jobs of a store, and finding the one that is meant."""

from argparse import Namespace
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from failwell.apps.cli.parser import wrong
from failwell.apps.cli.workflows.runs_find import LAST

if TYPE_CHECKING:
    from pathlib import Path

    from failwell.jobs.client import Desk
    from failwell.jobs.faults import UnknownJob
    from failwell.jobs.job import Job

_NEAR = 200
"""How many of the latest ids are searched for one that was meant."""


def folder_of(args: Namespace) -> "Path":
    """The state folder that was asked for; it need not be there.

    Raises:
        Usage: there is something else in its place.
    """
    from failwell.journal.folder import state_folder

    folder = state_folder(args.store)
    if folder.exists() and not folder.is_dir():
        raise wrong(
            f"the state folder `{folder}` is a file; give a folder with `--store DIR` or `FAILWELL_STORE`",
            see=f"failwell {args.command} --help",
        )
    return folder


@contextmanager
def jobs_of(args: Namespace, *, make: bool = False) -> "Generator[Desk | None]":
    """The jobs of the store that was asked for; `None` where there is none and none is to be made."""
    from failwell.journal.folder import JOURNAL

    folder = folder_of(args)
    if not make and not (folder / JOURNAL).exists():
        yield None
        return
    from failwell.jobs.client import Desk
    from failwell.jobs.registry import Shelf
    from failwell.jobs.store.sqlite import SqliteJobs

    store = SqliteJobs(folder)
    try:
        yield Desk(store, Shelf(folder))
    finally:
        store.close()


def find_job(desk: "Desk | None", name: str) -> "Job":
    """The job that `name` means: its id, the only id that begins so, or `last`.

    Raises:
        UnknownJob: there is none.
        Usage: several begin so.
    """
    if desk is None:
        raise _unknown(name, [])
    exact = desk.store.find(name)
    if exact is not None:
        return exact
    if name == LAST:
        latest = desk.store.jobs(limit=1)
        if latest:
            return latest[0]
        raise _unknown(name, [])
    begin_so = desk.store.jobs(prefix=name, limit=6, results=False) if name else []
    if len(begin_so) == 1:
        return desk.find(begin_so[0].id)
    if begin_so:
        raise wrong(
            f"`{name}` could be several jobs", valid=[job.id for job in begin_so[:5]], see="failwell job list"
        )
    raise _unknown(name, [job.id for job in desk.store.jobs(limit=_NEAR, results=False)])


def _unknown(name: str, known: list[str]) -> "UnknownJob":
    from difflib import get_close_matches

    from failwell.fault.axes import ActionKind
    from failwell.fault.facts import UserAction
    from failwell.jobs.faults import UnknownJob

    near = get_close_matches(name, known, n=3, cutoff=0.5)
    offered = f"write {' or '.join(f'`{one}`' for one in near)}, or " if near else ""
    action = UserAction(ActionKind.CHANGE_INPUT, f"{offered}list them with `failwell job list`")
    if name == LAST:
        return UnknownJob(job=name, message="no job is recorded here yet", user_action=action)
    return UnknownJob(job=name, user_action=action)
