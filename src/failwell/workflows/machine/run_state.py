"""The state of a run: folded from its facts, and convertible to JSON at any time.

A state never changes once a turn has returned it. The machine works on a fork (see `cow_map`), in which
records are replaced or copied before they are written to.
"""

from collections.abc import Mapping
from typing import Any, Literal, Self

from failwell.workflows.failure import Failure
from failwell.workflows.machine.cow_map import CowMap

StoredFailure = Failure | Mapping[str, Any]
"""A failure, or its JSON: a failure from a journal is decoded only when it is used."""
TaskStatus = Literal[
    "running", "retrying", "waiting", "gate", "budget", "opening", "child", "group", "failed"
]
ACTIVE: frozenset[str] = frozenset({"running", "opening"})
"""Statuses of tasks that the driver is executing."""


class Task:
    """One execution of a node. Immutable: `but` returns a changed copy."""

    __slots__ = (
        "approved", "asked", "attempt", "gate", "index", "item", "node", "parent", "parked", "path", "rerun",
        "reserve", "retries", "route_retries", "scope", "stage", "started", "status", "stored", "timed_out",
        "type", "until", "visit",
    )  # fmt: skip

    path: str
    scope: str
    """The path of the scope of the node; empty for the root."""
    node: str
    type: str
    status: TaskStatus
    visit: int
    attempt: int
    retries: int
    """How often a route ran it again."""
    route_retries: Mapping[str, int] | None
    """The same for each route, by its index in the file."""
    parked: int
    """How often it waited for a time that the server requested; that uses up no attempt."""
    rerun: int
    """How often this attempt was started again after a crash."""
    started: float
    parent: str | None
    """The group that it is a member of."""
    index: int | None
    item: str | None
    until: float | None
    gate: str | None
    asked: dict[str, Any] | None
    """The question of an open gate."""
    approved: bool
    """Whether a person let it start beyond the budget."""
    reserve: float
    stored: StoredFailure | None
    """The failure, as a record or as the journal holds it."""
    timed_out: bool
    """Whether it reached its time limit, and what is below it is being stopped."""
    stage: Mapping[str, Any] | None
    """The progress of a stage: its current `phase`, and the results of those before; see `machine.stages`."""

    def __init__(
        self,
        *,
        path: str,
        scope: str,
        node: str,
        type: str,  # noqa: A002  (the name that events have for it)
        status: TaskStatus,
        visit: int,
        attempt: int,
        started: float,
        retries: int = 0,
        route_retries: Mapping[str, int] | None = None,
        parked: int = 0,
        rerun: int = 0,
        parent: str | None = None,
        index: int | None = None,
        item: str | None = None,
        until: float | None = None,
        gate: str | None = None,
        asked: dict[str, Any] | None = None,
        approved: bool = False,
        reserve: float = 0.0,
        stored: StoredFailure | None = None,
        timed_out: bool = False,
        stage: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = path
        self.scope = scope
        self.node = node
        self.type = type
        self.status = status
        self.visit = visit
        self.attempt = attempt
        self.started = started
        self.retries = retries
        self.route_retries = route_retries
        self.parked = parked
        self.rerun = rerun
        self.parent = parent
        self.index = index
        self.item = item
        self.until = until
        self.gate = gate
        self.asked = asked
        self.approved = approved
        self.reserve = reserve
        self.stored = stored
        self.timed_out = timed_out
        self.stage = stage

    @property
    def failure(self) -> Failure | None:
        """How it failed, or failed last."""
        stored = self.stored
        if stored is None or isinstance(stored, Failure):
            return stored
        self.stored = failure = Failure.from_dict(stored)
        return failure

    def but(self, **values: Any) -> "Task":
        """This task with some values changed."""
        task = Task.__new__(Task)
        for name in Task.__slots__:
            setattr(task, name, values[name] if name in values else getattr(self, name))
        return task

    def to_dict(self) -> dict[str, Any]:
        """JSON, without what is not set."""
        values = {name: getattr(self, name) for name in Task.__slots__}
        stored = values.pop("stored")
        values["failure"] = stored.to_dict() if isinstance(stored, Failure) else stored
        return {name: value for name, value in values.items() if value is not None and value is not False}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        values = {**data}
        return cls(stored=values.pop("failure", None), **values)


class _Owned:
    """A record that one fork of the state may write to, and the others may not."""

    __slots__ = ("owner",)
    owner: object


class Scope(_Owned):
    """One running workflow: the root, or a sub-workflow."""

    __slots__ = (
        "context",
        "cursor",
        "depth",
        "ended",
        "errors",
        "file",
        "history",
        "inputs",
        "iterations",
        "last",
        "late",
        "later",
        "output",
        "outputs",
        "path",
        "visits",
    )  # fmt: skip

    def __init__(self, path: str, file: str, inputs: dict[str, Any], cursor: str | None, depth: int) -> None:
        self.owner: object = None
        self.path = path
        self.file = file
        self.inputs = inputs
        self.cursor = cursor
        """The current node; `None` after the end."""
        self.depth = depth
        self.iterations = 0
        self.last: str | None = None
        self.history: tuple[list[str], int] = ([], 0)
        """A shared list and the number of its entries that count, so that a fork does not copy it."""
        self.outputs: CowMap[Any] = CowMap()
        self.errors: CowMap[dict[str, Any]] = CowMap()
        self.visits: CowMap[int] = CowMap()
        self.output: dict[str, Any] | None = None
        """The output of the last route, if it has one."""
        self.ended = False
        self.context: Mapping[str, Any] = {}
        """What stages wrote into the context."""
        self.later: tuple[str, ...] = ()
        """Stages that run again after all others (`retry-later`)."""
        self.late: str | None = None
        """The stage of that queue that is running."""

    def fork(self, owner: object) -> "Scope":
        """The same, to be written to by `owner`."""
        fork = Scope.__new__(Scope)
        for name in Scope.__slots__:
            setattr(fork, name, getattr(self, name))
        fork.owner = owner
        fork.outputs, fork.errors, fork.visits = self.outputs.fork(), self.errors.fork(), self.visits.fork()
        return fork

    def remember(self, node: str) -> None:
        """Add to the history."""
        names, count = self.history
        if len(names) != count:
            names = names[:count]
        names.append(node)
        self.history = (names, count + 1)
        self.last = node

    @property
    def past(self) -> list[str]:
        """A copy of the history."""
        names, count = self.history
        return names[:count]

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        return {
            "path": self.path, "file": self.file, "inputs": self.inputs, "cursor": self.cursor,
            "depth": self.depth, "iterations": self.iterations, "last": self.last, "history": self.past,
            "outputs": dict(self.outputs.items()), "errors": dict(self.errors.items()),
            "visits": dict(self.visits.items()), "output": self.output, "ended": self.ended,
            **({"context": self.context} if self.context else {}),
            **({"later": list(self.later), "late": self.late} if self.later or self.late else {}),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Scope":
        """The inverse of `to_dict`."""
        scope = cls(data["path"], data["file"], data["inputs"], data["cursor"], data["depth"])
        scope.iterations, scope.last, scope.output = data["iterations"], data["last"], data["output"]
        scope.ended = data["ended"]
        scope.context = data.get("context", {})
        scope.later, scope.late = tuple(data.get("later", ())), data.get("late")
        scope.history = (list(data["history"]), len(data["history"]))
        scope.outputs.update(data["outputs"])
        scope.errors.update(data.get("errors", {}))
        scope.visits.update(data["visits"])
        return scope


class Group(_Owned):
    """The progress of a parallel group or a `for_each`."""

    __slots__ = (
        "active",
        "failures",
        "items",
        "keyed",
        "keys",
        "next",
        "path",
        "results",
        "stopping",
        "type",
    )

    def __init__(
        self, path: str, kind: str, keys: list[str], items: list[Any] | None, *, keyed: bool
    ) -> None:
        self.owner: object = None
        self.path = path
        self.type = kind
        self.keys = keys
        """The members' names, or the items' keys, in order."""
        self.items = items
        self.keyed = keyed
        """Whether its outputs are a mapping by key instead of a list."""
        self.next = 0
        """The first member that may not have started."""
        self.active: CowMap[bool] = CowMap()
        """Paths of the members that are running."""
        self.results: CowMap[dict[str, Any]] = CowMap()
        """By index: `{"output": …}`, `{"failure": …}` or `{"skipped": reason}`."""
        self.failures: tuple[int, ...] = ()
        """Indexes of failed members, in the order of their failures."""
        self.stopping = False

    def fork(self, owner: object) -> "Group":
        """The same, to be written to by `owner`."""
        fork = Group.__new__(Group)
        for name in Group.__slots__:
            setattr(fork, name, getattr(self, name))
        fork.owner = owner
        fork.results, fork.active = self.results.fork(), self.active.fork()
        return fork

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        return {
            "path": self.path, "type": self.type, "keys": self.keys, "items": self.items, "keyed": self.keyed, "next": self.next,
            "active": list(self.active), "results": {index: _json(result) for index, result in self.results.items()},
            "failures": list(self.failures), "stopping": self.stopping,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Group":
        """The inverse of `to_dict`."""
        group = cls(data["path"], data["type"], list(data["keys"]), data["items"], keyed=data["keyed"])
        group.next, group.stopping = data["next"], data["stopping"]
        group.failures = tuple(data["failures"])
        group.active = CowMap(dict.fromkeys(data["active"], True))
        group.results = CowMap(dict(data["results"]))
        return group


class State:
    """The state of a run."""

    __slots__ = (
        "active", "at", "begun", "cancel", "ending", "file", "groups", "leaves", "limits", "metadata", "outputs", "owed",
        "paused", "run", "scopes", "seq", "spent", "started", "status", "tasks", "token", "usage", "waiting",
        "warned",
    )  # fmt: skip

    def __init__(self) -> None:
        self.token: object = object()
        self.run = ""
        self.file = ""
        self.metadata: dict[str, Any] = {}
        self.status = "new"
        """new, running, completed, failed, cancelled."""
        self.seq = 0
        """How many facts were folded."""
        self.started = 0.0
        self.begun = 0.0
        """When this process started or resumed the run."""
        self.at = 0.0
        self.active = 0.0
        """Seconds of activity before `begun`, for the time limit of the run."""
        self.limits: dict[str, Any] = {}
        self.spent = 0.0
        self.usage: dict[str, int] = {}
        self.warned = False
        self.paused = False
        self.cancel: dict[str, Any] | None = None
        self.ending: dict[str, Any] | None = None
        """The failure that ends the run, while what still runs is being stopped."""
        self.outputs: Any = None
        """The output of a completed run."""
        self.leaves = 0
        """The number of running leaves."""
        self.owed: list[str] = []
        """Scopes and groups with something to start. Set by the machine, not by facts."""
        self.waiting: list[str] = []
        """Scopes and groups that wait for a free slot."""
        self.scopes: CowMap[Scope] = CowMap()
        self.groups: CowMap[Group] = CowMap()
        self.tasks: CowMap[Task] = CowMap()

    def fork(self) -> "State":
        """A state to write to; this one stays as it is."""
        fork = State.__new__(State)
        for name in State.__slots__:
            setattr(fork, name, getattr(self, name))
        fork.token = object()
        fork.owed, fork.waiting = list(self.owed), list(self.waiting)
        fork.scopes, fork.groups, fork.tasks = self.scopes.fork(), self.groups.fork(), self.tasks.fork()
        return fork

    def scope(self, path: str) -> Scope:
        """The scope at `path`, to write to."""
        scope = self.scopes[path]
        if scope.owner is not self.token:
            scope = self.scopes[path] = scope.fork(self.token)
        return scope

    def group(self, path: str) -> Group:
        """The group at `path`, to write to."""
        group = self.groups[path]
        if group.owner is not self.token:
            group = self.groups[path] = group.fork(self.token)
        return group

    @property
    def is_over(self) -> bool:
        """Whether the terminal fact was recorded."""
        return self.status in ("completed", "failed", "cancelled")

    def to_dict(self) -> dict[str, Any]:
        """JSON; `from_dict` is its inverse."""
        values = {name: getattr(self, name) for name in _PLAIN}
        if self.ending is not None:
            values["ending"] = _json(self.ending)
        return {
            **values,
            "scopes": [scope.to_dict() for scope in self.scopes.values()],
            "groups": [group.to_dict() for group in self.groups.values()],
            "tasks": [task.to_dict() for task in self.tasks.values()],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "State":
        """The inverse of `to_dict`."""
        state = cls()
        for name in _PLAIN:
            setattr(state, name, data[name])
        state.scopes = CowMap({entry["path"]: Scope.from_dict(entry) for entry in data["scopes"]})
        state.groups = CowMap({entry["path"]: Group.from_dict(entry) for entry in data["groups"]})
        state.tasks = CowMap({entry["path"]: Task.from_dict(entry) for entry in data["tasks"]})
        return state


_PLAIN = (
    "active", "at", "begun", "cancel", "ending", "file", "leaves", "limits", "metadata", "outputs", "owed", "paused", "run",
    "seq", "spent", "started", "status", "usage", "waiting", "warned",
)  # fmt: skip


def failure_in(data: Mapping[str, Any]) -> Failure | None:
    """The failure of a member's result or of the run's end."""
    stored: StoredFailure | None = data.get("failure")
    if stored is None or isinstance(stored, Failure):
        return stored
    return Failure.from_dict(stored)


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
