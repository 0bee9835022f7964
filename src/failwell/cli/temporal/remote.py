"""Runs on Temporal servers, for the commands that run, resume and read workflows.

The server of a run is noted in the run's folder, so these commands need no options to find it.
"""

from argparse import Namespace
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from failwell.cli.output import print_aside, print_stderr
from failwell.cli.temporal.connection import LOCAL, TEMPORAL, connection_of
from failwell.store.folder import ENGINE, run_folder

if TYPE_CHECKING:
    from types import ModuleType

    from failwell.store.run_store import Run
    from failwell.store.sqlite.run_store import SqliteStore
    from failwell.temporal.connection import ConnectionOptions
    from failwell.workflows.running.settings import DriverFactory, Settings

_T = TypeVar("_T")


def engine_of(args: Namespace) -> "DriverFactory | None":
    """The engine that `--engine` names; `None` for this machine."""
    return _engine(args, connection_of(args)) if args.engine == TEMPORAL else None


def is_remote(folder: Path, run: str) -> bool:
    """Whether a server has the run."""
    return (run_folder(folder, run) / ENGINE).exists()


async def resumed_settings(args: Namespace, settings: "Settings", run: str) -> "Settings":
    """The settings to resume a run with: on the engine that has it, or that `--engine` names.

    Raises:
        Usage: it is to be resumed on this machine, and its server still runs it.
    """
    from dataclasses import replace

    if not is_remote(settings.folder, run):
        return replace(settings, engine=engine_of(args))
    mirror = _run_mirror()
    from failwell.temporal.runs.run_mirror import forget_engine, read_engine

    store: Any = settings.store
    folder = run_folder(settings.folder, run)
    connection = connection_of(args) if args.engine == TEMPORAL else read_engine(folder)
    assert connection is not None
    if not store.run(run).events:
        # It was submitted, and this machine has seen nothing of it yet.
        await mirror.sync_run(store, run)
    if args.engine != LOCAL:
        return replace(settings, engine=_engine(args, connection))
    await mirror.sync_run(store, run)
    remote = await mirror.remote_run(store, run)
    if remote is not None and await remote.status() == "running":
        from failwell.cli.parser import usage_error

        raise usage_error(
            f"run `{run}` is running on {connection.address}; stop it there first",
            see=f"failwell stop {run}",
        )
    forget_engine(folder)
    return settings


def sync(store: "SqliteStore", run: "Run", args: Namespace) -> "Run":
    """The run as its server has it now. If the server cannot be reached, what is recorded here is shown."""
    return sync_all(store, [run], args)[0]


def sync_all(store: "SqliteStore", runs: "Sequence[Run]", args: Namespace) -> "list[Run]":
    """`sync` for several runs."""
    remote = [run.id for run in runs if run.ended is None and is_remote(store.folder, run.id)]
    if not remote:
        return list(runs)
    try:
        problems = _wait(_run_mirror().sync_runs(store, remote))
    except ImportError as error:
        problems = [error]
    for problem in problems:
        print_aside(args, f"warning: some of this may be out of date: {problem}")
    return [store.run(run.id) if run.id in remote else run for run in runs]


@contextmanager
def following(store: "SqliteStore", run: "Run", *, is_wanted: bool = True) -> "Generator[None]":
    """Copy the events of a run on a server while the block lasts, so that they can be followed here."""
    if not is_wanted or run.ended is not None or not is_remote(store.folder, run.id):
        yield
        return
    from threading import Event, Thread

    ready = Event()
    thread = Thread(target=_follow, args=(store.folder, run.id, ready.set), daemon=True)
    thread.start()
    ready.wait()
    yield


def _follow(folder: Path, run: str, ready: "Callable[[], None]") -> None:
    from failwell.errors.fault import Fault
    from failwell.store.sqlite.run_store import SqliteStore

    store = SqliteStore(folder)
    try:
        _wait(_run_mirror().follow_run(store, run, ready))
    except (Fault, ImportError) as error:
        print_stderr(f"warning: the run cannot be followed: {error}")
    finally:
        ready()
        store.close()


def import_runs(args: Namespace, store: "SqliteStore") -> None:
    """Copy the newest runs of the server that the options name."""
    for run in _wait(_run_mirror().import_runs(store, connection_of(args), limit=args.limit or 50)):
        print_aside(args, f"warning: run {run} was left out: no worker answers for it")


def answer(
    store: "SqliteStore", run: str, gate: str, value: str, *, by: str, comment: str = "", payload: Any = None
) -> bool:
    """Answer a gate of a run on its server. It takes effect at once, so `True` is returned.

    Raises:
        GateRefused: the gate is not pending, or the value does not fit.
    """
    from failwell.workflows.gates import GateRefused

    reply = {"gate": gate, "decision": value, "by": by, "comment": comment, "payload": payload}
    problem = _wait(_run_mirror().answer_run(store, run, reply))
    if problem is not None:
        raise GateRefused(run=run, gate=gate, reason=problem)
    return True


def cancel(store: "SqliteStore", run: str, *, by: str, reason: str, patience: float) -> str:
    """Cancel a run on its server and return its final status."""
    return _wait(_run_mirror().cancel_run(store, run, by=by, reason=reason, patience=patience))


def _engine(args: Namespace, connection: "ConnectionOptions") -> "DriverFactory":
    from failwell.errors.missing_extra import need

    need("temporalio", "temporal")
    from failwell.temporal.runs.remote_driver import TemporalEngine

    return TemporalEngine(connection=connection, model=args.model)


def _run_mirror() -> "ModuleType":
    """The module for copies of remote runs.

    Raises:
        MissingExtra: temporalio is not installed.
    """
    from failwell.errors.missing_extra import need

    need("temporalio", "temporal")
    from failwell.temporal.runs import run_mirror

    return run_mirror


def _wait(work: "Coroutine[Any, Any, _T]") -> _T:
    import asyncio

    return asyncio.run(work)
