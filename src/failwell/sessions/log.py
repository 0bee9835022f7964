"""Writes the events of a session: to the journal first, then to whoever watches."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from failwell.agents.message_repair import INTERRUPTED, interrupted_result
from failwell.agents.turn import TurnRecorder
from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.delivery.plain_text import json_text
from failwell.errors.fault import Fault
from failwell.sessions.history import OpenCall, SessionState, Usage, write_message
from failwell.store.event import Event, Fact
from failwell.store.run_store import write_with_retry
from failwell.store.sqlite.run_store import SqliteStore
from failwell.workflows.running.audit import call_audited_hook

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse, ToolCallPart

    from failwell.agents.tool_calls import OnceCalls, ToolOutcome
    from failwell.agents.turn import Turn

OnEvent = Callable[[Event], object]
_T = TypeVar("_T")
CANCELLED = "cancel.tool"
"""The kind of the result of a call that was cancelled."""
_AUDITED = ("turn", "provider", "model", "call", "tool", "kind", "reason", "may_have_run", "changes", "used")
"""What the audit holds of an event. What people, models and tools said is in the session alone."""


class SessionLog:
    """The events of one session, and the state that they add up to.

    Args:
        store: The journal.
        session: The id.
        state: What the recorded events add up to.
        clock: Tells the time, and waits between two writes of the journal.
        watchers: Called with each event after it was written.
    """

    def __init__(
        self,
        store: SqliteStore,
        session: str,
        state: SessionState,
        *,
        clock: Clock = SYSTEM_CLOCK,
        watchers: Sequence[OnEvent] = (),
    ) -> None:
        self._store = store
        self.session = session
        self.state = state
        self._clock = clock
        self._watchers = tuple(watchers)
        self.failure: Fault | None = None
        """Why nothing more is written: the journal refused, also after all attempts."""

    def now(self) -> float:
        """Seconds since 1970."""
        return self._clock.now().timestamp()

    async def write(self, *facts: tuple[str, dict[str, Any]]) -> None:
        """Record facts in one transaction, and pass them on.

        The journal is tried three times, after waits of 2 and 4 s. Then the session has failed: what was recorded
        before is whole, and nothing is added.

        Raises:
            Fault: the journal refuses.
        """
        if self.failure is not None:
            raise self.failure
        now = self.now()
        rows: list[Fact] = [(type_, now, data) for type_, data in facts]
        try:
            for type_, data in filter(_is_audited, facts):
                await write_with_retry(lambda: self._announce(type_, data), self._clock)  # noqa: B023
            events = await write_with_retry(lambda: self._store.append(self.session, rows), self._clock)
        except Fault as fault:
            self.failure = fault
            raise
        self.accept(events)

    def _announce(self, type_: str, data: Mapping[str, Any]) -> None:
        """Write to the audit what is about to happen, without what was said."""
        self._store.audit.append(
            type_, {key: data[key] for key in _AUDITED if data.get(key) is not None}, run=self.session
        )

    def accept(self, events: Sequence[Event]) -> None:
        """Add recorded events to the state, and pass them on."""
        self.state.fold(events)
        for event in events:
            for watcher in self._watchers:
                self.call(watcher, event)

    def call(self, watcher: Callable[[_T], object], value: _T) -> None:
        """Call whoever watches. What they raise changes nothing, and is recorded."""
        call_audited_hook(self._store, self.session, watcher, value, "a watcher of a session failed")

    async def close_calls(self, kind: str, *, not_run: str | None = None) -> list[str]:
        """Give every open tool call a result that says why there is none; the ids of the calls.

        Args:
            kind: Why there is none.
            not_run: A tool that was never run, although its call had begun: nobody approved it.
        """
        calls = list(self.state.open_calls.values())
        if calls:
            facts = [self._closed(call, kind, call.is_started and call.tool != not_run) for call in calls]
            await self.write(*(("session:tool_ended", fact) for fact in facts))
        return [call.id for call in calls]

    def _closed(self, call: OpenCall, kind: str, may_have_run: bool) -> dict[str, Any]:
        result = (
            interrupted_result(call.tool, may_have_run=may_have_run)
            if kind == INTERRUPTED
            else json_text({"error": _cancelled_call(call)})
        )
        return {
            "turn": self.state.turn,
            "call": call.id,
            "tool": call.tool,
            "kind": kind,
            "result": result,
            "may_have_run": may_have_run,
        }


def _is_audited(fact: tuple[str, Mapping[str, Any]]) -> bool:
    """Whether the audit does not hold it anyway: a turn records its own calls of models and tools."""
    type_, data = fact
    if type_ == "session:tool_ended":
        return "may_have_run" in data
    return type_ not in ("session:tool_started", "session:turn_ended", "session:turn_failed")


def _cancelled_call(call: OpenCall) -> dict[str, Any]:
    from failwell.errors.kind_registry import kind

    known = kind(CANCELLED)
    return {
        "kind": CANCELLED,
        "title": known.title,
        "category": known.category.value,
        "retryable": False,
        "advice": "The user cancelled the turn. Do not repeat the call unless the user asks for it.",
        "context": {"tool": call.tool, "may_have_run": call.is_started},
    }


class SessionRecorder(TurnRecorder):
    """Writes one turn as it happens."""

    def __init__(
        self,
        log: SessionLog,
        once: "OnceCalls",
        *,
        on_text: Callable[[str], object] | None = None,
    ) -> None:
        self._log = log
        self._once = once
        self._on_text = on_text
        self._before = dict(once.succeeded)
        self._base = log.state.used.get(log.state.turn, Usage())
        self.turn: Turn | None = None
        """The turn, once it is open."""

    def used(self) -> dict[str, Any]:
        """What the turn used so far, in all its attempts."""
        turn = self.turn
        used = self._base if turn is None else self._base.plus(turn.tokens, turn.cost)
        return used.to_dict()

    async def show(self, piece: str) -> None:
        """Pass a piece of text on."""
        if self._on_text is not None:
            self._log.call(self._on_text, piece)

    async def answered(self, response: "ModelResponse") -> None:
        """Write the answer, before its calls are run."""
        assert self.turn is not None
        provider, model = self.turn.served_by or ("", "")
        await self._log.write(
            (
                "session:answered",
                {
                    "turn": self._log.state.turn,
                    "provider": provider,
                    "model": model,
                    "message": write_message(response),
                    "used": self.used(),
                },
            )
        )

    async def calling(self, call: "ToolCallPart") -> None:
        """Write that a tool is called, before it is."""
        self._before = dict(self._once.succeeded)
        data = {"turn": self._log.state.turn, "call": call.tool_call_id, "tool": call.tool_name}
        await self._log.write(("session:tool_started", data))

    async def called(self, call: "ToolCallPart", outcome: "ToolOutcome") -> None:
        """Write the result."""
        effects = [key for key, count in self._once.succeeded.items() if count > self._before.get(key, 0)]
        await self._log.write(
            (
                "session:tool_ended",
                {
                    "turn": self._log.state.turn,
                    "call": call.tool_call_id,
                    "tool": call.tool_name,
                    "kind": None if outcome.report is None else outcome.report.kind,
                    "result": outcome.seen,
                    "effects": effects,
                },
            )
        )
