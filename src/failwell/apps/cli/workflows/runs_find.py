"""Opening the journal that a command asks for, and finding the run that it names."""

from argparse import ArgumentParser, Namespace
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from failwell.apps.cli.parser import wrong

if TYPE_CHECKING:
    from failwell.journal.faults import UnknownRun
    from failwell.journal.sqlite.runs import SqliteStore
    from failwell.journal.store import Run, Store

LAST = "last"
_NEAR = 200
"""How many of the latest ids are searched for one that was meant."""


def add_store(parser: ArgumentParser) -> None:
    """Declare `--store`."""
    parser.add_argument(
        "--store",
        metavar="DIR",
        help="the state folder (default: FAILWELL_STORE, else the user's own state folder)",
    )


@contextmanager
def journal(args: Namespace) -> "Generator[SqliteStore | None]":
    """The journal, for a command that only looks: `None` if there is none, and none is made."""
    from failwell.journal.folder import JOURNAL, state_folder

    folder = state_folder(args.store)
    if not (folder / JOURNAL).exists():
        yield None
        return
    from failwell.journal.sqlite.runs import SqliteStore

    store = SqliteStore(folder)
    try:
        yield store
    finally:
        store.close()


def find_run(store: "Store | None", name: str) -> "Run":
    """The run that `name` means: its id, the only id that begins so, or `last`.

    Raises:
        UnknownRun: there is none; the fault names ids that are near.
        Usage: several begin so.
    """
    if store is None:
        raise _unknown(name, [])
    if name == LAST and not any(run.id == LAST for run in store.runs(prefix=LAST)):
        latest = store.runs(limit=1)
        if not latest:
            raise _unknown(name, [])
        return latest[0]
    begin_so = store.runs(prefix=name) if name else []
    exact = [run for run in begin_so if run.id == name]
    if exact or len(begin_so) == 1:
        return (exact or begin_so)[0]
    if begin_so:
        ids = [run.id for run in begin_so[:5]]
        raise wrong(f"`{name}` could be any of {len(begin_so)} runs", valid=ids, see="failwell runs list")
    raise _unknown(name, [run.id for run in store.runs(limit=_NEAR)])


def _unknown(name: str, known: list[str]) -> "UnknownRun":
    from difflib import get_close_matches

    from failwell.fault.axes import ActionKind
    from failwell.fault.facts import UserAction
    from failwell.journal.faults import UnknownRun

    near = get_close_matches(name, known, n=3, cutoff=0.5)
    offered = f"write {' or '.join(f'`{one}`' for one in near)}, or " if near else ""
    action = UserAction(ActionKind.CHANGE_INPUT, f"{offered}list them with `failwell runs list`")
    if name == LAST:
        return UnknownRun(run=name, message="no run is recorded here yet", user_action=action)
    return UnknownRun(run=name, near=near or None, user_action=action)
