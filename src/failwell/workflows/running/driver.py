"""Drives one run: passes events to the machine, writes its facts to the journal, then carries out its commands.

All events go through one queue. Queued events are handled together, so under load many results share
one write. Watchers are notified and commands are carried out only after the facts are written.
"""

import logging
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from failwell.calls.budget import Budget, to_micro_cents
from failwell.calls.shared_budget import SharedBudget
from failwell.calls.suppress import catch_async
from failwell.errors.fault import Fault
from failwell.errors.faults import Validation
from failwell.store.event import TERMINAL
from failwell.store.event import Event as Entry
from failwell.store.faults import NotRecordable
from failwell.store.output_log import JOIN_SECONDS, OutputLog
from failwell.store.run_store import append_with_retry
from failwell.workflows.failure import Failure
from failwell.workflows.machine.advance import Facts, Machine, take_turns
from failwell.workflows.machine.fold import fold
from failwell.workflows.machine.messages import (
    Answered,
    Ask,
    Begin,
    CancelTimer,
    Command,
    Continue,
    Done,
    End,
    Event,
    Failed,
    Idle,
    Open,
    Opened,
    Request,
    SetTimer,
    Stop,
    Stopped,
    Tick,
    TimerFired,
)
from failwell.workflows.machine.run_state import State
from failwell.workflows.plan import Plan
from failwell.workflows.running.audit import AUDITED, record_facts
from failwell.workflows.running.executor import Success, Tools, run_step
from failwell.workflows.running.faults import defect_failure
from failwell.workflows.running.files import WRITTEN, write_event, write_failures
from failwell.workflows.running.restoring import restore
from failwell.workflows.running.settings import DriveResult, Opener, Settings

if TYPE_CHECKING:
    from asyncio import Task as Work

_LOG = logging.getLogger("failwell.workflows")
FIRST_SNAPSHOT = 2_000
"""Facts before the first snapshot of the state. Each further snapshot is taken after half as many again."""


