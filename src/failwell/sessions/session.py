"""A session that is open: takes inputs one after another, runs a turn for each, and records everything before it counts."""

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from failwell.agents.message_repair import INTERRUPTED
from failwell.agents.people.queue import InteractionRequired
from failwell.calls.cancel import CancelScope, Reason, ScopeBlock
from failwell.calls.shared_budget import BudgetExceeded, SharedBudget
from failwell.calls.suppress import catch_async
from failwell.errors.faults import Cancellation
from failwell.errors.frozen import frozen
from failwell.errors.report import ErrorReport, Scene
from failwell.sessions.agent import SessionAgent
from failwell.sessions.faults import NothingToRetry, SessionClosed
from failwell.sessions.history import SessionState, Usage
from failwell.sessions.log import CANCELLED, SessionLog, SessionRecorder
from failwell.sessions.manifest import Manifest, manifest_of
from failwell.store.event import Event
from failwell.store.locks import ProcessLock
from failwell.store.sqlite.run_store import SqliteStore

if TYPE_CHECKING:
    from asyncio import Future, Task

    from failwell.agents.people.queue import InteractionQueue
    from failwell.agents.tools.tool import Approver
    from failwell.workflows.machine.messages import Request
    from failwell.workflows.running.executor import Tools

_GRACE = 2.0
Outcome = Literal["answered", "failed", "cancelled", "halted"]


@frozen
class TurnResult:
    """How one turn ended."""

    status: Outcome
    """`answered`, `failed`, `cancelled`, or `halted` if a person must answer and nobody can be asked."""
    turn: int
    text: str = ""
    """The answer."""
    report: ErrorReport | None = None
    """Why there is no answer."""
    used: Usage | None = None
    """What the turn used, failed attempts included."""

    @property
    def ok(self) -> bool:
        """Whether the agent answered."""
        return self.status == "answered"


