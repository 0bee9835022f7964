"""The local copies of runs on Temporal servers: brought up to date, answered, cancelled.

A copy is the events of the run in the local journal. With it every command that reads a recorded run works as for a run
of this machine.
"""

import asyncio
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from temporalio.service import RPCError

from failwell.calls.clock import SYSTEM_CLOCK
from failwell.errors.fault import Fault
from failwell.store.faults__journal_faults import Locked, UnknownRun
from failwell.store.folder import make_private, run_folder
from failwell.temporal.runs.plan_json import unpack
from failwell.temporal.runs.remote_run import NoWorker, RemoteRun, follow, no_worker, server_fault
from failwell.temporal.runs.run_mirror__copied_events import CopiedEvents
from failwell.temporal.runs.run_mirror__engine_record import read_engine, write_engine
from failwell.temporal.runs.run_workflow import NAME

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
