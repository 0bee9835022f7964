"""One turn of the machine: the state it changes, and the facts and commands it has produced."""

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from failwell.adapters.describe import describe
from failwell.errors.axes import Category
from failwell.errors.fault import Fault
from failwell.errors.report import Frame, Scene
from failwell.workflows.failure import Failure, derived_id, moment, node_frame
from failwell.workflows.machine.context import ScopeNames, names_of
from failwell.workflows.machine.fold import apply
from failwell.workflows.machine.messages import Command
from failwell.workflows.machine.run_state import Scope, State, Task
from failwell.workflows.plan import ForEachSpec, Node, ParallelSpec, Plan

Fact = tuple[str, dict[str, Any]]
MAX_FACTS = 256
"""A turn ends after this many facts, so that a long run is recorded and can be cancelled in between."""


class Library(Protocol):
    """The plans of a run, by file."""

    def __getitem__(self, file: str, /) -> Plan: ...
    def __contains__(self, file: object, /) -> bool: ...


class Turn:
    """One move of a run: its state, and the facts and commands that follow from one event."""

    __slots__ = ("_reports", "at", "can_ask", "commands", "facts", "jitter", "pending", "plans", "state")

    def __init__(
        self, state: State, plans: Library, at: float, jitter: float, *, can_ask: bool = False
    ) -> None:
        self.state = state
        self.can_ask = can_ask
        """Whether a person is there to raise a limit."""
        self.plans = plans
        self.at = at
        self.jitter = jitter
        self.facts: list[Fact] = []
        self.commands: list[Command] = []
        self.pending: deque[str] = deque(self.state.owed)
        self._reports: dict[str, dict[str, Any]] = {}

    @property
    def is_full(self) -> bool:
        """Whether the turn has enough facts to be written."""
        return len(self.facts) >= MAX_FACTS

    @property
    def is_closing(self) -> bool:
        """Whether nothing new may start."""
        state = self.state
        return state.cancel is not None or state.ending is not None or state.is_over

    def record(self, kind: str, data: dict[str, Any]) -> None:
        """Record a fact: in the state now, and in the journal before watchers are notified."""
        stored = data
        if "failure" in data:
            failure: Failure = data["failure"]
            stored = {**data, "failure": failure.to_dict(self._reports)}
        self.facts.append((kind, stored))
        apply(self.state, kind, self.at, data)

    def schedule(self, path: str) -> None:
        """Process this scope or group before the turn ends."""
        self.pending.append(path)

    def plan(self, scope: Scope | str) -> Plan:
        """The plan of a scope."""
        record = self.state.scopes[scope] if isinstance(scope, str) else scope
        return self.plans[record.file]

    def node(self, task: Task) -> Node:
        """The node that a task executes."""
        if task.parent is None:
            return self.plan(task.scope).nodes[task.node]
        spec = self.node(self.state.tasks[task.parent]).spec
        if isinstance(spec, ForEachSpec):
            return spec.body
        assert isinstance(spec, ParallelSpec)
        return self.plan(task.scope).nodes[task.node]

    def names(
        self, task: Task, node: Node, extra: Mapping[str, Any] | None = None, *, unrestricted: bool = False
    ) -> ScopeNames:
        """The names that the templates of a task can use. A name of `extra` comes before all others."""
        scope = self.state.scopes[task.scope]
        values: dict[str, Any] = {**self._loops(task), "_attempt": max(task.attempt - 1, 0), **(extra or {})}
        return names_of(self.state, self.plan(scope), scope, node, extra=values, unrestricted=unrestricted)

    def _loops(self, task: Task) -> dict[str, Any]:
        names: dict[str, Any] = {}
        member: Task | None = task
        while member is not None and member.parent is not None:
            above = self.state.tasks.get(member.parent)
            index = member.index
            if above is not None and index is not None:
                spec = self.node(above).spec
                group = self.state.groups.get(member.parent)
                if isinstance(spec, ForEachSpec) and group is not None and group.items is not None:
                    key = {"_key": group.keys[index]} if group.keyed else {}
                    names = {spec.variable: group.items[index], "_index": index, **key, **names}
            member = above
        return names

    def key(self, task: Task) -> str:
        """The idempotency key of an attempt."""
        return f"{self.state.run}/{task.path}/{task.visit}.{task.attempt}"

    def failure(
        self,
        kind: str,
        message: str,
        *,
        task: Task | None = None,
        details: Mapping[str, Any] | None = None,
        typed: bool = False,
        category: Category | None = None,
    ) -> Failure:
        """A failure that the machine itself detected."""
        return Failure.of(
            kind,
            message,
            details=details,
            typed=typed,
            category=category,
            scene=self.scene(task),
            at=moment(self.at),
            error_id=self._error_id(task, kind),
        )

    def failure_of(self, fault: Fault, task: Task | None) -> Failure:
        """The failure for a fault that was raised while a node was prepared or left."""
        report = describe(fault, scene=self.scene(task), at=moment(self.at))
        return Failure(report=replace(report, id=self._error_id(task, report.kind)))

    def _error_id(self, task: Task | None, kind: str) -> str:
        path, attempt = ("", 0) if task is None else (task.path, task.attempt)
        return derived_id(self.at, self.state.run, path, attempt, kind, self.state.seq)

    def frame(self, task: Task, kind: str) -> Frame:
        """The frame that a failure of `kind` gets from the node of `task`."""
        return node_frame(
            workflow=self.plan(task.scope).name,
            node=task.node,
            type=task.type,
            kind=kind,
            visit=task.visit,
            item=task.item,
        )

    def scene(self, task: Task | None) -> Scene:
        """Where in the run something happened."""
        if task is None:
            return Scene(run=self.state.run, workflow=self.plans[self.state.file].name)
        return Scene(
            run=self.state.run,
            workflow=self.plan(task.scope).name,
            node=task.node,
            item=task.item,
            attempt=task.attempt,
        )
