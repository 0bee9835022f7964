"""What the queue knows about memory: what the machine has, what each instance needs, what is reserved.

The machine is read in a thread, and the reading is reused for a moment. A worker that already holds the
memory it needs starts its job without a new reading.
"""

import asyncio
import os
from collections.abc import Callable, Collection, Iterable, Mapping

from failwell.jobs.memory.ledger import (
    DISK,
    MARGIN,
    NOTICEABLE,
    RAM,
    Fits,
    MemorySnapshot,
    Never,
    Short,
    Unknown,
    admit,
    admit_unmeasured,
    first_reserve,
    gpu,
    share,
)
from failwell.jobs.memory.machine import Limits, MachineMemory, Probe, written
from failwell.jobs.memory.needs import Peak, Profiles
from failwell.jobs.queue.order import Instance
from failwell.jobs.store.records import HostReserves
from failwell.jobs.workers.protocol import Memory, MemoryLimit
from failwell.processes.tree import resident_mb

FRESH = 1.0
"""Seconds for which a reading of the machine may be used to start a job."""
NO_LIMITS = Limits()
_FITS = Fits()


class Book:
    """Memory that is free, reserved and learned. Used on the event loop's thread only."""

    def __init__(
        self,
        probe: Probe,
        headroom: float,
        now: Callable[[], float],
        limits: Limits = NO_LIMITS,
        lanes: int = 4,
    ) -> None:
        self._probe = probe
        self.lanes = lanes
        """How many jobs run at a time, on all hosts together."""
        self._headroom = headroom
        self._limits = limits
        self._profiles = Profiles(now)
        self.machine: MachineMemory | None = None
        self.elsewhere: HostReserves = {}
        """What the other hosts of the store have reserved."""
        self.budgets: dict[str, float] = {}
        """Pool → what jobs may use of it, as of the last reading. It hardly ever changes."""
        self._looked_at = 0.0
        self._last_end = 0.0
        """When a job ended last. Memory that was in use before that may be free by now."""
        self._live: dict[str, Instance] = {}
        """Instances whose worker has sent a pulse and was alive at the last reading."""
        self._resident: dict[str, float] = {}
        """Instance → its main memory, by its last pulse or the last reading, whichever is newer."""
        self._looking: asyncio.Task[None] | None = None
        self._reserved: dict[str, dict[str, float]] = {}
        self._peaks: dict[str, Peak] = {}
        self._marks: dict[str, tuple[float, float]] = {}
        """Instance → the high-water marks that its process reported last."""
        self._usages: dict[str, tuple[Memory, float, MachineMemory | None, dict[str, float]]] = {}
        """Instance → what it holds by pool, after what that was computed from."""
        self._cards: dict[str, str] = {}
        """Name of a GPU → its pool, as of the last reading."""
        self.add = self._profiles.add
        self.profile = self._profiles.profile
        self.learned = self._profiles.unsaved
        """Profiles that are not in the store yet."""

    # -------------------------------------------------------------- the machine

    @property
    def is_fresh(self) -> bool:
        """Whether the last reading is recent enough."""
        return self.machine is not None and asyncio.get_running_loop().time() - self._looked_at < FRESH

    async def look(self) -> None:
        """Read the machine. Concurrent callers share one reading."""
        if self._looking is None:
            self._looking = asyncio.ensure_future(self._look())
            self._looking.add_done_callback(self._look_done)
        await asyncio.shield(self._looking)

    @property
    def is_looking(self) -> bool:
        """Whether a reading is in progress."""
        return self._looking is not None

    def _look_done(self, _task: "asyncio.Task[None]") -> None:
        self._looking = None

    async def _look(self) -> None:
        began = asyncio.get_running_loop().time()
        memories = {name: instance.worker.memory() for name, instance in self._live.items()}
        pids = {name: memory.pids for name, memory in memories.items() if memory is not None}
        self._live = {name: self._live[name] for name in pids}
        self.machine, resident = await asyncio.to_thread(self._read, pids)
        self._cards.clear()
        self._resident.update(resident)
        snapshot = self.snapshot(())
        self.budgets = {pool: snapshot.budget(pool) for pool in snapshot.pools}
        self._looked_at = began
        for instance in self._live.values():
            self._sample(instance)

    def _read(self, pids: Mapping[str, Collection[int]]) -> tuple[MachineMemory, dict[str, float]]:
        # The pulse of an idle worker is slow and may still show memory that was freed since.
        return self._probe.read(), {
            name: sum(map(resident_mb, processes)) for name, processes in pids.items()
        }

    async def close(self) -> None:
        """Wait until the measurement in progress has ended."""
        if self._looking is not None:
            await asyncio.wait([self._looking])
        self._probe.close()

    # -------------------------------------------------------------- what was learned

    def peaks(self, instance: Instance) -> dict[str, float]:
        """What a call of the instance needs, by pool, main memory always; empty until one call succeeded."""
        profile = self.profile(instance)
        if profile is None:
            return {}
        peaks = {RAM: profile.ram_mb}
        if profile.gpu_mb:
            peaks[self.card(instance)] = profile.gpu_mb
        if profile.disk_mb:
            peaks[DISK] = profile.disk_mb
        return peaks

    def card(self, instance: Instance) -> str:
        """The pool of the GPU that the worker of the instance uses."""
        pool = self._cards.get(instance.card)
        if pool is None:
            pool = gpu(instance.card) if self.machine is None else self.machine.card(instance.card)
            self._cards[instance.card] = pool
        return pool

    # -------------------------------------------------------------- admission

    def may_start(
        self, instance: Instance, instances: Iterable[Instance]
    ) -> Fits | Short | Never | Unknown | None:
        """Whether a job of this instance may start; `None` if the machine has to be read first."""
        running = self._peaks.get(instance.id)
        if running is not None and running.config == instance.config:
            return _FITS
        peaks = self.peaks(instance)
        if not peaks:
            return self._may_start_unmeasured(instance, instances)
        usage = self._usage(instance)
        for pool, megabytes in peaks.items():
            if megabytes <= NOTICEABLE:
                continue
            if megabytes - usage.get(pool, 0.0) > NOTICEABLE:
                break
            if not self._is_within_budget(instance, pool, megabytes):
                break
        else:
            return _FITS
        if not self.is_fresh:
            return None
        verdict = admit(instance.id, peaks, self.snapshot(instances))
        if isinstance(verdict, Short) and not verdict.is_reserved and self._looked_at <= self._last_end:
            # The memory of a job that just ended may be free by now: read again before evicting a worker.
            return None
        return verdict

    def _may_start_unmeasured(
        self, instance: Instance, instances: Iterable[Instance]
    ) -> Fits | Short | Never | Unknown | None:
        if not self.is_fresh:
            # What it uses of the disk is measured against what was in use before.
            return None
        snapshot = self.snapshot(instances)
        if instance.manifest.memory_limit is None or RAM not in snapshot.pools:
            return admit_unmeasured(instance.id, self._first_need(instance), snapshot)
        return admit(instance.id, {RAM: self._first_need(instance)}, snapshot)

    def limit(self, instance: Instance) -> MemoryLimit | None:
        """The most main memory that the worker of an instance may use; `None` if there is no limit.

        `memory_limit` of its manifest; without it, and until it is measured, its share of the budget, or what it needed
        with another configuration. Never more than all jobs may use together.
        """
        declared, total, budget = (
            instance.manifest.memory_limit,
            self._limits.memory_mb,
            self.budgets.get(RAM),
        )
        limit = None if declared is None else MemoryLimit(declared, "manifest")
        if declared is None and self.profile(instance) is None and budget is not None:
            share = max(budget / self.lanes, self._profiles.highest_ram(instance) * MARGIN)
            limit = MemoryLimit(min(budget, share), "share")
        if total is not None and (limit is None or limit.megabytes >= total):
            return MemoryLimit(total, "total")
        return limit

    def _first_need(self, instance: Instance) -> float:
        """What must be unreserved for a job whose needs are not known: its limit, but no more than the budget."""
        limit = self.limit(instance)
        return 0.0 if limit is None else min(limit.megabytes, self.budgets.get(RAM, limit.megabytes))

    def needs(self, instance: Instance, instances: Iterable[Instance]) -> dict[str, float]:
        """What is reserved for a job of the instance, by pool: its learned peaks, or its share while it has none."""
        peaks = self.peaks(instance)
        if peaks:
            return peaks
        snapshot, card = self.snapshot(instances), self.card(instance)
        needs: dict[str, float] = {}
        if RAM in snapshot.pools:
            need = self._first_need(instance)
            is_default = instance.manifest.memory_limit is None and need <= share(RAM, self.lanes, snapshot)
            needs[RAM] = first_reserve(instance.id, RAM, self.lanes, snapshot) if is_default else need
        if instance.uses_gpu and card in snapshot.pools:
            needs[card] = first_reserve(instance.id, card, self.lanes, snapshot)
        return needs

    def budget(self, pool: str) -> float | None:
        """What jobs may use of a pool, as of the last reading; `None` if the pool was not measured."""
        return self.budgets.get(pool)

    def _is_within_budget(self, instance: Instance, pool: str, megabytes: float) -> bool:
        """Whether `megabytes` fit into the budget beside what is reserved for other instances.

        That the worker held them at its last pulse is not enough: it may have freed them since.
        """
        if not (self._reserved or self.elsewhere):
            return True
        promised = sum(pools.get(pool, 0.0) for name, pools in self._reserved.items() if name != instance.id)
        promised += sum(pools[pool].mb for pools in self.elsewhere.values() if pool in pools)
        return promised + megabytes <= self.budgets.get(pool, 0.0)

    def snapshot(self, instances: Iterable[Instance]) -> MemorySnapshot:
        """The values that admission and eviction decide by."""
        pools = {} if self.machine is None else self.machine.pools()
        reserved: Mapping[str, Mapping[str, float]] = self._reserved
        usage = {instance.id: self._usage(instance) for instance in instances}
        if self.elsewhere:
            # Another host counts like one instance that is always busy.
            reserved = {**reserved, **_by_host(self.elsewhere, 0)}
            usage |= _by_host(self.elsewhere, 1)
        return MemorySnapshot(
            pools=pools,
            reserved=reserved,
            usage=usage,
            headroom=self._headroom,
            limits=self._limits.of(pools),
        )

    def totals(self) -> dict[str, float]:
        """Pool → what is reserved for all running instances."""
        first, *others = [*self._reserved.values()] or [{}]
        totals = dict(first)
        for pools in others:
            for pool, megabytes in pools.items():
                totals[pool] = totals.get(pool, 0.0) + megabytes
        return totals

    def usage(self, instances: Iterable[Instance]) -> dict[str, float]:
        """Pool → what the workers of these instances hold of what is reserved for them."""
        totals: dict[str, float] = {}
        for instance in instances:
            reserved = self._reserved.get(instance.id, {})
            for pool, megabytes in self._usage(instance).items() if reserved else ():
                totals[pool] = totals.get(pool, 0.0) + min(megabytes, reserved.get(pool, 0.0))
        return totals

    def _usage(self, instance: Instance) -> dict[str, float]:
        memory = instance.worker.memory()
        if memory is None:
            return {}
        machine, name = self.machine, instance.id
        resident = self._resident.get(name, memory.rss_mb)
        known = self._usages.get(name)
        if known is not None and known[0] is memory and known[1] == resident and known[2] is machine:
            # It changes with a pulse or a reading, and jobs may come much more often.
            return known[3]
        usage = {RAM: resident} if machine is None else machine.usage(resident, memory.pids)
        self._usages[name] = memory, resident, machine, usage
        return usage

    # -------------------------------------------------------------- while it runs

    def reserve(self, instance: Instance, instances: Iterable[Instance]) -> None:
        """Reserve what an instance needs, one of whose jobs starts."""
        running = self._peaks.get(instance.id)
        if running is not None and running.config == instance.config:
            return
        needed = self.needs(instance, instances)
        if running is not None:
            # It was reconfigured while calls ran: reserve the larger peaks, and learn nothing from these calls.
            running.config = None
            before = self._reserved[instance.id]
            self._reserved[instance.id] = {
                pool: max(before.get(pool, 0.0), needed.get(pool, 0.0)) for pool in {*before, *needed}
            }
            return
        disk = self._free_disk() if self.profile(instance) is None else None
        self._reserved[instance.id] = needed
        memory = instance.worker.memory()
        wrote = None if disk is None or memory is None else written(memory.pids)
        peak = self._peaks[instance.id] = Peak(instance.config, disk, wrote)
        if memory is not None:
            peak.ram = memory.rss_mb

    def _free_disk(self) -> float | None:
        """Free disk space, if a decrease can be put down to the job that starts now.

        Beside other jobs it can where the kernel counts what each process writes.
        """
        if self.machine is None or self.machine.disk is None:
            return None
        return self.machine.disk.free if not self._reserved or written([os.getpid()]) is not None else None

    def returning(self, pool: str, instances: Iterable[Instance]) -> float:
        """What becomes available of a pool once the jobs of these instances have ended and idle workers are evicted."""
        return sum(
            (self._reserved.get(instance.id) or self._usage(instance)).get(pool, 0.0)
            for instance in instances
        )

    def pulse(self, instance: Instance) -> None:
        """Take in the pulse of a worker."""
        memory = instance.worker.memory()
        if memory is not None:
            self._live[instance.id] = instance
            self._resident[instance.id] = memory.rss_mb
        self._sample(instance)

    def _sample(self, instance: Instance) -> None:
        peak = self._peaks.get(instance.id)
        if peak is None:
            return
        usage = self._usage(instance)
        for pool, megabytes in usage.items():
            if pool == RAM:
                peak.ram = max(peak.ram, megabytes)
            elif pool == self.card(instance):
                peak.gpu = max(peak.gpu, megabytes)
        if peak.disk_before is not None and self.machine is not None and self.machine.disk is not None:
            peak.disk = max(peak.disk, peak.disk_before - self.machine.disk.free)

    def measured(self, instance: Instance, ram_mb: float, gpu_mb: float | None) -> None:
        """Take in the high-water marks that a process reports with the result of a call.

        A mark that changed since the previous call was set by this one, however short it was. An unchanged
        mark says nothing about this call.
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
        """Learn from a job that ended, and release its reservation if it was the last one."""
        self._last_end = asyncio.get_running_loop().time()
        peak = self._peaks.get(instance.id)
        if peak is not None:
            if peak.disk_before is not None:
                self._sample(instance)
                memory = instance.worker.memory() if peak.disk > 0 else None
                if memory is not None:
                    peak.cap_disk(written(memory.pids))
            self._profiles.learn(instance, peak, seconds, well=well)
        if not instance.entries:
            self._reserved.pop(instance.id, None)
            self._peaks.pop(instance.id, None)

    def forget(self, instance: Instance) -> None:
        """Release the reservation of a job that goes back to the queue; nothing is learned from it."""
        if not instance.entries:
            self._reserved.pop(instance.id, None)
            self._peaks.pop(instance.id, None)

    def reserved(self) -> dict[str, dict[str, float]]:
        """Instance → pool → what is reserved."""
        return {name: dict(pools) for name, pools in self._reserved.items()}


def _by_host(reserves: HostReserves, index: int) -> dict[str, dict[str, float]]:
    """What each host has reserved (0), or holds of it (1), by pool."""
    return {
        f"host {host}": {pool: reserved[index] for pool, reserved in pools.items()}
        for host, pools in reserves.items()
    }
