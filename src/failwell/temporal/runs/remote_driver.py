"""Drives a run on a Temporal server from this process: submits it, records its events here, and asks its questions.

The server has the run. This process keeps a copy of its events in the local journal, so that every command that reads
a recorded run works as for a local one. It may leave at any time; `resume` follows the run again.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from failwell.errors.fault import Fault
from failwell.store.event import to_json
from failwell.store.faults import RunExists
from failwell.temporal.queues import LARGEST
from failwell.temporal.runs.hidden_variables import hide, new_mark, secret_values, secret_variable
from failwell.temporal.runs.payloads import HEARTBEAT, event_to_json
from failwell.temporal.runs.plan_json import LONGEST, pack, plans_to_json
from failwell.temporal.runs.remote_run import (
    RECONNECT,
    NoWorker,
    RemoteRun,
    ended_by_server,
    follow,
    is_outage,
    no_worker,
    server_fault,
)
from failwell.temporal.runs.run_mirror import CopiedEvents, forget_engine, write_engine
from failwell.temporal.runs.run_workflow import NAME
from failwell.workflows.failure import Failure
from failwell.workflows.machine.fold import fold
from failwell.workflows.machine.messages import Answered, Begin, Cancel, Event, Resume
from failwell.workflows.machine.run_state import State
from failwell.workflows.running.gate_requests import ask_gate
from failwell.workflows.running.settings import DriveResult, GateAnswer, Opener, Settings

if TYPE_CHECKING:
    from failwell.temporal.connection import ConnectionOptions
    from failwell.workflows.plan import Plan

_LOG = logging.getLogger("failwell.temporal")
_PATIENCE = 5.0
"""Seconds without a first event, after which the queue is checked for workers."""


@dataclass(frozen=True, kw_only=True)
class TemporalEngine:
    """Runs workflows on the workers of a server: `workflows.run(file, engine=TemporalEngine(connection=options))`."""

    connection: "ConnectionOptions"
    model: str | None = None
    """A model that every agent calls instead of its own."""
    heartbeat: float = HEARTBEAT
    """Seconds without a sign of life after which a worker counts as dead."""
    max_history_events: int | None = None
    """Events of a history after which a run is continued in a new one; by default the server suggests it."""

    def __call__(
        self,
        plans: "dict[str, Plan]",
        settings: Settings,
        run_folder: Path,
        *,
        opener: Opener,  # noqa: ARG002  (workers open the files of sub-workflows)
        secrets: Mapping[str, str] | None = None,
        state: State | None = None,
    ) -> "RemoteDriver":
        """The driver of one run."""
        return RemoteDriver(self, plans, settings, run_folder, secrets=secrets or {}, state=state or State())


class RunTooLarge(Fault, kind="validation.input_invalid"):
    """What a run begins with does not fit into a payload."""

    run: str
    size: int

    def summary(self) -> str:
        """The sizes, and what to do."""
        return (
            f"the files, inputs and results that run `{self.run}` begins with have {self.size:,} bytes, and Temporal takes"
            f" {LARGEST:,}: pass large data as names of files"
        )


class RemoteDriver:
    """One run on a server, as this process sees it."""

    def __init__(
        self,
        engine: TemporalEngine,
        plans: "dict[str, Plan]",
        settings: Settings,
        run_folder: Path,
        *,
        secrets: Mapping[str, str],
        state: State,
    ) -> None:
        self.plans = plans
        self.settings = settings
        self.state = state
        self._engine = engine
        self._run_folder = run_folder
        self._secrets = secrets
        self._remote: RemoteRun | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self._submitted: list[Event] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._questions: dict[str, asyncio.Task[None]] = {}
        self._pending_gates: set[str] = set()
        """Gates that were asked here and have not been answered since."""
        self._answering: set[asyncio.Task[Any]] = set()
        """Questions whose answers are being sent."""
        self._file = ""
        self._copy: CopiedEvents | None = None

    def now(self) -> float:
        """The time that events carry."""
        return self.settings.clock.now().timestamp()

    def submit(self, event: Event) -> None:
        """Send an answer or a cancellation to the run, from this thread or another."""
        if self._loop is None:
            self._submitted.append(event)
        else:
            self._loop.call_soon_threadsafe(self._send_later, event)

    async def drive(self, event: Event) -> DriveResult:
        """Submit the run, or attach to it, and follow it until it ends or waits."""
        assert isinstance(event, Begin | Resume)
        connection = self._engine.connection
        client = await connection.connect()
        run = event.run if isinstance(event, Begin) else self.state.run
        self._file = event.file if isinstance(event, Begin) else self.state.file
        remote = self._remote = RemoteRun(client, run, connection.task_queue)
        write_engine(self._run_folder, connection)
        if isinstance(event, Begin):
            await self._start(event, client, remote)
            self.state.run = run
        else:
            status = await remote.status()
            if status is not None and status != "running":
                # It has ended, or was terminated, since it was last seen here.
                await self._catch_up(remote)
                if self.state.is_over:
                    return DriveResult.of(self.state)
            if status != "running":
                await self._start(event, client, remote)
        self._loop = asyncio.get_running_loop()
        for early in self._submitted:
            self._send_later(early)
        following = asyncio.create_task(follow(remote, self._wake))
        try:
            return await self._follow(remote, following)
        finally:
            self._loop = None
            tasks = (following, *self._questions.values(), *self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._copy is not None:
                self._copy.close()

    async def _start(self, event: Begin | Resume, client: Any, remote: RemoteRun) -> None:
        state = self.state.to_dict() if isinstance(event, Resume) else None
        from failwell.temporal.runs.remote_run import ensure_search_attributes

        sources = self.settings.store.sources(remote.run)
        hidden, mark = secret_values(sources.values(), self.settings.environ), new_mark()
        start = {
            "run": remote.run,
            "workflow": self.plans[self._file].name,
            "event": event_to_json(event),
            "plans": pack(hide(plans_to_json(self.plans), hidden, mark)),
            "sources": pack(sources),
            "state": None if state is None else pack(state),
            "first": self.state.seq,
            "can_ask": self.settings.asks_limits,
            "heartbeat": self._engine.heartbeat,
            "threshold": self._engine.max_history_events,
            "search_attributes": await ensure_search_attributes(client),
            "worker": {"mark": mark, **self._for_workers()},
        }
        size = len(to_json(start))
        whole = state if isinstance(event, Resume) else event.state
        if size > LARGEST or (whole is not None and len(to_json(whole)) > LONGEST):
            forget_engine(self._run_folder)
            raise RunTooLarge(run=remote.run, size=size)
        is_new = isinstance(event, Begin)
        try:
            await client.start_workflow(
                NAME,
                start,
                id=remote.run,
                task_queue=remote.task_queue,
                # Another machine may have submitted a run with this id.
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE
                if is_new
                else WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                static_summary=self.plans[self._file].name[:200],
            )
        except WorkflowAlreadyStartedError as error:
            forget_engine(self._run_folder)
            raise RunExists(run=remote.run) from error
        except RPCError as error:
            if not is_outage(error):
                # The server does not have it.
                forget_engine(self._run_folder)
            raise server_fault(error, client.namespace) from error

    def _for_workers(self) -> dict[str, Any]:
        """What every activity of the run gets."""
        shared: dict[str, Any] = {"cwd": str(Path.cwd())}
        if self._engine.model is not None:
            shared["model"] = self._engine.model
        if self.settings.allow_outside:
            shared["allow_outside"] = True
        if self._secrets and self._engine.connection.codec is not None:
            shared["secrets"] = dict(self._secrets)
        elif self._secrets:
            names = ", ".join(secret_variable(ref) for ref in self._secrets)
            _LOG.warning("secret inputs are not sent without `--codec`: workers take them from %s", names)
        return shared

    async def _follow(self, remote: RemoteRun, following: "asyncio.Task[None]") -> DriveResult:
        is_warned = False
        while True:
            is_over = following.done()
            try:
                result = await self._catch_up(remote)
            except NoWorker as fault:
                if is_over:
                    raise
                if not is_warned:
                    _LOG.warning("%s; %s", fault, fault.user_action.detail if fault.user_action else "")
                is_warned = True
                continue
            except RPCError as error:
                if not is_outage(error):
                    raise
                if not is_warned:
                    _LOG.warning("the server does not answer: %s; trying again", error.status.name.lower())
                is_warned = True
                await asyncio.sleep(RECONNECT)
                continue
            if result is not None:
                return result
            if is_over:
                following.result()
                raise ended_by_server(remote.run, await remote.status() or "gone")
            self._wake.clear()
            waking = asyncio.create_task(self._wake.wait())
            done, _ = await asyncio.wait(
                (waking, following),
                timeout=None if self.state.seq else _PATIENCE,
                return_when=asyncio.FIRST_COMPLETED,
            )
            waking.cancel()
            if not done and not is_warned and not await remote.has_worker():
                fault = no_worker(remote.task_queue)
                _LOG.warning("%s; %s", fault, fault.user_action.detail if fault.user_action else "")
                is_warned = True

    async def _catch_up(self, remote: RemoteRun) -> DriveResult | None:
        """Record what is new. Returns the result, if the run has ended or waits and this process does not."""
        while True:
            facts, lines = await remote.facts(self.state.seq - 1)
            if not facts:
                break
            await self._record(facts, lines)
        if self.state.is_over:
            return DriveResult.of(self.state)
        if self.state.paused and not self.settings.stays and not self._questions:
            return self._waiting()
        return None

    def _waiting(self) -> DriveResult:
        tasks = self.state.tasks.values()
        gates = tuple(str(task.gate) for task in tasks if task.gate is not None)
        until = min(
            (
                task.until
                for task in tasks
                if task.status in ("retrying", "waiting") and task.until is not None
            ),
            default=None,
        )
        return DriveResult(status="waiting", state=self.state, gates=gates, blocked_until=until)

    async def _record(self, facts: "Sequence[Any]", lines: Sequence[Mapping[str, Any]]) -> None:
        run = self.state.run
        fold(facts, self.state)
        if self._copy is None:
            settings, workflow = self.settings, self.plans[self._file].name
            self._copy = CopiedEvents(settings.store, run, workflow, self._run_folder, settings.clock)
        events = await self._copy.add(facts, lines)
        for event in events:
            if event.type == "human_gate:resumed":
                self._withdraw_question(event.data["gate"])
        self.settings.notify(self.state.run, events)
        self._ask_open_gates()

    def _withdraw_question(self, gate: str) -> None:
        """Forget the question of a gate that was answered; cancel it if that happened elsewhere."""
        self._pending_gates.discard(gate)
        question = self._questions.pop(gate, None)
        if question is not None and question not in self._answering:
            question.cancel()

    def _ask_open_gates(self) -> None:
        interactions = self.settings.interactions
        if interactions is None or not interactions.has_answerers:
            return
        for task in self.state.tasks.values():
            if task.gate is not None and task.asked is not None and task.gate not in self._pending_gates:
                self._pending_gates.add(task.gate)
                self._questions[task.gate] = asyncio.create_task(self._ask(task.gate, task.asked))

    async def _ask(self, gate: str, question: Mapping[str, Any]) -> None:
        assert self.settings.interactions is not None
        assert self._remote is not None
        reply = await ask_gate(self.settings.interactions, gate, question, run=self.state.run)
        if reply is None or not await self._answer(gate, reply):
            # Nobody answers here. The gate stays open, and is not asked again.
            self._questions.pop(gate, None)
            self._wake.set()

    async def _answer(self, gate: str, reply: GateAnswer) -> bool:
        """Send an answer. Returns whether it was accepted; then an event says so."""
        sending = asyncio.current_task()
        assert sending is not None
        self._answering.add(sending)
        try:
            return await self._send(
                Answered(
                    at=self.now(),
                    gate=gate,
                    decision=reply.decision,
                    by=reply.by,
                    payload=reply.payload,
                    comment=reply.comment,
                )
            )
        finally:
            self._answering.discard(sending)

    def _send_later(self, event: Event) -> None:
        task: asyncio.Task[Any] = asyncio.create_task(self._send(event))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, event: Event) -> bool:
        assert self._remote is not None
        problem: str | None = None
        try:
            if isinstance(event, Cancel):
                await self._remote.cancel(event.reason, event.by)
            elif isinstance(event, Answered):
                problem = await self._remote.answer(
                    {
                        "gate": event.gate,
                        "decision": event.decision,
                        "by": event.by,
                        "payload": event.payload,
                        "comment": event.comment,
                    }
                )
        except (RPCError, Fault) as error:
            problem = Failure.from_exception(error).report.message
        if problem is not None:
            _LOG.warning("run %s: %s", self.state.run, problem)
        return problem is None
