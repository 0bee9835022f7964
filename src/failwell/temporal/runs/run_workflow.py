"""The workflow that Temporal runs: one run, advanced by the same machine as on one machine.

Everything that is not deterministic comes from Temporal: time, random numbers, the results of activities, answers
and timers. The history holds what happened outside; the facts of the run follow from it in every replay.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy, SearchAttributeKey
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from failwell.calls.suppress import catch
    from failwell.store.event import to_json
    from failwell.store.faults import NotRecordable
    from failwell.temporal.queues import LARGEST, instance_queue
    from failwell.temporal.runs.payloads import (
        HEARTBEAT,
        PAGE,
        activity_failure,
        event_from_json,
        fit,
        read_lines,
        run_error,
        too_large,
        unfit,
        unreadable,
    )
    from failwell.temporal.runs.plan_json import (
        LONGEST,
        pack,
        pack_plans,
        request_to_json,
        unpack,
        unpack_plans,
    )
    from failwell.workflows.failure import derived_id
    from failwell.workflows.machine.advance import Machine, take_turns
    from failwell.workflows.machine.fold import fold
    from failwell.workflows.machine.messages import (
        Answered,
        Begin,
        Cancel,
        CancelTimer,
        Command,
        Done,
        Event,
        Failed,
        Open,
        Opened,
        Request,
        SetTimer,
        Stop,
        Stopped,
        TimerFired,
    )
    from failwell.workflows.machine.run_state import State, failure_in
    from failwell.workflows.running.faults import defect_failure
    from failwell.workflows.running.gate_requests import gates_in, refusal

    # These load Jinja2, which every run would load for itself later.
    from failwell.workflows.template.environment import Environment  # noqa: F401  # pyright: ignore[reportUnusedImport]
    from failwell.workflows.template.explain import explained  # noqa: F401  # pyright: ignore[reportUnusedImport]

NAME = "failwell.run"
NODE_ACTIVITY = "failwell.node"
OPEN_ACTIVITY = "failwell.open"
KIND = SearchAttributeKey.for_keyword("FailwellKind")
CATEGORY = SearchAttributeKey.for_keyword("FailwellCategory")
_LONGEST = timedelta(days=3_650)
"""Steps end by their own limits, which the machine and the executors keep."""
_LOST_WORKERS = 10
"""How often a step is started, if the worker that runs it dies each time."""


@workflow.defn(name=NAME)
class RunWorkflow:
    """One run, or the part of a long one since it was last continued as new."""

    @workflow.init
    def __init__(self, start: dict[str, Any]) -> None:
        """Restore the state that the run begins or continues with."""
        self._start = start
        self._plans = dict(unpack_plans(start["plans"]))
        self._machine = Machine(self._plans, can_ask=start.get("can_ask", False))
        state = start.get("state")
        self._restored: Mapping[str, Any] | None = None if state is None else unpack(state)
        """The state that this execution began with."""
        self._state = self._state_at_start()
        self._first = start.get("first", 0)
        """The number of the first event of this execution."""
        self._events: list[tuple[str, float, Mapping[str, Any]]] = []
        self._lines: list[tuple[int, dict[str, Any]]] = []
        """What agents have logged, each with the number of the event after it."""
        self._queue: deque[Event] = deque()
        self._work: dict[str, workflow.ActivityHandle[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: dict[str, tuple[float, asyncio.Task[None]]] = {}
        self._held: list[dict[str, Any]] = []
        """Steps that start after the run is continued as new."""
        self._attributes: tuple[str, str] | None = None
        self._keeps_history = False
        """Whether the state is too large to be continued in a new history."""

    @workflow.run
    async def run(self, start: dict[str, Any]) -> Any:
        """Drive the run to its end. A failed run fails the workflow with its report."""
        if "event" in start:
            self._queue.append(event_from_json(start["event"], at=workflow.time(), jitter=self._jitter()))
        for timer, at in start.get("timers", {}).items():
            self._set_timer(timer, at)
        for work in unpack(start["held"]) if "held" in start else ():
            self._begin_work(work)
        while not self._state.is_over:
            try:
                await workflow.wait_condition(lambda: bool(self._queue) or self._can_continue)
            except asyncio.CancelledError:
                reason, _, by = (workflow.cancellation_reason() or "").partition("\n")
                self._queue.append(Cancel(at=workflow.time(), reason=reason or "user", by=by))
            if self._queue:
                self._advance()
            elif self._can_continue:
                await self._continue_as_new()
        self._cancel_all()
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self._result()

    # Reading and answering a run.

    @workflow.query(name="events")
    def events(self, after: int) -> dict[str, Any]:
        """The events above number `after`, as many as a reply may hold, and where earlier ones are."""
        begin = max(0, after + 1 - self._first)
        page: list[list[Any]] = []
        size = 0
        lines = [(number, entry) for number, entry in self._lines if number > after]
        for index in range(begin, len(self._events)):
            kind, at, data = self._events[index]
            size += len(to_json(data))
            if page and size > PAGE:
                break
            page.append([self._first + index, kind, at, data])
        return {
            "first": self._first,
            "count": len(self._events),
            "previous": workflow.info().continued_run_id,
            "events": pack(page),
            "lines": pack([entry for number, entry in lines if number <= after + len(page)]),
        }

    @workflow.query(name="state")
    def state(self) -> dict[str, Any]:
        """Where the run is: for people and dashboards."""
        state = self._state
        tasks = list(state.tasks.values())
        failure = next((task.failure for task in tasks if task.failure is not None), None)
        return {
            "run": state.run,
            "status": "paused" if state.paused and not state.is_over else state.status,
            "events": self._first + len(self._events),
            "steps": {task.path: task.status for task in tasks},
            "gates": {name: question.get("prompt", "") for name, question in gates_in(tasks).items()},
            "blocked_until": min((task.until for task in tasks if task.until is not None), default=None),
            "error": None if failure is None else failure.envelope,
            "cost_usd": round(state.spent, 9),
        }

    @workflow.query(name="origin")
    def origin(self) -> dict[str, Any]:
        """What a store records of a run beside its events."""
        plan = self._plans[self._state.file or self._start["file"]]
        return {
            "workflow": plan.name,
            "file": plan.file,
            "digest": plan.digest,
            "started": self._state.started,
            "sources": self._start["sources"],
        }

    @workflow.update(name="answer")
    async def answer(self, reply: dict[str, Any]) -> dict[str, Any]:
        """Answer a gate. Returns when the answer has taken effect."""
        gate = str(reply.get("gate"))
        # Another answer may have come between the check and this one.
        self.check_answer(reply)
        self._queue.append(
            Answered(
                at=workflow.time(),
                gate=gate,
                decision=str(reply.get("decision")),
                by=str(reply.get("by", "")),
                payload=reply.get("payload"),
                comment=str(reply.get("comment", "")),
                jitter=self._jitter(),
            )
        )
        await workflow.wait_condition(lambda: not self._queue)
        return {"ok": True, "events": self._first + len(self._events)}

    @answer.validator
    def check_answer(self, reply: dict[str, Any]) -> None:
        """Refuse an answer that does not fit an open gate, and a second answer."""
        gate = str(reply.get("gate"))
        problem = refusal(
            gates_in(self._state.tasks.values()), gate, str(reply.get("decision")), reply.get("payload")
        )
        if problem is None and any(
            isinstance(event, Answered) and event.gate == gate for event in self._queue
        ):
            problem = f"gate `{gate}` was answered already"
        if problem is not None:
            raise ApplicationError(problem, type="validation.input_invalid", non_retryable=True)

    # Driving.

    def _advance(self) -> None:
        first = self._queue[0]
        facts, commands, defect = take_turns(
            self._machine, self._state, self._queue, now=workflow.time, jitter=self._jitter
        )
        if defect is not None:
            self._record(facts)
            self._end_after_defect(defect.event, defect.error)
            return
        try:
            for _, _, data in facts:
                to_json(data)
        except NotRecordable as fault:
            self._end_after_defect(first, fault)
            return
        self._record(facts)
        for command in commands:
            self._carry_out(command)

    def _state_at_start(self) -> State:
        return State() if self._restored is None else State.from_dict(self._restored)

    def _record(self, facts: "list[tuple[str, float, Mapping[str, Any]]]") -> None:
        self._events.extend(facts)
        if self._start.get("search_attributes"):
            self._set_attributes(facts)

    def _end_after_defect(self, event: Event, error: Exception) -> None:
        """Stop everything, and end the run with a failure that no route takes. It can be resumed."""
        state = self._state = fold(self._events, self._state_at_start())
        run = event.run if isinstance(event, Begin) else state.run
        task = state.tasks.get(getattr(event, "path", ""))
        failure = defect_failure(
            error, type(event).__name__, run=run, node=None if task is None else task.node
        )
        report = replace(failure.report, id=derived_id(event.at, run, "defect", state.seq))
        workflow.logger.error("%s: unexpected error in run %s", report.id, run, exc_info=error)
        self._cancel_all()
        self._queue.clear()
        turn = self._machine.close(state, event, replace(failure, report=report))
        self._record([(kind, event.at, data) for kind, data in turn.facts])

    def _carry_out(self, command: Command) -> None:
        match command:
            case Request():
                plan = self._plans[command.file]
                work = {
                    "path": command.path,
                    "activity": NODE_ACTIVITY,
                    "request": request_to_json(command, plan),
                    "budget": self._budget(),
                }
                if command.node.type == "job":
                    work["instance"] = command.call["target"]
                self._hold_or_begin(work)
            case Open():
                work = {
                    "path": command.path,
                    "activity": OPEN_ACTIVITY,
                    "file": command.file,
                    "folder": command.folder,
                }
                self._hold_or_begin(work)
            case Stop(path=path):
                self._stop(path)
            case SetTimer(timer=timer, at=at):
                self._set_timer(timer, at)
            case CancelTimer(timer=timer):
                self._cancel_timer(timer)
            case _:
                # Questions are read from the events; `take_turns` has handled `Continue`.
                pass

    def _hold_or_begin(self, work: dict[str, Any]) -> None:
        if self._is_long:
            self._held.append(work)
        else:
            self._begin_work(work)

    def _begin_work(self, work: dict[str, Any]) -> None:
        path = work["path"]
        argument = fit({**work, "run": self._start["run"], **self._start.get("worker", {})})
        if argument is None:
            failure = too_large("the input", path, at=workflow.time(), run=self._start["run"])
            self._queue.append(Failed(at=workflow.time(), path=path, failure=failure, jitter=self._jitter()))
            return
        queue = workflow.info().task_queue
        activity = workflow.start_activity(
            work["activity"],
            argument,
            # A job runs where its capability is.
            task_queue=instance_queue(queue, work["instance"]) if "instance" in work else queue,
            start_to_close_timeout=_LONGEST,
            heartbeat_timeout=timedelta(seconds=self._start.get("heartbeat", HEARTBEAT)),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(milliseconds=100),
                maximum_interval=timedelta(seconds=10),
                maximum_attempts=_LOST_WORKERS,
            ),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            summary=path[:200],
        )
        self._work[path] = activity
        self._tasks.add(task := asyncio.create_task(self._finish_work(work, activity)))
        task.add_done_callback(self._tasks.discard)

    async def _finish_work(self, work: dict[str, Any], activity: "workflow.ActivityHandle[Any]") -> None:
        event = await self._outcome(work, activity)
        if self._work.get(work["path"]) is activity:
            del self._work[work["path"]]
        self._queue.append(event)

    async def _outcome(self, work: dict[str, Any], activity: "workflow.ActivityHandle[Any]") -> Event:
        path = work["path"]
        try:
            reply = await activity
        except asyncio.CancelledError:
            return Stopped(at=workflow.time(), path=path, jitter=self._jitter())
        except ActivityError as error:
            if is_cancelled_exception(error):
                return Stopped(at=workflow.time(), path=path, jitter=self._jitter())
            failure, lines = activity_failure(error, at=workflow.time(), run=self._start["run"], path=path)
            self._add_lines(lines)
            return Failed(at=workflow.time(), path=path, failure=failure, jitter=self._jitter())
        event, problem = catch(self._result_of, work, reply)
        if problem is not None:
            # Whatever a worker returns, the step ends.
            failure = unreadable(path, at=workflow.time(), run=self._start["run"])
            return Failed(at=workflow.time(), path=path, failure=failure, jitter=self._jitter())
        return event

    def _result_of(self, work: dict[str, Any], reply: Any) -> Event:
        path, data = work["path"], unfit(reply)
        if work["activity"] == OPEN_ACTIVITY:
            self._plans.update(unpack_plans(data["plans"]))
            return Opened(at=workflow.time(), path=path, file=data["file"], jitter=self._jitter())
        event = Done(
            at=workflow.time(),
            path=path,
            output=data["output"],
            usage=data.get("usage"),
            jitter=self._jitter(),
        )
        self._add_lines(read_lines(data))
        return event

    def _add_lines(self, entries: Iterable[dict[str, Any]]) -> None:
        following = self._first + len(self._events)
        self._lines += [(following, entry) for entry in entries]

    def _budget(self) -> dict[str, Any] | None:
        """What the run may still spend, where reaching it stops the run."""
        limits = self._plans[self._state.file].limits
        usd = self._state.limits.get("budget_usd", limits.budget_usd)
        if usd is None or limits.on_exceed == "warn":
            return None
        return {"usd": usd, "unpriced": limits.unpriced, "spent": self._state.spent}

    def _stop(self, path: str) -> None:
        held = [work for work in self._held if work["path"] == path]
        if held:
            self._held = [work for work in self._held if work["path"] != path]
            self._queue.append(Stopped(at=workflow.time(), path=path, jitter=self._jitter()))
        elif path in self._work:
            self._work[path].cancel()

    def _set_timer(self, timer: str, at: float) -> None:
        self._cancel_timer(timer)
        self._timers[timer] = (at, asyncio.create_task(self._fire(timer, at)))

    async def _fire(self, timer: str, at: float) -> None:
        await workflow.sleep(max(0.0, at - workflow.time()), summary=timer[:200])
        self._timers.pop(timer, None)
        self._queue.append(TimerFired(at=max(at, workflow.time()), timer=timer, jitter=self._jitter()))

    def _cancel_timer(self, timer: str) -> None:
        _, sleeping = self._timers.pop(timer, (0.0, None))
        if sleeping is not None:
            sleeping.cancel()

    def _cancel_all(self) -> None:
        for task in [*self._work.values(), *(sleeping for _, sleeping in self._timers.values())]:
            task.cancel()

    def _jitter(self) -> float:
        return workflow.random().random()

    # Long runs.

    @property
    def _is_long(self) -> bool:
        """Whether the history is long enough to be continued in a new one."""
        if self._keeps_history:
            return False
        info, threshold = workflow.info(), self._start.get("threshold")
        return info.is_continue_as_new_suggested() or (
            threshold is not None and info.get_current_history_length() >= threshold
        )

    @property
    def _can_continue(self) -> bool:
        return self._is_long and not self._work and not self._queue and bool(self._events)

    async def _continue_as_new(self) -> None:
        """Continue in a new history, with the state, the timers, and the steps that have been held back."""
        await workflow.wait_condition(workflow.all_handlers_finished)
        if self._queue:
            return
        whole = self._state.to_dict()
        state, plans, held_back = pack(whole), pack_plans(self._plans), pack(self._held)
        size = sum(map(len, (state, plans, held_back, self._start["sources"])))
        if size > LARGEST or len(to_json(whole)) > LONGEST:
            # It does not fit into a payload, so the history grows on.
            self._keeps_history = True
            held, self._held = self._held, []
            for work in held:
                self._begin_work(work)
            return
        replaced = ("event", "state", "held", "timers")
        workflow.continue_as_new(
            {
                **{name: value for name, value in self._start.items() if name not in replaced},
                "plans": plans,
                "state": state,
                "first": self._first + len(self._events),
                "timers": {timer: at for timer, (at, _) in self._timers.items()},
                "held": held_back,
            }
        )

    # The end.

    def _set_attributes(self, facts: "list[tuple[str, float, Mapping[str, Any]]]") -> None:
        """Show the last failure in the search attributes, and none on a run that has completed."""
        attributes = self._attributes
        for kind, _, data in facts:
            if kind == "run:completed":
                attributes = None
            elif kind in ("node:failed", "node:retrying", "run:failed"):
                report = data["failure"]["report"]
                attributes = (report["kind"], report["category"])
        if attributes == self._attributes:
            return
        self._attributes = attributes
        updates: Any = (
            [KIND.value_unset(), CATEGORY.value_unset()]
            if attributes is None
            else [KIND.value_set(attributes[0]), CATEGORY.value_set(attributes[1])]
        )
        workflow.upsert_search_attributes(updates)  # pyright: ignore[reportUnknownMemberType]  (the SDK's own types)

    def _result(self) -> Any:
        state = self._state
        if state.status == "cancelled":
            raise asyncio.CancelledError("the run was cancelled")
        if state.status == "completed":
            outputs = state.outputs
            return (
                outputs
                if len(to_json(outputs)) <= LARGEST
                else {"too_large": f"failwell runs show {state.run}"}
            )
        failure = failure_in(state.ending or {})
        assert failure is not None
        raise run_error(failure)