class AgentSession:
    """An open session. Make one with `open_session` or `resume_session`; use it as an async context manager."""

    def __init__(
        self,
        log: SessionLog,
        agent: SessionAgent,
        store: SqliteStore,
        lock: ProcessLock,
        questions: "InteractionQueue",
        *,
        folder: Path,
        on_text: Callable[[str], object] | None = None,
    ) -> None:
        from failwell.workflows.agent_steps.run_resources import AgentRun

        self._log = log
        self._agent = agent
        self._store = store
        self._lock = lock
        self._questions = questions
        self._folder = folder
        """The folder of the session."""
        self._on_text = on_text
        self._working_folder = str(Path.cwd())
        self._scope = CancelScope("session", name=log.session)
        self._turn_scope: CancelScope | None = None
        self._pending: deque[tuple[str | None, Future[TurnResult]]] = deque()
        self._worker: Task[None] | None = None
        self._agents = AgentRun(
            folder, store.folder, self.manifest.model, store.audit.bind(log.session), lambda: questions
        )
        self._agents.models.go_on(dict(self.state.answers))
        # One scope for all turns: a call whose outcome nobody knows is not repeated by a later turn.
        self._once = self._agents.once_calls(f"session-{self.id}")
        self._once.succeeded.update(self.state.effects)
        self._budget = self._open_budget()
        self._is_closed = False

    # -------------------------------------------------------------- what it is

    @property
    def id(self) -> str:
        """The id."""
        return self._log.session

    @property
    def state(self) -> SessionState:
        """The conversation and what it used so far."""
        return self._log.state

    @property
    def manifest(self) -> Manifest:
        """The agent, its models and tools."""
        assert self.state.manifest is not None
        return self.state.manifest

    @property
    def is_busy(self) -> bool:
        """Whether a turn runs or waits."""
        return bool(self._pending) or self._turn_scope is not None

    @property
    def has_failed(self) -> bool:
        """Whether the journal refused, so that nothing more can be recorded."""
        return self._log.failure is not None

    def events(self, after: int = -1) -> Iterator[Event]:
        """The recorded events, those numbered above `after`."""
        return self._store.read(self.id, after)

    # -------------------------------------------------------------- turns

    async def send(self, text: str) -> TurnResult:
        """Give the agent an input and wait for the end of its turn. Inputs wait for each other in the order they came.

        Raises:
            Cancellation: the session was closed before the turn began (`cancel.session`).
            SessionClosed: it was closed before.
            Fault: the journal refuses, so the session has failed.
        """
        return await self._submit(text)

    async def retry(self) -> TurnResult:
        """Run the latest turn again, if it failed or was cancelled. The input is not added a second time.

        Raises:
            NothingToRetry: the latest turn has an answer.
            SessionClosed: the session was closed before.
        """
        if self.state.turn_status not in ("failed", "cancelled", "running"):
            raise NothingToRetry(session=self.id)
        return await self._submit(None)

    def cancel_turn(self, reason: Reason = "user") -> bool:
        """Stop the turn that runs, and everything that its tools started. The session stays open."""
        scope = self._turn_scope
        if scope is None:
            return False
        scope.cancel(reason)
        return True

    async def use_model(self, model: str) -> None:
        """Call another model from the next turn on. The change is recorded.

        Raises:
            Validation: it is not `provider:model`.
        """
        from failwell.agents.models import model_name

        model_name(model, None)
        manifest = manifest_of(
            self._agent, store=self.manifest.store, approvals=self.manifest.approvals, model=model
        )
        await self._log.write(
            ("session:resumed", {"manifest": manifest.to_dict(), "changes": [f"model {model}"]})
        )
        self._agents.model = model

    async def _submit(self, text: str | None) -> TurnResult:
        from asyncio import CancelledError, get_running_loop, shield

        if self._is_closed or self._scope.cancelled:
            raise SessionClosed(session=self.id)
        if self._log.failure is not None:
            raise self._log.failure
        loop = get_running_loop()
        future: Future[TurnResult] = loop.create_future()
        entry = (text, future)
        self._pending.append(entry)
        if self._worker is None or self._worker.done():
            self._worker = loop.create_task(self._work())
        try:
            return await shield(future)
        except CancelledError:
            # The caller was cancelled, not the turn: nobody waits for it any more.
            if entry in self._pending:
                self._pending.remove(entry)
                future.cancel()
            elif not future.done():
                self.cancel_turn()
            raise

    async def _work(self) -> None:
        """Run the turns that wait, one after another."""
        while self._pending:
            text, future = self._pending.popleft()
            if self._scope.cancelled:
                _reject(future, self._scope.fault())
                continue
            result, error = await catch_async(self._run, text)
            if error is not None:
                # It is raised where the input was sent.
                _reject(future, error)
            elif not future.done():
                future.set_result(result)

    async def _run(self, text: str | None) -> TurnResult:
        if text is None:
            await self._log.write(("session:retried", {"turn": self.state.turn}))
        else:
            turn = self.state.turn + 1
            await self._log.write(("session:input", {"turn": turn, "text": text}))
        result = await self._turn(approved=False)
        if (
            result.report is not None
            and result.report.kind == BudgetExceeded.kind
            and self._agent.plan.limits.on_exceed == "pause_for_approval"
            and await self._approves_spending(result.report)
        ):
            await self._log.write(("session:retried", {"turn": self.state.turn}))
            result = await self._turn(approved=True)
        return result

    async def _turn(self, *, approved: bool) -> TurnResult:
        """One attempt at the latest turn. However it ends, its end is recorded and no tool call stays open."""
        import asyncio

        from failwell.workflows.agent_steps.answers import late_answer, scene_of, turn_report

        request = self._agent.request(
            self.id, self.state.turn, folder=self._working_folder, approved=approved
        )
        scene, timeout = scene_of(request), request.call["timeout"]
        recorder: SessionRecorder | None = None
        try:
            with ScopeBlock("turn", self.id, self._scope) as self._turn_scope:
                async with asyncio.timeout(timeout):
                    recorder = SessionRecorder(self._log, self._once, on_text=self._on_text)
                    text = await self._answer(request, recorder)
        except Cancellation as fault:
            return await self._cancelled(fault, recorder)
        except asyncio.CancelledError:
            await self._cancelled(self._turn_fault(), recorder)
            raise
        except TimeoutError as error:
            return await self._failed(late_answer(request, timeout, error, scene).report, recorder)
        except Exception as error:
            # Whatever a model, its SDK or a tool raises ends the turn and not the session. Where the journal
            # refuses, nothing can be recorded, not even this failure.
            if self._log.failure is not None:
                raise self._log.failure from error
            return await self._failed(turn_report(error, scene), recorder)
        finally:
            self._turn_scope = None
        assert recorder is not None
        await self._log.write(("session:turn_ended", {"turn": self.state.turn, "used": recorder.used()}))
        return self._result("answered", text=text)

    async def _answer(self, request: "Request", recorder: SessionRecorder) -> str:
        from failwell.agents.turn import Turn
        from failwell.workflows.agent_steps.answers import system_text
        from failwell.workflows.agent_steps.kit import agent_kit
        from failwell.workflows.agent_steps.step_settings import AgentSettings, tool_context

        tools, settings = self._tools(), AgentSettings(request, self._agent.plan)
        is_raw = settings.own.get("output_mode") == "raw"
        kit = agent_kit(settings.own, self._agent.plan)
        recorder.turn = turn = Turn(
            await self._agents.chain(request, tools, settings),
            await self._agents.dispatcher(
                request, tools, settings, self._approver(request), once=self._once, servers=kit.servers
            ),
            tool_context(request, tools, settings),
            most_calls=settings.most_calls,
            max_tokens=settings.own.get("max_tokens"),
            longest=settings.own.get("max_session_seconds"),
            cancel=self._turn_scope,
            recorder=recorder,
        )
        system = system_text(request, is_raw, kit.skill_text)
        text = await turn.run(None, system=system, history=self.state.messages(system))
        if request.node.output is not None and not is_raw:
            _check_output(request, text)
        return text

    # -------------------------------------------------------------- ends of a turn

    async def _cancelled(self, fault: Cancellation, recorder: SessionRecorder | None) -> TurnResult:
        from failwell.adapters.describe import describe

        await self._log.close_calls(CANCELLED)
        used = {} if recorder is None else {"used": recorder.used()}
        details = dict(fault.details or {})
        await self._log.write(
            (
                "session:turn_cancelled",
                {
                    "turn": self.state.turn,
                    "kind": fault.kind,
                    "reason": details.get("reason", "user"),
                    **used,
                },
            )
        )
        return self._result("cancelled", report=describe(fault))

    async def _failed(self, report: ErrorReport, recorder: SessionRecorder | None) -> TurnResult:
        from dataclasses import replace

        scene = Scene(session=self.id, turn=str(self.state.turn), node=self._agent.node.name)
        report = replace(report, scene=scene)
        await self._log.close_calls(INTERRUPTED, not_run=_unapproved_tool(report, self._agent.node.name))
        used = {} if recorder is None else {"used": recorder.used()}
        await self._log.write(
            (
                "session:turn_failed",
                {"turn": self.state.turn, "kind": report.kind, "report": report.to_dict(), **used},
            )
        )
        return self._result("halted" if report.kind == InteractionRequired.kind else "failed", report=report)

    def _result(self, status: Outcome, *, text: str = "", report: ErrorReport | None = None) -> TurnResult:
        return TurnResult(
            status=status,
            turn=self.state.turn,
            text=text,
            report=report,
            used=self.state.used.get(self.state.turn),
        )

    def _turn_fault(self) -> Cancellation:
        return Cancellation(kind="cancel.turn", details={"reason": "parent"})

    # -------------------------------------------------------------- what a turn needs

    def _tools(self) -> "Tools":
        from failwell.workflows.running.executor import Tools

        return Tools(
            plan=self._agent.plan,
            run_folder=self._folder,
            secret=_no_secret,
            budget=self._budget,
            grace=_GRACE,
        )

    def _open_budget(self) -> SharedBudget | None:
        from failwell.calls.budget import Budget

        limits = self._agent.plan.limits
        if limits.budget_usd is None or limits.on_exceed == "warn":
            return None
        budget = Budget(usd=limits.budget_usd, unpriced=limits.unpriced)
        return SharedBudget(budget, cost=self.state.total.cost or 0)

    def _approver(self, request: "Request") -> "Approver":
        """Asks a person whether a tool may be called. Where nobody can be asked, the turn halts."""
        from failwell.workflows.agent_steps.executor import tool_approver

        return tool_approver(lambda: self._questions, request, {"session": self.id, "turn": self.state.turn})

    async def _approves_spending(self, report: ErrorReport) -> bool:
        from failwell.agents.people.requests import Answer, Approve

        request = Approve(
            text="the budget of this session is spent; make the call nevertheless?",
            details={"why": report.message},
            scope={"session": self.id, "turn": self.state.turn},
        )
        try:
            reply = await self._questions.ask(request)
        except InteractionRequired:
            return False
        return isinstance(reply, Answer) and reply.value is True

    # -------------------------------------------------------------- end

    async def close(self, reason: str = "exit") -> None:
        """End the session in this process: a running turn is cancelled, inputs that wait are rejected. It can be resumed."""
        if self._is_closed:
            return
        self._is_closed = True
        self._scope.cancel()
        try:
            if self._worker is not None:
                await self._worker
            while self._pending:
                _reject(self._pending.popleft()[1], self._scope.fault())
            if self._log.failure is None:
                await self._log.write(("session:closed", {"reason": reason}))
        finally:
            try:
                await self._agents.close(_GRACE)
            finally:
                self._lock.release()
                self._store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, cls: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close("exit" if error is None else "error")


