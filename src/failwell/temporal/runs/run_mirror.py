"""The local copies of runs on Temporal servers: brought up to date, answered, cancelled.

A copy is the events of the run in the local journal. With it every command that reads a recorded run works as for a run
of this machine. A file in the run's folder says which server has it.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from temporalio.service import RPCError

from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.errors.fault import Fault
from failwell.store.event import Event, Fact
from failwell.store.faults import Locked, UnknownRun
from failwell.store.folder import ENGINE, make_private, run_folder
from failwell.store.output_log import OutputLog, recorded_output
from failwell.store.private_files import replace_private
from failwell.store.run_store import Store, append_with_retry
from failwell.temporal.connection import ConnectionOptions, connection_options
from failwell.temporal.runs.plan_json import unpack
from failwell.temporal.runs.remote_run import NoWorker, RemoteRun, follow, no_worker, server_fault
from failwell.temporal.runs.run_workflow import NAME
from failwell.workflows.running.files import WRITTEN, write_event

_ENDS = ("node:completed", "node:failed")


class CopiedEvents:
    """The local copy of one run. The caller holds the run's lock."""

    def __init__(
        self, store: Store, run: str, workflow: str, folder: Path, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._store, self._run, self._workflow = store, run, workflow
        self._folder, self._clock = folder, clock
        self._output = OutputLog(folder)
        self._started: dict[str, Event] | None = None
        """Step that runs → its start, which says whose output it is."""

    async def add(self, facts: Sequence[Fact], lines: Sequence[Mapping[str, Any]] = ()) -> list[Event]:
        """Record facts, log `lines` and what scripts printed, write what other programs read, and return the events.

        Raises:
            Fault: the store refuses them.
        """
        started = self._running_steps()
        for line in lines:
            self._output.add(line)
        drafts = (Event(-1, kind, at, data) for kind, at, data in facts)
        for entry in recorded_output(chain(started.values(), drafts)):
            self._output.add(entry.to_dict())
        # What was printed is in the log before its step ends: a follower stops at the end of the run.
        self._output.flush()
        events = await append_with_retry(self._store, self._run, facts, clock=self._clock)
        for event in events:
            self._note_step(started, event)
            if event.type in WRITTEN:
                write_event(self._folder, self._run, self._workflow, event)
        return events

    def close(self) -> None:
        """Close the files."""
        self._output.close()

    def _running_steps(self) -> dict[str, Event]:
        if self._started is None:
            self._started = {}
            for event in self._store.read(self._run):
                self._note_step(self._started, event)
        return self._started

    def _note_step(self, started: dict[str, Event], event: Event) -> None:
        path = str(event.data.get("path", ""))
        if event.type == "node:started":
            started[path] = event
        elif event.type in _ENDS:
            started.pop(path, None)


_UNSTORED = ("api_key", "rpc_metadata")
"""Secrets. They come from the environment, as certificates that are no files do."""


def write_engine(folder: Path, connection: ConnectionOptions) -> None:
    """Note in the folder of a run that this server has it."""
    values = {
        name: value
        for name, value in asdict(connection).items()
        if name not in _UNSTORED and isinstance(value, str | bool)
    }
    replace_private(folder / ENGINE, json.dumps({"engine": "temporal", **values}))


def read_engine(folder: Path) -> ConnectionOptions | None:
    """The server that has the run of this folder; `None` for a run of this machine.

    Raises:
        MissingExtra: temporalio is not installed.
    """
    try:
        content: object = json.loads((folder / ENGINE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    values = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
    return connection_options(**{name: value for name, value in values.items() if name != "engine"})


def forget_engine(folder: Path) -> None:
    """The run is driven on this machine from now on."""
    (folder / ENGINE).unlink(missing_ok=True)


if TYPE_CHECKING:
    from temporalio.client import Client

    from failwell.store.sqlite.run_store import SqliteStore
    from failwell.temporal.connection import ConnectionOptions

_LOG = logging.getLogger("failwell.temporal")
_POLL = 0.2
_LAST_EVENTS = 10.0
"""Seconds that the process which follows a run has to copy its end."""


async def remote_run(store: "SqliteStore", run: str, client: "Client | None" = None) -> RemoteRun | None:
    """The run on its server; `None` for a run of this machine."""
    connection = read_engine(run_folder(store.folder, run))
    if connection is None:
        return None
    return RemoteRun(client or await connection.connect(), run, connection.task_queue)


async def sync_run(store: "SqliteStore", run: str) -> None:
    """Copy the events that the server has and the journal does not. A run of this machine is left alone.

    Raises:
        ServerUnreachable: the server does not answer.
        NoWorker: no worker answers for the run.
    """
    if store.run(run).ended is not None:
        return
    remote = await remote_run(store, run)
    if remote is not None and await remote.status() is not None:
        await _copy(store, remote)


async def sync_runs(store: "SqliteStore", runs: Sequence[str]) -> list[Fault]:
    """`sync_run` for several runs. A server or a queue that does not answer is tried once. Returns why some were left out."""
    clients: dict[tuple[str, str], Client] = {}
    silent: set[tuple[str, str]] = set()
    faults: list[Fault] = []
    for run in runs:
        connection = read_engine(run_folder(store.folder, run))
        if connection is None:
            continue
        server, queue = (
            (connection.address, connection.namespace),
            (connection.address, connection.task_queue),
        )
        if server in silent or queue in silent:
            continue
        try:
            if server not in clients:
                clients[server] = await connection.connect()
            remote = RemoteRun(clients[server], run, connection.task_queue)
            if await remote.status() is not None:
                await _copy(store, remote)
        except NoWorker as fault:
            silent.add(queue)
            faults.append(fault)
        except RPCError as error:
            silent.add(server)
            faults.append(server_fault(error, connection.namespace))
        except Fault as fault:
            silent.add(server)
            faults.append(fault)
    return faults


async def _copy(store: "SqliteStore", remote: RemoteRun) -> None:
    try:
        with _copy_of(store, remote) as copy:
            await _copy_new(store, remote, copy)
    except Locked:
        # The process that has the lock follows the run.
        return


@contextmanager
def _copy_of(store: "SqliteStore", remote: RemoteRun) -> Generator[CopiedEvents]:
    """The right to write to the local copy of a run."""
    with store.lock(remote.run):
        workflow = store.run(remote.run).workflow
        copy = CopiedEvents(store, remote.run, workflow, run_folder(store.folder, remote.run))
        try:
            yield copy
        finally:
            copy.close()


async def _copy_new(store: "SqliteStore", remote: RemoteRun, copy: CopiedEvents) -> None:
    after = store.run(remote.run).events - 1
    while True:
        facts, lines = await remote.facts(after)
        if not facts:
            return
        after += len(await copy.add(facts, lines))


async def follow_run(store: "SqliteStore", run: str, ready: Callable[[], None]) -> None:
    """Copy the events of a run as they happen, until it has ended. If another process does that, nothing is done."""
    remote = await remote_run(store, run)
    assert remote is not None
    wake = asyncio.Event()
    try:
        with _copy_of(store, remote) as copy:
            ready()
            following = asyncio.create_task(follow(remote, wake))
            try:
                while store.run(run).ended is None:
                    is_over = following.done()
                    await _copy_new(store, remote, copy)
                    if is_over:
                        return
                    waking = asyncio.create_task(wake.wait())
                    await asyncio.wait((waking, following), return_when=asyncio.FIRST_COMPLETED)
                    waking.cancel()
                    wake.clear()
            finally:
                following.cancel()
    except Locked:
        ready()


async def import_runs(store: "SqliteStore", connection: "ConnectionOptions", *, limit: int) -> list[str]:
    """Copy the newest runs of a task queue into the journal, also those that other machines submitted.

    Returns the runs that could not be copied.

    Raises:
        ServerUnreachable: the server does not answer.
        NoWorker: no worker takes tasks of the queue.
    """
    client = await connection.connect()
    queue = connection.task_queue
    if not await RemoteRun(client, "", queue).has_worker():
        raise no_worker(queue)
    missed: list[str] = []
    name = queue.replace("'", "")
    query = f"WorkflowType = '{NAME}' AND TaskQueue = '{name}'"
    async for execution in client.list_workflows(query, limit=limit):
        remote = RemoteRun(client, execution.id, queue)
        try:
            await _import(store, connection, remote)
        except (NoWorker, RPCError):
            missed.append(execution.id)
    return missed


async def _import(store: "SqliteStore", connection: "ConnectionOptions", remote: RemoteRun) -> None:
    try:
        recorded = store.run(remote.run)
    except UnknownRun:
        origin = await remote.origin()
        folder = run_folder(store.folder, remote.run)
        make_private(folder)
        write_engine(folder, connection)
        store.create(
            remote.run,
            at=origin["started"],
            workflow=origin["workflow"],
            file=origin["file"],
            digest=origin["digest"],
            sources=unpack(origin["sources"]),
        )
        recorded = store.run(remote.run)
    if recorded.ended is None:
        await _copy(store, remote)


async def answer_run(store: "SqliteStore", run: str, reply: Mapping[str, Any]) -> str | None:
    """Answer a gate of a run on a server. Returns why it was refused, or `None`.

    What followed is copied when somebody looks: `resume` follows the run and prints its end, as for a local one.
    """
    remote = await remote_run(store, run)
    assert remote is not None
    return await remote.answer(reply)


async def cancel_run(store: "SqliteStore", run: str, *, by: str, reason: str, patience: float) -> str:
    """Cancel a run on a server, and wait until it has ended. After `patience` seconds it is terminated.

    Returns its final status.
    """
    remote = await remote_run(store, run)
    assert remote is not None
    deadline = SYSTEM_CLOCK.monotonic() + patience
    await remote.cancel(reason, by)
    while await remote.status() == "running":
        if SYSTEM_CLOCK.monotonic() >= deadline:
            await remote.workflow_handle().terminate(reason=f"not cancelled within {patience:g} s")
            break
        await asyncio.sleep(_POLL)
    try:
        await _copy(store, remote)
    except NoWorker as fault:
        _LOG.warning("the last events of run %s are missing: %s", run, fault)
    # A process that has the lock copies the end.
    await _wait_for_end(store, run, max(deadline, SYSTEM_CLOCK.monotonic() + _LAST_EVENTS))
    if store.run(run).ended is None:
        with store.lock(run):
            data = {"reason": reason, "by": by, "forced": True}
            store.append(run, [("run:cancelled", SYSTEM_CLOCK.now().timestamp(), data)])
    return store.run(run).status


async def _wait_for_end(store: "SqliteStore", run: str, deadline: float) -> None:
    """Wait until the end of a run is recorded, or no process follows it."""
    while store.run(run).ended is None and store.is_locked(run):
        if SYSTEM_CLOCK.monotonic() >= deadline:
            return
        await asyncio.sleep(_POLL)