class Driver:
    """One run in this process."""

    def __init__(
        self,
        plans: dict[str, Plan],
        settings: Settings,
        run_folder: Path,
        *,
        opener: Opener,
        secrets: Mapping[str, str] | None = None,
        state: State | None = None,
    ) -> None:
        self.machine = Machine(plans, can_ask=settings.asks_limits)
        self.plans = plans
        self.settings = settings
        self.state = State() if state is None else state
        self._run_folder = run_folder
        self._opener = opener
        self._secrets: Mapping[str, str] = {} if secrets is None else secrets
        self._tools: dict[str, Tools] = {}
        self._budget: SharedBudget | None = None
        self._output = OutputLog(run_folder)
        self._is_flush_planned = False
        self._queue: deque[Event] = deque()
        self._wake: Any = None
        self._loop: Any = None
        self._work: dict[str, Work[None]] = {}
        self._timers: dict[str, Work[None]] = {}
        self._questions: dict[str, Work[None]] = {}
        self._stopping: dict[str, Work[None]] = {}
        self._ended: DriveResult | None = None
        self._next_snapshot = max(FIRST_SNAPSHOT, self.state.seq * 3 // 2)

    def submit(self, event: Event) -> None:
        """Submit an event, from this thread or another."""
        loop = self._loop
        if loop is None:
            self._queue.append(event)
        else:
            loop.call_soon_threadsafe(self._enqueue, event)

    def now(self) -> float:
        """The time that events carry."""
        return self.settings.clock.now().timestamp()

    async def drive(self, event: Event) -> DriveResult:
        """Drive the run from its first `event` until it ends, or waits for a person or a distant timer."""
        import asyncio

        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._queue.append(event)
        try:
            while self._ended is None:
                if not self._queue:
                    self._wake.clear()
                    await self._wake.wait()
                await self._turn()
                if self._queue:
                    # Let leaves and timers run between two turns.
                    await asyncio.sleep(0)
            return self._ended
        except asyncio.CancelledError:
            await self._end_if_cancelled()
            raise
        finally:
            self._loop = None
            await self._cancel_all()
            self._output.close()

    async def _end_if_cancelled(self) -> None:
        """Record the end of a run that was being cancelled, and whose process does not wait for it any more."""
        if self.state.cancel is None or self.state.is_over:
            return
        await self._cancel_all()
        event = Tick(at=self.now())
        turn = self.machine.close(self.state, event, None)
        await self._write([(kind, event.at, data) for kind, data in turn.facts])

    async def _turn(self) -> None:
        first = self._queue[0]
        facts, commands, defect = take_turns(
            self.machine, self.state, self._queue, now=self.now, jitter=self.settings.jitter
        )
        if defect is not None:
            await self._end_after_defect(facts, defect.event, defect.error)
            return
        try:
            if facts and not await self._write(facts):
                return
        except NotRecordable as fault:
            await self._end_after_defect([], first, fault)
            return
        for command in commands:
            self._carry_out(command)

    async def _end_after_defect(self, facts: Facts, event: Event, error: Exception) -> None:
        """Stop everything, and end the run with a failure that no route takes. It can be resumed."""
        run = event.run if isinstance(event, Begin) else self.state.run
        state = self.state = fold(facts, restore(self.settings.store, run))
        task = state.tasks.get(getattr(event, "path", ""))
        failure = defect_failure(
            error, type(event).__name__, run=run, node=None if task is None else task.node
        )
        await self._cancel_all()
        self._queue.clear()
        turn = self.machine.close(state, event, failure)
        facts += [(kind, event.at, data) for kind, data in turn.facts]
        try:
            if not await self._write(facts):
                return
        except NotRecordable as fault:
            self._end_unrecorded(fault)
            return
        if state.cancel is not None:
            stored = failure.to_dict()
            write_failures(self._run_folder, run, self._workflow, stored, at=event.at, node=None)
        self._ended = DriveResult.of(self.state)

    async def _write(self, facts: Facts) -> bool:
        """Write facts and notify watchers. Returns whether they were written.

        Raises:
            NotRecordable: a fact holds what JSON cannot represent. Nothing was written.
        """
        try:
            # What was printed is in the log before its step ends: a follower stops at the end of the run.
            self._output.flush()
            if not AUDITED.isdisjoint([fact[0] for fact in facts]):
                record_facts(self.settings.store, self.state.run, facts)
            events = await append_with_retry(
                self.settings.store, self.state.run, facts, clock=self.settings.clock
            )
        except NotRecordable:
            raise
        except Fault as fault:
            # Watchers learn nothing that is not recorded, except that the run has ended.
            self._end_unrecorded(fault)
            return False
        for event in events:
            if event.type in WRITTEN:
                write_event(self._run_folder, self.state.run, self._workflow, event)
            elif event.type == "human_gate:resumed":
                self._withdraw_question(event.data["gate"])
        self.settings.notify(self.state.run, events)
        if self.state.seq >= self._next_snapshot and facts[-1][0] not in TERMINAL:
            self._save_snapshot()
        return True

    @property
    def _workflow(self) -> str:
        return self.plans[self.state.file].name

    def _save_snapshot(self) -> None:
        import json

        text = json.dumps(self.state.to_dict(), separators=(",", ":"))
        try:
            self.settings.store.snapshot(self.state.run, self.state.seq - 1, text)
        except Fault as fault:
            # The events are recorded, so a resume only takes longer without it.
            _LOG.warning("run %s: a snapshot was not stored: %s", self.state.run, fault)
        self._next_snapshot = self.state.seq * 3 // 2

    def _end_unrecorded(self, fault: Fault) -> None:
        failure = Failure.from_exception(fault)
        _LOG.error("run %s cannot be recorded: %s", self.state.run, failure.kind)
        data = {"failure": failure.to_dict(), "error_type": "NotRecorded"}
        self.settings.notify(self.state.run, (Entry(self.state.seq, "run:failed", self.now(), data),))
        self._ended = DriveResult(
            status="failed", state=self.state, failure=failure, error_type="NotRecorded"
        )

    def _carry_out(self, command: Command) -> None:
        match command:
            case Request(path=path):
                self._work[path] = self._spawn(self._execute(command))
            case Stop(path=path):
                self._stop(path)
            case SetTimer(timer=timer, at=at):
                self._cancel_timer(timer)
                self._timers[timer] = self._spawn(self._fire_timer(timer, at))
            case CancelTimer(timer=timer):
                self._cancel_timer(timer)
            case Open():
                self._work[command.path] = self._spawn(self._open(command))
            case Ask(gate=gate, question=question):
                if self._can_ask() and gate not in self._questions:
                    self._questions[gate] = self._spawn(self._ask(gate, question))
            case Idle(gates=gates, blocked_until=until):
                self._end_if_idle(gates, until)
            case Continue():
                # `take_turns` has queued the event that it asks for.
                pass
            case End():
                self._ended = DriveResult.of(self.state)

    def _end_if_idle(self, gates: tuple[str, ...], until: float | None) -> None:
        is_asking = any(gate in self._questions for gate in gates)
        if not self.settings.stays and not is_asking and not self._queue:
            self._ended = DriveResult(status="waiting", state=self.state, gates=gates, blocked_until=until)

    async def _execute(self, request: Request) -> None:
        import asyncio

        tools = self._tools.get(request.file) or self._tools_of(request.file)
        path = request.path
        event: Event
        try:
            result = await run_step(self.settings.executors.__getitem__, request, tools, _LOG)
        except asyncio.CancelledError:
            self._work.pop(path, None)
            self._enqueue(Stopped(at=self.now(), path=path, jitter=self.settings.jitter()))
            raise
        if self._budget is not None and request.node.type not in ("agent", "stage") and result.usage:
            # An agent takes what it spends from the budget itself.
            self._budget.settle(0, to_micro_cents(result.usage.get("cost_usd") or 0.0))
        self._work.pop(path, None)
        event = self._event(path, result)
        self._enqueue(event)

    def _tools_of(self, file: str) -> Tools:
        tools = self._tools[file] = Tools(
            plan=self.plans[file],
            run_folder=self._run_folder,
            secret=self._secret,
            budget=self._run_budget(),
            note=self._note,
            grace=self.settings.grace,
        )
        return tools

    def _run_budget(self) -> SharedBudget | None:
        """The budget that all branches of the run share, where reaching it stops them."""
        if self._budget is None:
            limits = self.plans[self.state.file].limits
            usd = self.state.limits.get("budget_usd", limits.budget_usd)
            if usd is not None and limits.on_exceed != "warn":
                self._budget = SharedBudget(
                    Budget(usd=usd, unpriced=limits.unpriced), spent_usd=self.state.spent
                )
        return self._budget

    def _note(self, kind: str, data: dict[str, Any]) -> None:
        """Write what a step printed to the run's log, and pass every note on."""
        if kind in ("node:printed", "node:cut"):
            needs_flush = self._output.add({"at": round(self.now(), 3), **data})
            if needs_flush and not self._is_flush_planned:
                from asyncio import get_running_loop

                self._is_flush_planned = True
                get_running_loop().call_later(JOIN_SECONDS, self._flush_output)
        if self.settings.notes is not None:
            self.settings.notes(kind, data)

    def _flush_output(self) -> None:
        self._is_flush_planned = False
        self._output.flush()

    def _secret(self, ref: str) -> str:
        if ref not in self._secrets:
            raise Validation(kind="validation.input_invalid", message=f"the secret `{ref}` was not passed")
        return self._secrets[ref]

    def _event(self, path: str, result: Success | Failure) -> Event:
        at, jitter = self.now(), self.settings.jitter()
        if isinstance(result, Success):
            return Done(at=at, path=path, output=result.output, usage=result.usage, jitter=jitter)
        return Failed(at=at, path=path, failure=result, jitter=jitter)

    async def _open(self, command: Open) -> None:
        from posixpath import join, normpath

        path = normpath(join(command.folder, command.file))
        plan, error = await catch_async(self._opener, command.file, command.folder)
        self._work.pop(command.path, None)
        if error is None:
            self.plans[path] = plan
            self._enqueue(Opened(at=self.now(), path=command.path, file=path))
            return
        # Whatever is wrong with the file fails its step only.
        failure = Failure.from_exception(error)
        if not isinstance(error, Fault):
            _LOG.error("%s: unexpected error in `%s`", failure.report.id, command.path, exc_info=error)
        self._enqueue(Failed(at=self.now(), path=command.path, failure=failure))

    async def _fire_timer(self, timer: str, at: float) -> None:
        await self.settings.clock.asleep(max(0.0, at - self.now()))
        self._timers.pop(timer, None)
        self._enqueue(TimerFired(at=max(at, self.now()), timer=timer, jitter=self.settings.jitter()))

    def _can_ask(self) -> bool:
        """Whether somebody can be asked here. If not, a gate stays open for other ways to answer."""
        interactions = self.settings.interactions
        return interactions is not None and interactions.has_answerers

    async def _ask(self, gate: str, question: Mapping[str, Any]) -> None:
        from failwell.workflows.running.gate_requests import ask_gate

        assert self.settings.interactions is not None
        reply = await ask_gate(self.settings.interactions, gate, question, run=self.state.run)
        self._questions.pop(gate, None)
        if reply is None:
            self._enqueue(Tick(at=self.now()))
            return
        self._enqueue(
            Answered(
                at=self.now(),
                gate=gate,
                decision=reply.decision,
                by=reply.by,
                payload=reply.payload,
                comment=reply.comment,
                jitter=self.settings.jitter(),
            )
        )

    def _withdraw_question(self, gate: str) -> None:
        """Cancel a question that has been answered elsewhere."""
        question = self._questions.pop(gate, None)
        if question is not None:
            question.cancel()

    def _stop(self, path: str) -> None:
        work = self._work.get(path)
        if work is None or path in self._stopping:
            return
        work.cancel()
        self._stopping[path] = self._spawn(self._abandon(path, work))

    async def _abandon(self, path: str, work: "Work[None]") -> None:
        """Treat a leaf that does not stop in time as stopped, so that the run can end."""
        from asyncio import wait

        _, running = await wait((work,), timeout=self.settings.grace + self.settings.stop_timeout)
        self._stopping.pop(path, None)
        if running:
            _LOG.error("`%s` of run %s does not stop; the run continues without it", path, self.state.run)
        if self._work.get(path) is work:
            # It does not end, or it was cancelled before it began and so could not say that it has ended.
            self._work.pop(path)
            self._enqueue(Stopped(at=self.now(), path=path, jitter=self.settings.jitter()))

    def _cancel_timer(self, timer: str) -> None:
        sleeping = self._timers.pop(timer, None)
        if sleeping is not None:
            sleeping.cancel()

    def _spawn(self, work: Any) -> "Work[None]":
        return self._loop.create_task(work)

    def _enqueue(self, event: Event) -> None:
        self._queue.append(event)
        if self._wake is not None:
            self._wake.set()

    async def _cancel_all(self) -> None:
        """Cancel leaves, timers and questions, and wait for them to end."""
        from asyncio import wait

        tasks = [
            *self._work.values(),
            *self._timers.values(),
            *self._questions.values(),
            *self._stopping.values(),
        ]
        for task in tasks:
            task.cancel()
        if tasks:
            await wait(tasks, timeout=self.settings.grace + self.settings.stop_timeout)
