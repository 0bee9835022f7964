"""The state of a run: folded from its facts, and convertible to JSON at any time."""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Self

from failwell.errors.frozen import frozen
from failwell.workflows.failure import Failure

StoredFailure = Failure | Mapping[str, Any]
"""A failure, or its JSON: a failure from a journal is decoded only when it is used."""
TaskStatus = Literal[
    "running", "retrying", "waiting", "gate", "budget", "opening", "child", "group", "failed"
]
ACTIVE: frozenset[str] = frozenset({"running", "opening"})
"""Statuses of tasks that the driver is executing."""


@frozen
class Task:
    """One execution of a node."""

    path: str
    scope: str
    """The path of the scope of the node; empty for the root."""
    node: str
    type: str
    status: TaskStatus
    visit: int
    attempt: int
    started: float
    retries: int = 0
    """How often a route ran it again."""
    route_retries: Mapping[str, int] | None = None
    """The same for each route, by its index in the file."""
    parked: int = 0
    """How often it waited for a time that the server requested; that uses up no attempt."""
    rerun: int = 0
    """How often this attempt was started again after a crash."""
    parent: str | None = None
    """The group that it is a member of."""
    index: int | None = None
    item: str | None = None
    until: float | None = None
    gate: str | None = None
    asked: dict[str, Any] | None = None
    """The question of an open gate."""
    approved: bool = False
    """Whether a person let it start beyond the budget."""
    reserve: float = 0.0
    stored: StoredFailure | None = None
    """The failure, as a record or as the journal holds it."""
    timed_out: bool = False
    """Whether it reached its time limit, and what is below it is being stopped."""
    stage: Mapping[str, Any] | None = None
    """The progress of a stage: its current `phase`, and the results of those before; see `machine.stages`."""

    @property
    def failure(self) -> Failure | None:
        """How it failed, or failed last."""
        return _decoded(self.stored)

    def but(self, **values: Any) -> Self:
        """This task with some values changed."""
        return replace(self, **values)

    def to_dict(self) -> dict[str, Any]:
        """JSON, without what is not set."""
        values = _values(self)
        stored = values.pop("stored")
        values["failure"] = stored.to_dict() if isinstance(stored, Failure) else stored
        return {name: value for name, value in values.items() if value is not None and value is not False}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        values = {**data}
        return cls(stored=values.pop("failure", None), **values)


@dataclass(slots=True)
class Scope:
    """One running workflow: the root, or a sub-workflow."""

    path: str
    file: str
    inputs: dict[str, Any]
    cursor: str | None
    """The current node; `None` after the end."""
    depth: int
    iterations: int = 0
    history: list[str] = field(default_factory=list[str])
    outputs: dict[str, Any] = field(default_factory=dict[str, Any])
    errors: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    visits: dict[str, int] = field(default_factory=dict[str, int])
    output: dict[str, Any] | None = None
    """The output of the last route, if it has one."""
    ended: bool = False
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What stages wrote into the context."""
    later: list[str] = field(default_factory=list[str])
    """Stages that run again after all others (`retry-later`)."""
    late: str | None = None
    """The stage of that queue that is running."""

    @property
    def last(self) -> str | None:
        """The node that ended last."""
        return self.history[-1] if self.history else None

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        return _values(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Scope":
        """The inverse of `to_dict`."""
        return cls(**_copied(data))


@dataclass(slots=True)
class Group:
    """The progress of a parallel group or a `for_each`."""

    path: str
    type: str
    keys: list[str]
    """The members' names, or the items' keys, in order."""
    items: list[Any] | None
    keyed: bool
    """Whether its outputs are a mapping by key instead of a list."""
    next: int = 0
    """The first member that may not have started."""
    active: dict[str, bool] = field(default_factory=dict[str, bool])
    """Paths of the members that are running."""
    results: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """By index: `{"output": …}`, `{"failure": …}` or `{"skipped": reason}`."""
    failures: list[int] = field(default_factory=list[int])
    """Indexes of failed members, in the order of their failures."""
    stopping: bool = False

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        return {**_values(self), "results": {index: _json(result) for index, result in self.results.items()}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Group":
        """The inverse of `to_dict`."""
        return cls(**_copied(data))


@dataclass(slots=True)
class State:
    """The state of a run. The machine writes to it, through facts alone except for what is to be started."""

    run: str = ""
    file: str = ""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    status: str = "new"
    """new, running, completed, failed, cancelled."""
    seq: int = 0
    """How many facts were folded."""
    started: float = 0.0
    begun: float = 0.0
    """When this process started or resumed the run."""
    at: float = 0.0
    active: float = 0.0
    """Seconds of activity before `begun`, for the time limit of the run."""
    limits: dict[str, Any] = field(default_factory=dict[str, Any])
    spent: float = 0.0
    usage: dict[str, int] = field(default_factory=dict[str, int])
    warned: bool = False
    paused: bool = False
    cancel: Mapping[str, Any] | None = None
    ending: Mapping[str, Any] | None = None
    """The failure that ends the run, while what still runs is being stopped."""
    outputs: Any = None
    """The output of a completed run."""
    leaves: int = 0
    """The number of running leaves."""
    owed: list[str] = field(default_factory=list[str])
    """Scopes and groups with something to start. Set by the machine, not by facts."""
    waiting: list[str] = field(default_factory=list[str])
    """Scopes and groups that wait for a free slot."""
    scopes: dict[str, Scope] = field(default_factory=dict[str, Scope])
    groups: dict[str, Group] = field(default_factory=dict[str, Group])
    tasks: dict[str, Task] = field(default_factory=dict[str, Task])

    @property
    def is_over(self) -> bool:
        """Whether the terminal fact was recorded."""
        return self.status in ("completed", "failed", "cancelled")

    def to_dict(self) -> dict[str, Any]:
        """JSON; `from_dict` is its inverse."""
        values = _values(self)
        if self.ending is not None:
            values["ending"] = _json(self.ending)
        for name in ("scopes", "groups", "tasks"):
            values[name] = [record.to_dict() for record in values[name].values()]
        return values

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "State":
        """The inverse of `to_dict`."""
        state = cls(**_copied(data))
        state.scopes = {entry["path"]: Scope.from_dict(entry) for entry in data["scopes"]}
        state.groups = {entry["path"]: Group.from_dict(entry) for entry in data["groups"]}
        state.tasks = {entry["path"]: Task.from_dict(entry) for entry in data["tasks"]}
        return state


def _values(record: Any) -> dict[str, Any]:
    """The fields of a record, with copies of what the machine writes to."""
    return _copied({each.name: getattr(record, each.name) for each in fields(record)})


def _copied(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: copy(value) for name, value in values.items()}


def failure_in(data: Mapping[str, Any]) -> Failure | None:
    """The failure of a member's result or of the run's end."""
    return _decoded(data.get("failure"))


def _decoded(stored: StoredFailure | None) -> Failure | None:
    return stored if stored is None or isinstance(stored, Failure) else Failure.from_dict(stored)


def _json(data: Mapping[str, Any]) -> dict[str, Any]:
    """A result or an end with its failure as JSON."""
    stored: StoredFailure | None = data.get("failure")
    return {**data, "failure": stored.to_dict()} if isinstance(stored, Failure) else {**data}


def item_path(group: str, index: int) -> str:
    """The path of item `index` of a `for_each`."""
    return f"{group}[{index}]"


def below(path: str, name: str) -> str:
    """The path of `name` in the group or sub-workflow at `path`; the root has an empty path."""
    return f"{path}/{name}" if path else name
