"""The queue's books: what the machine has, what each instance was seen to need, what is reserved.

A look at the machine is taken in a thread and kept for a moment; those who hold what they need already
are let through without one.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping

from failwell.jobs.memory.ledger import (
    DISK,
    NOTICEABLE,
    RAM,
    Books,
    Fits,
    Never,
    Short,
    Unknown,
    admit,
    gpu,
)
from failwell.jobs.memory.machine import Limits, MachineMemory, Probe
from failwell.jobs.memory.system import Written, since, written
from failwell.jobs.queue.instance import Instance
from failwell.jobs.store.job_store import Profile
from failwell.processes.tree import resident_mb

FORGET = 0.05
"""How far a learned peak moves towards a lower sample: a single outlier is not remembered for ever."""

_EVERY = 32
"""Samples after which the store is told, once there are many and nothing grows."""


class Peak:
    """What the calls in one worker used at most since the first of them began."""

    __slots__ = ("config", "disk", "disk_before", "gpu", "ram", "written_before")

    def __init__(self, config: str, disk_before: float | None, written_before: Written | None) -> None:
        self.config: str | None = config
        """The configuration that they began with; `None` where they did not all begin with the same one."""
        self.ram = 0.0
        self.gpu = 0.0
        self.disk = 0.0
        self.disk_before = disk_before
        """Free space when it began, where it runs alone: among jobs, it is to blame for what goes."""
        self.written_before = written_before
        """What its processes had written by then. Other programs may fill the disk meanwhile, so it is not
        to blame for more than it wrote."""

    def blame(self, now: Written | None) -> None:
        """Its processes have written so much by now; what else has gone was taken by somebody else."""
        megabytes = since(self.written_before, now)
        if megabytes is not None:
            self.disk = min(self.disk, megabytes)


class Lessons:
    """Everything that was learned, here and by those who ran this store's jobs before."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._profiles: dict[tuple[str, str], Profile] = {}
        self.untold: dict[tuple[str, str], Profile] = {}
        """Profiles that the store has not been told of."""

    def load(self, profiles: Iterable[Profile]) -> None:
        """Take what was learned before."""
        self._profiles = {(profile.instance, profile.config): profile for profile in profiles}

    def profile(self, instance: Instance) -> Profile | None:
        """What is known of an instance with its present configuration; `None` until one call ended well."""
        profile = self._profiles.get((instance.id, instance.config))
        return None if profile is None or not profile.successes else profile

    def peaks(self, instance: Instance, card: str) -> dict[str, float]:
        """What it will need, by pool; `card` is that of its GPU."""
        profile = self.profile(instance)
        if profile is None:
            return {}
        return {card: profile.gpu_mb, RAM: profile.ram_mb, DISK: profile.disk_mb}

    def learn(self, instance: Instance, peak: Peak, seconds: float, *, well: bool) -> None:
        """Take in what one call needed; from a failed one only that it was tried.

        A call that began with another configuration shows nothing of what this one needs, and not much of
        what the other did.
        """
        if peak.config != instance.config:
            return
        key = (instance.id, instance.config)
        old = self._profiles.get(key)
        profile = Profile(instance=instance.id, config=instance.config) if old is None else old
        count = profile.successes + well
        grows = well and (
            peak.gpu > profile.gpu_mb or peak.ram > profile.ram_mb or peak.disk > profile.disk_mb
        )
        profile = Profile(
            instance=profile.instance,
            config=profile.config,
            samples=profile.samples + 1,
            successes=count,
            # Only what ended well shows how much is enough.
            gpu_mb=_towards(profile.gpu_mb, peak.gpu) if well else profile.gpu_mb,
            ram_mb=_towards(profile.ram_mb, peak.ram) if well else profile.ram_mb,
            disk_mb=_towards(profile.disk_mb, peak.disk)
            if well and peak.disk_before is not None
            else profile.disk_mb,
            seconds=profile.seconds + (seconds - profile.seconds) / count if well else profile.seconds,
            updated=self._now(),
        )
        self._profiles[key] = profile
        if grows or profile.samples < _EVERY or profile.samples % _EVERY == 0:
            self.untold[key] = profile


def _towards(old: float, sample: float) -> float:
    return sample if sample >= old else old - (old - sample) * FORGET


FRESH = 1.0
"""Seconds for which a look at the machine is good enough to start something by."""
NO_LIMITS = Limits()