def _reject(future: "Future[Any]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
        # Whoever sent it may be gone; an error that nobody reads is no news.
        future.exception()


def _check_output(request: "Request", text: str) -> None:
    """Refuse an answer that is not as the agent declares it.

    Raises:
        Fault: `internal.schema_violation`.
    """
    from failwell.adapters.revival import revive
    from failwell.workflows.agent_steps.answers import checked, object_in, scene_of, schema_violation
    from failwell.workflows.failure import Failure
    from failwell.workflows.output_schemas import OutputSchemas

    scene = scene_of(request)
    value, reason = object_in(text)
    result = (
        schema_violation(request, reason, {"result": text}, scene)
        if value is None
        else checked(request, value, OutputSchemas(), scene)
    )
    if isinstance(result, Failure):
        raise revive(result.report)


def _no_secret(reference: str) -> str:
    raise LookupError(f"a session has no secret inputs, and `{reference}` is one")


def _unapproved_tool(report: ErrorReport, agent: str) -> str | None:
    """The tool of the agent that was not run, because nobody could be asked about it."""
    match dict(report.details):
        case {"question": {"type": "approve" | "grant", "scope": {"node": node, "tool": str(tool)}}} if (
            report.kind == InteractionRequired.kind and node == agent
        ):
            return tool
        case _:
            return None
