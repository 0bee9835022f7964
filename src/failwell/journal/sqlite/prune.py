"""Deleting old runs: their events, their sources if nobody else has them, and their folders.

A run's lock is held while it is deleted, so nobody can begin to write to it meanwhile, and a run that
somebody writes to is left alone.
"""

from collections.abc import Sequence
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

from failwell.fault.base import Fault
from failwell.journal.faults import Locked, UnknownRun
from failwell.journal.folder import run_folder
from failwell.journal.status import ENDED
from failwell.journal.store import Pruned
from failwell.runtime.suppress import suppress

if TYPE_CHECKING:
    from failwell.journal.sqlite.store import SqliteStore


def prune(
    store: "SqliteStore", *, before: float | None, keep: int, statuses: Sequence[str], dry_run: bool
) -> Pruned:
    """See `failwell.journal.store.Store.prune`."""
    gone: list[str] = []
    live: list[str] = []
    events = 0
    for run in store.runs(statuses=statuses or tuple(ENDED))[keep:]:
        if before is not None and run.updated >= before:
            continue
        if dry_run:
            (live if store.is_locked(run.id) else gone).append(run.id)
            events += 0 if run.id in live else run.events
            continue
        folder = run_folder(store.folder, run.id)
        try:
            with store.lock(run.id):
                events += store.forget(run.id)
                _remove(folder)
            gone.append(run.id)
        except Locked:
            live.append(run.id)
        except UnknownRun:
            # Somebody else pruned it this moment; taking its lock made the folder again.
            _remove(folder)
    if gone and not dry_run:
        with suppress(Fault, reason="the runs are gone; the space they took is used again later"):
            store.compact()
    return Pruned(runs=tuple(gone), events=events, kept_live=tuple(live))


def _remove(folder: Path) -> None:
    rmtree(folder, ignore_errors=True)
