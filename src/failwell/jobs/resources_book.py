"""The queue's books: what the machine has, what each instance was seen to need, what is reserved.

A look at the machine is taken in a thread and kept for a moment; those who hold what they need already
are let through without one.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping

from failwell.jobs.child.tree import resident_mb
from failwell.jobs.ledger import (
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
from failwell.jobs.resources import Limits, Machine, Probe
from failwell.jobs.station import Station
from failwell.jobs.store import Profile

FRESH = 1.0
"""Seconds for which a look at the machine is good enough to start something by."""
FORGET = 0.05
"""How far a learned peak moves towards a lower sample: a single outlier is not remembered for ever."""

NO_LIMITS = Limits()
_EVERY = 32
"""Samples after which the store is told, once there are many and nothing grows."""


class Peak:
    """What the calls in one worker used at most since the first of them began."""

    __slots__ = ("disk", "disk_before", "gpu", "ram", "since")

    def __init__(self, since: float, disk_before: float | None) -> None:
        self.since = since
        self.ram = 0.0
        self.gpu = 0.0
        self.disk = 0.0
        self.disk_before = disk_before
        """Free space when it began, where it runs alone and so is to blame for what goes."""


class Book:
    """What is known and what is promised. Belongs to the event loop's thread."""

    def __init__(
        self, probe: Probe, headroom: float, now: Callable[[], float], limits: Limits = NO_LIMITS
    ) -> None:
        self._probe = probe
        self._headroom = headroom
        self._limits = limits
        self._now = now
        self.machine: Machine | None = None
        self._budgets: dict[str, float] = {}
        """Pool → what jobs may use of it, as of the last look. It hardly ever changes."""
        self._seen = 0.0
        self._ended = 0.0
        """When a job ended last: what was seen before that may be free by now."""
        self._known: dict[str, Station] = {}
        """Everybody who has had a job."""
        self._resident: dict[str, float] = {}
        """Instance → its main memory, by its last pulse or by the last look, whichever came later."""
        self._looking: asyncio.Task[None] | None = None
        self._profiles: dict[tuple[str, str], Profile] = {}
        self._reserved: dict[str, dict[str, float]] = {}
        self._peaks: dict[str, Peak] = {}
        self._marks: dict[str, tuple[float, float]] = {}
        """Instance → the high-water marks that its process told last."""
        self.learned: dict[tuple[str, str], Profile] = {}
        """Profiles that the store has not been told of."""

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
        memories = {name: station.worker.memory() for name, station in self._known.items()}
        pids = {name: memory.pids for name, memory in memories.items() if memory is not None}
        self.machine, resident = await asyncio.to_thread(self._read, pids)
        self._resident.update(resident)
        books = self.books(())
        self._budgets = {pool: books.budget(pool) for pool in books.pools}
        self._seen = began

    def _read(self, pids: Mapping[str, Collection[int]]) -> tuple[Machine, dict[str, float]]:
        # An idle worker's pulse is slow: what it has given up by now would still be put down to it.
        return self._probe.read(), {name: sum(map(resident_mb, own)) for name, own in pids.items()}

    async def close(self) -> None:
        """Let the look that is under way end."""
        if self._looking is not None:
            await asyncio.wait([self._looking])
        self._probe.close()

    # -------------------------------------------------------------- profiles

    def load(self, profiles: Iterable[Profile]) -> None:
        """Take what was learned before."""
        self._profiles = {(one.instance, one.config): one for one in profiles}

    def profile(self, station: Station) -> Profile | None:
        """What is known of an instance with its present configuration; `None` until one call ended well."""
        found = self._profiles.get((station.instance, station.config))
        return None if found is None or not found.successes else found

    def peaks(self, station: Station) -> dict[str, float]:
        """What it will need, by pool."""
        found = self.profile(station)
        if found is None:
            return {}
        return {gpu(station.device): found.gpu_mb, RAM: found.ram_mb, DISK: found.disk_mb}

    def _learn(self, station: Station, peak: Peak, seconds: float, *, well: bool) -> None:
        key = (station.instance, station.config)
        old = self._profiles.get(key)
        made = Profile(instance=station.instance, config=station.config) if old is None else old
        count = made.successes + well
        grows = well and (peak.gpu > made.gpu_mb or peak.ram > made.ram_mb or peak.disk > made.disk_mb)
        made = Profile(
            instance=made.instance,
            config=made.config,
            samples=made.samples + 1,
            successes=count,
            # Only what ended well shows how much is enough.
            gpu_mb=_towards(made.gpu_mb, peak.gpu) if well else made.gpu_mb,
            ram_mb=_towards(made.ram_mb, peak.ram) if well else made.ram_mb,
            disk_mb=_towards(made.disk_mb, peak.disk)
            if well and peak.disk_before is not None
            else made.disk_mb,
            seconds=made.seconds + (seconds - made.seconds) / count if well else made.seconds,
            updated=self._now(),
        )
        self._profiles[key] = made
        if grows or made.samples < _EVERY or made.samples % _EVERY == 0:
            self.learned[key] = made

    # -------------------------------------------------------------- admission

    def may_start(
        self, station: Station, everybody: Iterable[Station]
    ) -> Fits | Short | Never | Unknown | None:
        """Whether a job of this instance may start; `None` where a fresh look is needed first."""
        if station.instance in self._reserved:
            return Fits()
        peaks = self.peaks(station)
        held = self._held(station)
        if all(much - held.get(pool, 0.0) <= NOTICEABLE for pool, much in peaks.items()) and all(
            self._is_unpromised(pool, much) for pool, much in peaks.items()
        ):
            return Fits()
        if not self.is_fresh:
            return None
        found = admit(station.instance, peaks, self.books(everybody))
        if isinstance(found, Short) and not found.is_reserved and self._seen <= self._ended:
            # Nobody's memory is taken for the sake of what a job that has ended held.
            return None
        return found

    def _is_unpromised(self, pool: str, much: float) -> bool:
        """Whether those that run leave so much of the budget.

        Having held it when the last pulse came is not enough: it may have been given up since.
        """
        if much <= NOTICEABLE or not self._reserved:
            return True
        promised = sum(of.get(pool, 0.0) for of in self._reserved.values())
        return promised + much <= self._budgets.get(pool, 0.0)

    def books(self, everybody: Iterable[Station]) -> Books:
        """Everything that admission and eviction go by."""
        pools = {} if self.machine is None else self.machine.pools()
        return Books(
            pools=pools,
            reserved=self._reserved,
            held={one.instance: self._held(one) for one in everybody},
            headroom=self._headroom,
            limits=self._limits.of(pools),
        )

    def _held(self, station: Station) -> dict[str, float]:
        memory = station.worker.memory()
        if memory is None:
            return {}
        resident = self._resident.get(station.instance, memory.rss_mb)
        if self.machine is None:
            return {RAM: resident}
        return self.machine.held(resident, memory.pids)

    # -------------------------------------------------------------- while it runs

    def reserve(self, station: Station, *, alone: bool) -> None:
        """A job of this instance starts."""
        self._known[station.instance] = station
        if station.instance in self._reserved:
            return
        self._reserved[station.instance] = self.peaks(station)
        disk = (
            None if self.machine is None or self.machine.disk is None or not alone else self.machine.disk.free
        )
        peak = self._peaks[station.instance] = Peak(asyncio.get_running_loop().time(), disk)
        memory = station.worker.memory()
        if memory is not None:
            peak.ram = memory.rss_mb

    def pulse(self, station: Station) -> None:
        """A worker said what it holds."""
        memory = station.worker.memory()
        if memory is not None:
            self._resident[station.instance] = memory.rss_mb
        self._sample(station)

    def _sample(self, station: Station) -> None:
        peak = self._peaks.get(station.instance)
        if peak is None:
            return
        held = self._held(station)
        peak.ram = max(peak.ram, held.get(RAM, 0.0))
        peak.gpu = max(peak.gpu, held.get(gpu(station.device), 0.0))
        if peak.disk_before is not None and self.machine is not None and self.machine.disk is not None:
            peak.disk = max(peak.disk, peak.disk_before - self.machine.disk.free)

    def measured(self, station: Station, ram_mb: float, gpu_mb: float | None) -> None:
        """A call is about to be answered, and its process tells the most that it ever held.

        A mark that has moved since the call before was set by this one, however short it was; one that
        has not says nothing about it.
        """
        marks = (ram_mb, gpu_mb or 0.0)
        before = self._marks.get(station.instance, (0.0, 0.0))
        self._marks[station.instance] = marks
        peak = self._peaks.get(station.instance)
        if peak is None:
            return
        if marks[0] != before[0]:
            peak.ram = max(peak.ram, marks[0])
        if marks[1] != before[1]:
            peak.gpu = max(peak.gpu, marks[1])

    def finish(self, station: Station, *, well: bool, seconds: float) -> None:
        """A job of this instance ended."""
        self._ended = asyncio.get_running_loop().time()
        peak = self._peaks.get(station.instance)
        if peak is not None:
            self._sample(station)
            self._learn(station, peak, seconds, well=well)
        if not station.entries:
            self._reserved.pop(station.instance, None)
            self._peaks.pop(station.instance, None)

    def forget(self, station: Station) -> None:
        """A job that had begun was put back; nothing was learned."""
        if not station.entries:
            self._reserved.pop(station.instance, None)
            self._peaks.pop(station.instance, None)

    def reserved(self) -> dict[str, dict[str, float]]:
        """What is promised to whom."""
        return {who: dict(of) for who, of in self._reserved.items()}


def _towards(old: float, sample: float) -> float:
    return sample if sample >= old else old - (old - sample) * FORGET
