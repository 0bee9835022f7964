"""A world for the machine that is made of tables: what leaves answer, what people say, what time it is.

Every turn is checked as it is taken: the state before is untouched, the facts alone fold to the state
after, and that state survives JSON.
"""

import heapq
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from failwell.errors.axes import Category
from failwell.workflows.failure import Failure
from failwell.workflows.machine.advance import Machine, revive
from failwell.workflows.machine.fold import fold
from failwell.workflows.machine.messages import (
    Answered,
    Ask,
    Begin,
    Cancel,
    CancelTimer,
    Command,
    Done,
    Event,
    Failed,
    Idle,
    Open,
    Opened,
    Request,
    Resume,
    SetTimer,
    Stop,
    Stopped,
    Tick,
    TimerFired,
)
from failwell.workflows.machine.messages import Continue as MoreToDo
from failwell.workflows.machine.run_state import State
from failwell.workflows.plan import Plan

Answer = Callable[[Request], Event]


def same(state: State) -> str:
    """A state as text, in which only what it says counts and not the order it was written in."""
    told = state.to_dict()
    for name in ("scopes", "groups", "tasks"):
        told[name] = sorted(told[name], key=lambda one: one["path"])
    for group in told["groups"]:
        group["active"] = sorted(group["active"])
    return json.dumps(told, sort_keys=True)


@dataclass
class Fails:
    """A leaf's answer: it failed."""

    kind: str
    message: str
    output: Any
    category: str | None
    more: dict[str, Any]


@dataclass
class Used:
    """A leaf's answer: it went well and cost something."""

    output: Any
    usage: dict[str, Any]


def fails(
    kind: str = "external.x",
    *,
    message: str = "m",
    output: Any = None,
    category: str | None = None,
    **more: Any,
) -> Fails:
    """A leaf's answer: it failed."""
    return Fails(kind, message, output, category, {"typed": True, **more})


class _EnoughTurns(Exception):
    pass


