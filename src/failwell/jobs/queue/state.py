"""What the parts of a queue share: its jobs, what runs, and its rules."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from failwell.adapters.describe import describe
from failwell.calls.policy import Match, Policy, Rule
from failwell.errors.context import merge
from failwell.errors.fault import Fault
from failwell.errors.frozen import frozen
from failwell.errors.report import ErrorReport, Scene
from failwell.jobs.memory.book import Book
from failwell.jobs.memory.shared_ledger import SharedLedger
from failwell.jobs.queue.entry import Entry
from failwell.jobs.queue.order import Instance, Line, Recent
from failwell.jobs.store.records import Host
from failwell.jobs.store.sqlite import JobStore
from failwell.jobs.workers.death import kept_report

DEFAULT = Policy(
    name="jobs",
    rules=(
        Rule(
            match=Match.of("worker.timeout"),
            retryable=False,
            name="a job that took too long would take as long again",
        ),
    ),
)


@frozen
class Rules:
    """How a queue behaves."""

    lanes: int = 4
    """Jobs that run at a time, over all instances."""
    policy: Policy = DEFAULT
    age: float = 60.0
    """Seconds of waiting that outweigh one step of priority."""
    starving: float = 30.0
    """Seconds after which no job may overtake one that waits for memory."""
    long: float = 300.0
    """Seconds after which a running job is not expected to end soon: the others do not stand back for a job that
    waits for its memory."""
    rescan: float = 1.0
    """Seconds between two looks at the machine while a job waits for memory."""
    calm: float = 15.0
    """Seconds between two evictions for the same job."""
    history: int = 100
    """Ended jobs that are kept in memory; all are in the store."""
    patience: float = 5.0
    """Seconds that a store may be unavailable before submits are refused."""


_STEP = 1.0
"""A change of the wall clock by more seconds than this was set by hand."""
_PAUSE = 1.0
"""Seconds between two searches for an instance that is not known."""


class QueueState:
    """The state of one queue. Only the thread of its event loop uses it."""

    def __init__(
        self,
        store: JobStore,
        host: Host,
        book: Book,
        rules: Rules,
        instances: Mapping[str, Instance],
        finder: Callable[[str], Instance | None],
        known: Callable[[], Collection[str]],
        now: Callable[[], float],
        jitter: Callable[[], float],
        turn: Callable[[], None],
    ) -> None:
        self.store = store
        self.host = host
        self.peers: Sequence[Host] = ()
        """The other live hosts, at the last look."""
        self.book = book
        self.shared_ledger = SharedLedger(store, host, book)
        self.rules = rules
        self.instances = instances
        self.now = now
        self.jitter = jitter
        self.loop = asyncio.get_running_loop()
        self._began = now() - self.loop.time()
        self._shift = 0.0
        self.line = Line(rules.age)
        self.live: dict[str, Entry] = {}
        """Jobs that have not ended, or whose end is not recorded."""
        self.recent = Recent(rules.history)
        self.once: dict[str, Entry] = {}
        """Idempotency key → its job, while it lives."""
        self.running = 0
        self.idle: asyncio.Future[None] | None = None
        """Done when nothing runs any more."""
        self.is_paused = False
        self.is_stopping = False
        self.tasks: set[asyncio.Task[Any]] = set()
        self._finder = finder
        self._known = known
        self._capabilities: frozenset[str] = frozenset()
        """The capabilities that are registered, as of `_known_at`."""
        self._known_at = -_PAUSE
        self._turn = turn
        self._turn_is_due = False
        self._turn_is_scheduled = False
        self._numbers = 0
        self._missed: dict[str, tuple[float, Fault | None]] = {}
        """Instance → when it was not found, and why, if that is known."""

    def steady(self) -> float:
        """The time by the monotonic clock, starting with the wall clock at the start of the host."""
        return self._began + self.loop.time()

    def since(self, submitted: float) -> float:
        """When a job was submitted, by the steady clock."""
        steady = self.steady()
        shift = steady - self.now()
        if abs(shift - self._shift) > _STEP:
            self._shift = shift
        return min(submitted + self._shift, steady)

    def wall(self, since: float) -> float:
        """A time of the steady clock by the wall clock."""
        return since - self._shift

    def number(self) -> int:
        """A number that rises with every call."""
        self._numbers += 1
        return self._numbers

    def wake(self) -> None:
        """Schedule a turn after everything that is ready to run; simultaneous changes share one."""
        self._turn_is_due = True
        if not self._turn_is_scheduled:
            self._turn_is_scheduled = True
            self.loop.call_soon(self._look_first)

    def turn(self) -> None:
        """Run a turn now."""
        self._turn_is_due = False
        self._turn()

    def _look_first(self) -> None:
        """Let the loop look for events once more before the turn: answers that have arrived meanwhile share its commit."""
        self.loop.call_soon(self._run_due_turn)

    def _run_due_turn(self) -> None:
        self._turn_is_scheduled = False
        if self._turn_is_due:
            self.turn()

    def spawn(self, work: Any) -> "asyncio.Task[Any]":
        """Start a task that is cancelled when the queue stops."""
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def find_instance(self, name: str) -> Instance | None:
        """The instance, if it is known here.

        Raises:
            CapabilityConfigError: it is known, and what is kept of it cannot be used.
        """
        instance = self.instances.get(name) or self._finder(name)
        if instance is not None:
            self._missed.pop(name, None)
        return instance

    def find_for_job(self, name: str) -> Instance | Fault | None:
        """The instance for a waiting job, or the fault if it cannot be used. A miss is remembered for a moment."""
        instance = self.instances.get(name)
        if instance is not None:
            return instance
        at, why = self._missed.get(name, (-_PAUSE, None))
        if at > self.loop.time() - _PAUSE:
            return why
        try:
            instance = self.find_instance(name)
        except Fault as fault:
            why = fault
        else:
            why = None
        if instance is None:
            self._missed[name] = self.loop.time(), why
        return instance or why

    def has_other_capability(self, name: str) -> bool:
        """Whether a capability is registered or loaded beside `name`. The registry is read once a second at most."""
        if any(instance.manifest.name != name for instance in self.instances.values()):
            return True
        if self._known_at <= self.loop.time() - _PAUSE:
            self._known_at, self._capabilities = self.loop.time(), frozenset(self._known())
        return bool(self._capabilities - {name})

    def running_of(self, capability: str) -> int:
        """How many jobs of a capability run."""
        return sum(
            len(instance.entries)
            for instance in self.instances.values()
            if instance.manifest.name == capability
        )

    def leave(self, entry: Entry, instance: Instance) -> None:
        """Record that a job runs no more."""
        self.running -= 1
        instance.leave(entry)
        if not self.running and self.idle is not None and not self.idle.done():
            self.idle.set_result(None)

    def scene(self, entry: Entry) -> Scene:
        """Where a job belongs, for its report."""
        instance = self.instances.get(entry.request.instance)
        return Scene(
            job=entry.id,
            run=entry.request.run,
            instance=entry.request.instance,
            capability=None if instance is None else instance.manifest.name,
            attempt=entry.attempt or None,
        )

    def described(self, entry: Entry, error: BaseException) -> ErrorReport:
        """The report of a failure of a job."""
        scene = self.scene(entry)
        report = kept_report(error)
        return (
            describe(error, scene=scene)
            if report is None
            else replace(report, scene=merge(scene, report.scene))
        )