class Book:
    """What is known and what is promised. Belongs to the event loop's thread."""

    def __init__(
        self, probe: Probe, headroom: float, now: Callable[[], float], limits: Limits = NO_LIMITS
    ) -> None:
        self._probe = probe
        self._headroom = headroom
        self._limits = limits
        self._lessons = Lessons(now)
        self.machine: MachineMemory | None = None
        self._budgets: dict[str, float] = {}
        """Pool → what jobs may use of it, as of the last look. It hardly ever changes."""
        self._seen = 0.0
        self._ended = 0.0
        """When a job ended last: what was seen before that may be free by now."""
        self._known: dict[str, Instance] = {}
        """Whose worker lives, as far as anybody was told."""
        self._resident: dict[str, float] = {}
        """Instance → its main memory, by its last pulse or by the last look, whichever came later."""
        self._looking: asyncio.Task[None] | None = None
        self._reserved: dict[str, dict[str, float]] = {}
        self._peaks: dict[str, Peak] = {}
        self._marks: dict[str, tuple[float, float]] = {}
        """Instance → the high-water marks that its process told last."""

    # -------------------------------------------------------------- the machine

    @property
    def is_fresh(self) -> bool:
        """Whether the last look is recent enough."""
        return self.machine is not None and asyncio.get_running_loop().time() - self._seen < FRESH

    async def look(self) -> None:
        """Look at the machine. Several who want to share one look."""
        if self._looking is None:
            self._looking = asyncio.ensure_future(self._look())
            self._looking.add_done_callback(self._looked)
        await asyncio.shield(self._looking)

    @property
    def is_looking(self) -> bool:
        """Whether somebody looks right now."""
        return self._looking is not None

    def _looked(self, _task: "asyncio.Task[None]") -> None:
        self._looking = None

    async def _look(self) -> None:
        began = asyncio.get_running_loop().time()
        memories = {name: instance.worker.memory() for name, instance in self._known.items()}
        pids = {name: memory.pids for name, memory in memories.items() if memory is not None}
        self._known = {name: self._known[name] for name in pids}
        self.machine, resident = await asyncio.to_thread(self._read, pids)
        self._resident.update(resident)
        books = self.books(())
        self._budgets = {pool: books.budget(pool) for pool in books.pools}
        self._seen = began

    def _read(self, pids: Mapping[str, Collection[int]]) -> tuple[MachineMemory, dict[str, float]]:
        # An idle worker's pulse is slow: what it has given up by now would still be put down to it.
        return self._probe.read(), {
            name: sum(map(resident_mb, processes)) for name, processes in pids.items()
        }

    async def close(self) -> None:
        """Wait until the measurement in progress has ended."""
        if self._looking is not None:
            await asyncio.wait([self._looking])
        self._probe.close()

    # -------------------------------------------------------------- what was learned

    def load(self, profiles: Iterable[Profile]) -> None:
        """Take what was learned before."""
        self._lessons.load(profiles)

    def profile(self, instance: Instance) -> Profile | None:
        """What is known of an instance with its present configuration; `None` until one call ended well."""
        return self._lessons.profile(instance)

    def peaks(self, instance: Instance) -> dict[str, float]:
        """What it will need, by pool."""
        return self._lessons.peaks(instance, self.card(instance))

    def card(self, instance: Instance) -> str:
        """The pool of the GPU that its worker uses."""
        return gpu(instance.card) if self.machine is None else self.machine.card(instance.card)

    @property
    def learned(self) -> dict[tuple[str, str], Profile]:
        """Profiles that the store has not been told of."""
        return self._lessons.untold

    # -------------------------------------------------------------- admission

    def may_start(
        self, instance: Instance, everybody: Iterable[Instance]
    ) -> Fits | Short | Never | Unknown | None:
        """Whether a job of this instance may start; `None` where a fresh look is needed first."""
        running = self._peaks.get(instance.id)
        if running is not None and running.config == instance.config:
            return Fits()
        peaks = self.peaks(instance)
        usage = self._held(instance)
        if all(megabytes - usage.get(pool, 0.0) <= NOTICEABLE for pool, megabytes in peaks.items()) and all(
            self._is_unpromised(instance, pool, megabytes) for pool, megabytes in peaks.items()
        ):
            return Fits()
        if not self.is_fresh:
            return None
        verdict = admit(instance.id, peaks, self.books(everybody))
        if isinstance(verdict, Short) and not verdict.is_reserved and self._seen <= self._ended:
            # Nobody's memory is taken for the sake of what a job that has ended held.
            return None
        return verdict

    def budget(self, pool: str) -> float | None:
        """What jobs may use of a pool, as of the last look; `None` where nobody knows."""
        return self._budgets.get(pool)

    def _is_unpromised(self, instance: Instance, pool: str, megabytes: float) -> bool:
        """Whether the others that run leave so much of the budget.

        Having held it when the last pulse came is not enough: it may have been given up since.
        """
        if megabytes <= NOTICEABLE or not self._reserved:
            return True
        promised = sum(pools.get(pool, 0.0) for name, pools in self._reserved.items() if name != instance.id)
        return promised + megabytes <= self._budgets.get(pool, 0.0)

    def books(self, everybody: Iterable[Instance]) -> Books:
        """Everything that admission and eviction go by."""
        pools = {} if self.machine is None else self.machine.pools()
        return Books(
            pools=pools,
            reserved=self._reserved,
            held={instance.id: self._held(instance) for instance in everybody},
            headroom=self._headroom,
            limits=self._limits.of(pools),
        )

    def _held(self, instance: Instance) -> dict[str, float]:
        memory = instance.worker.memory()
        if memory is None:
            return {}
        resident = self._resident.get(instance.id, memory.rss_mb)
        if self.machine is None:
            return {RAM: resident}
        return self.machine.held(resident, memory.pids)

    # -------------------------------------------------------------- while it runs

    def reserve(self, instance: Instance, *, alone: bool) -> None:
        """A job of this instance starts."""
        needed, running = self.peaks(instance), self._peaks.get(instance.id)
        if running is not None:
            if running.config != instance.config:
                # It was configured anew while it worked: room for either, and nothing is learned of both at once.
                running.config = None
                before = self._reserved[instance.id]
                self._reserved[instance.id] = {
                    pool: max(before.get(pool, 0.0), needed.get(pool, 0.0)) for pool in {*before, *needed}
                }
            return
        self._reserved[instance.id] = needed
        memory = instance.worker.memory()
        disk = (
            None if self.machine is None or self.machine.disk is None or not alone else self.machine.disk.free
        )
        wrote = None if disk is None or memory is None else written(memory.pids)
        peak = self._peaks[instance.id] = Peak(instance.config, disk, wrote)
        if memory is not None:
            peak.ram = memory.rss_mb

    def pulse(self, instance: Instance) -> None:
        """A worker said what it holds."""
        memory = instance.worker.memory()
        if memory is not None:
            self._known[instance.id] = instance
            self._resident[instance.id] = memory.rss_mb
        self._sample(instance)

    def _sample(self, instance: Instance) -> None:
        peak = self._peaks.get(instance.id)
        if peak is None:
            return
        usage = self._held(instance)
        peak.ram = max(peak.ram, usage.get(RAM, 0.0))
        peak.gpu = max(peak.gpu, usage.get(self.card(instance), 0.0))
        if peak.disk_before is not None and self.machine is not None and self.machine.disk is not None:
            peak.disk = max(peak.disk, peak.disk_before - self.machine.disk.free)

    def measured(self, instance: Instance, ram_mb: float, gpu_mb: float | None) -> None:
        """A call is about to be answered, and its process tells the most that it ever held.

        A mark that has moved since the call before was set by this one, however short it was; one that
        has not says nothing about it.
        """
        marks = (ram_mb, gpu_mb or 0.0)
        before = self._marks.get(instance.id, (0.0, 0.0))
        self._marks[instance.id] = marks
        peak = self._peaks.get(instance.id)
        if peak is None:
            return
        if marks[0] != before[0]:
            peak.ram = max(peak.ram, marks[0])
        if marks[1] != before[1]:
            peak.gpu = max(peak.gpu, marks[1])

    def finish(self, instance: Instance, *, well: bool, seconds: float) -> None:
        """A job of this instance ended."""
        self._ended = asyncio.get_running_loop().time()
        peak = self._peaks.get(instance.id)
        if peak is not None:
            self._sample(instance)
            memory = instance.worker.memory()
            if peak.disk > 0 and memory is not None:
                peak.blame(written(memory.pids))
            self._lessons.learn(instance, peak, seconds, well=well)
        if not instance.entries:
            self._reserved.pop(instance.id, None)
            self._peaks.pop(instance.id, None)

    def forget(self, instance: Instance) -> None:
        """A job that had begun was put back; nothing was learned."""
        if not instance.entries:
            self._reserved.pop(instance.id, None)
            self._peaks.pop(instance.id, None)

    def reserved(self) -> dict[str, dict[str, float]]:
        """What is promised to whom."""
        return {name: dict(pools) for name, pools in self._reserved.items()}