class Stage:
    """One run, played out."""

    def __init__(
        self,
        plan: Plan,
        answers: Mapping[str, Iterable[Any]] | None = None,
        *,
        others: Iterable[Plan] = (),
        takes: Mapping[str, float] | None = None,
        is_careful: bool = True,
    ) -> None:
        self.plans = {one.file: one for one in (plan, *others)}
        self.plan = plan
        self.machine = Machine(self.plans)
        self.state = State()
        self.facts: list[tuple[str, float, dict[str, Any]]] = []
        self.started: list[Request] = []
        self.asked: list[Mapping[str, Any]] = []
        self.idle: Idle | None = None
        self.now = 1_000_000.0
        self.most_at_once = 0
        self._answers = {path: list(given) for path, given in (answers or {}).items()}
        self._takes = takes or {}
        self._running: set[str] = set()
        self._agenda: list[tuple[float, int, Event]] = []
        self._timers: dict[str, float] = {}
        self._count = 0
        self._is_careful = is_careful
        self._turns_left: int | None = None

    def begin(self, **inputs: Any) -> "Stage":
        """Start the run and play until nothing is left to happen."""
        return self.play(Begin(at=self.now, run="run1", file=self.plan.file, inputs=inputs))

    def play(self, *events: Event) -> "Stage":
        """Feed events, then let time pass until nothing is left to happen."""
        for event in events:
            self._feed(event)
        while self._agenda:
            at, _, event = heapq.heappop(self._agenda)
            if isinstance(event, TimerFired) and self._timers.get(event.timer) != event.at:
                continue
            if isinstance(event, (Done, Failed)) and event.path not in self._running:
                continue
            self.now = max(self.now, at)
            self._feed(event)
        return self

    def play_some(self, turns: int, *events: Event) -> "Stage":
        """Play, and stop dead after so many turns, as a host that is killed does."""
        self._turns_left = turns
        try:
            return self.play(*events)
        except _EnoughTurns:
            return self
        finally:
            self._turns_left = None

    def feed(self, event: Event) -> list[Command]:
        """One event and nothing more; what it asks for comes back undone."""
        return self._step(event)

    def later(self, seconds: float, make: Callable[[float], Event]) -> "Stage":
        """Let something happen from outside, `seconds` from now."""
        self._plan_in(seconds, make(self.now + seconds))
        return self

    def answer(self, gate: str, decision: str, **more: Any) -> "Stage":
        """Somebody answers a gate."""
        return self.play(Answered(at=self.now, gate=gate, decision=decision, by="ada", **more))

    def crash_and_resume(self) -> "Stage":
        """Forget everything but the facts, and take the run up again."""
        self.crash()
        return self.play(Resume(at=self.now))

    def crash_and_resume_for(self, turns: int) -> "Stage":
        """The same, and stop dead again after so many turns."""
        self.crash()
        return self.play_some(turns, Resume(at=self.now))

    def crash(self) -> None:
        """Forget everything but the facts."""
        self._agenda, self._timers, self._running = [], {}, set()
        self.state = fold(self.facts)
        self.now += 5

    def go_on(self, **more: Any) -> "Stage":
        """A run that ended badly is continued by another one."""
        following = Stage(self.plan, others=self.plans.values(), takes=self._takes)
        following._answers = self._answers
        following.now = self.now + 5
        state = State.from_dict(self.state.to_dict())
        revive(state)
        continued = {"run": "run1", "seq": state.seq}
        begin = Begin(
            at=following.now,
            run="run2",
            file=self.plan.file,
            inputs={},
            continues=continued,
            state=json.loads(json.dumps(state.to_dict())),
        )
        return following.play(begin)

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The data of the facts of one type."""
        return [data for name, _, data in self.facts if name == kind]

    @property
    def types(self) -> list[str]:
        """The types of all facts, in order."""
        return [name for name, _, _ in self.facts]

    @property
    def armed(self) -> list[str]:
        """The timers that would still fire."""
        return [timer for timer, at in self._timers.items() if at > self.now]

    @property
    def ran(self) -> list[str]:
        """The paths of the leaves that were started, in order."""
        return [request.path for request in self.started]

    def _feed(self, event: Event) -> None:
        if isinstance(event, (Done, Failed, Stopped)):
            self._running.discard(event.path)
        for command in self._step(event):
            self._obey(command)

    def _step(self, event: Event) -> list[Command]:
        if self._turns_left is not None:
            if not self._turns_left:
                raise _EnoughTurns
            self._turns_left -= 1
        before = State.from_dict(self.state.to_dict()) if self._is_careful else self.state
        step = self.machine.advance(self.state, event)
        facts = [(kind, event.at, data) for kind, data in step.facts]
        if self._is_careful:
            folded = fold(facts, before)
            folded.owed, folded.waiting = list(self.state.owed), list(self.state.waiting)
            assert same(folded) == same(self.state), "the facts alone do not give the state"
            assert same(State.from_dict(json.loads(json.dumps(folded.to_dict())))) == same(folded)
        self.facts.extend(facts)
        return step.commands

    def _obey(self, command: Command) -> None:
        match command:
            case Request():
                self._start(command)
            case Stop(path=path):
                self._running.discard(path)
                self._plan_in(0.0, Stopped(at=self.now, path=path))
            case SetTimer(timer=timer, at=at):
                self._timers[timer] = at
                self._plan_in(max(0.0, at - self.now), TimerFired(at=at, timer=timer))
            case CancelTimer(timer=timer):
                self._timers.pop(timer, None)
            case Open(path=path, file=file):
                self._plan_in(0.0, Opened(at=self.now, path=path, file=file))
            case Ask(question=question):
                self.asked.append(question)
            case Idle():
                self.idle = command
            case MoreToDo():
                self._plan_in(0.0, Tick(at=self.now))
            case _:
                pass

    def _start(self, request: Request) -> None:
        self.started.append(request)
        self._running.add(request.path)
        self.most_at_once = max(self.most_at_once, len(self._running))
        given = self._answers.get(request.path)
        answer: Any = given.pop(0) if given else {"ok": request.node.name}
        if answer == "never":
            return
        takes = self._takes.get(request.path, 1.0)
        self._plan_in(takes, self._event(request, answer, self.now + takes))

    def _event(self, request: Request, answer: Any, at: float) -> Event:
        path = request.path
        if isinstance(answer, Used):
            return Done(at=at, path=path, output=answer.output, usage=answer.usage)
        if not isinstance(answer, Fails):
            return Done(at=at, path=path, output=answer)
        declared = self.plan.kinds.get(answer.kind)
        category = answer.category or (None if declared is None else declared.category)
        failed = Failure.of(
            answer.kind,
            answer.message,
            category=None if category is None else Category(category),
            **{name: value for name, value in answer.more.items() if name != "attempts"},
        )
        if "attempts" in answer.more:
            failed = replace(failed, report=replace(failed.report, attempts=answer.more["attempts"]))
        if answer.output is not None:
            failed = replace(failed, output=answer.output)
        return Failed(at=at, path=path, failure=failed)

    def _plan_in(self, seconds: float, event: Event) -> None:
        self._count += 1
        heapq.heappush(self._agenda, (self.now + seconds, self._count, event))


def cancel(at: float) -> Cancel:
    """Somebody cancels the run."""
    return Cancel(at=at, reason="user", by="ada")
