"""The waiting line: the order of the jobs of each instance. Pure arithmetic over the entries.

Priority weighs against waiting: so many seconds of waiting outweigh one step of priority. Both grow at
the same pace for everybody, so the order of two jobs never changes by itself and a heap can keep it. `Instance` is one
worker with its jobs, `Recent` holds the latest jobs that have ended.
"""

import asyncio
import os
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush, heapreplace, nsmallest
from typing import Any

from failwell.jobs.arguments import ArgumentCheck
from failwell.jobs.manifest import Manifest, rate_limit_in
from failwell.jobs.queue.entry import Entry
from failwell.jobs.settings import config_hash
from failwell.jobs.workers.supervisor import SupervisedWorker

ROOM = 8 * 1024 * 1024
"""Characters of requests and results that are kept for all jobs together."""


class Recent(Mapping[str, Entry]):
    """The latest ended jobs: at most `most` of them and `room` characters."""

    def __init__(self, most: int, room: int = ROOM) -> None:
        self._most = most
        self._room = room
        self._entries: OrderedDict[str, tuple[int, Entry]] = OrderedDict()
        """Each with its weight."""
        self._weight = 0

    def add(self, entry: Entry) -> None:
        """Add a job that has ended."""
        entries, job = self._entries, entry.id
        weight = len(entry.request_text) + len(entry.result_text or "")
        if job in entries:
            self._weight -= entries.pop(job)[0]
        entries[job] = weight, entry
        weight += self._weight
        while len(entries) > self._most or (weight > self._room and entries):
            weight -= entries.popitem(last=False)[1][0]
        self._weight = weight

    def __getitem__(self, job: str) -> Entry:
        return self._entries[job][1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


Ticket = tuple[float, int, int, Entry]
_FEW = 64


class Line:
    """The jobs that are ready to run."""

    def __init__(self, age: float) -> None:
        self._age = age
        """Seconds of waiting that outweigh one step of priority."""
        self._of: dict[str, list[Ticket]] = {}
        self._most: dict[str, int] = {}
        """Instance → number of tickets at which the void ones are removed."""
        self._queued: Counter[str] = Counter()
        self.size = 0
        """How many jobs are in line."""

    def add(self, entry: Entry) -> None:
        """Add a job; an earlier ticket of it becomes void."""
        entry.place += 1
        ticket = (self.rank(entry), entry.sequence, entry.place, entry)
        instance = entry.request.instance
        if not entry.is_queued:
            entry.is_queued = True
            self._queued[instance] += 1
            self.size += 1
        line = self._of.setdefault(instance, [])
        if len(line) >= _FEW and len(line) >= self._most.get(instance, _FEW):
            line[:] = [ticket for ticket in line if ticket[2] == ticket[3].place]
            heapify(line)
            self._most[instance] = 2 * len(line) + _FEW
        heappush(line, ticket)

    def leave(self, entry: Entry) -> None:
        """Remove a job."""
        entry.place += 1
        if entry.is_queued:
            entry.is_queued = False
            self._queued[entry.request.instance] -= 1
            self.size -= 1

    def queued(self, instance: str) -> int:
        """How many jobs of an instance are in line."""
        return self._queued[instance]

    def rank(self, entry: Entry) -> float:
        """Smaller goes first."""
        return entry.since - entry.request.priority * self._age

    def first(self, instance: str) -> Entry | None:
        """The next job of one instance."""
        line = self._of.get(instance)
        while line:
            entry = line[0][3]
            if line[0][2] == entry.place:
                return entry
            heappop(line)
        if line is not None:
            del self._of[instance]
            self._most.pop(instance, None)
        return None

    def take(self, instance: str) -> None:
        """Remove the next job of an instance."""
        self.leave(heappop(self._of[instance])[3])

    def firsts(self) -> Iterator[Entry]:
        """The next job of each instance, best first, and the one after it if that was taken or has left meanwhile."""
        heads = [self._of[instance][0] for instance in list(self._of) if self.first(instance) is not None]
        heapify(heads)
        while heads:
            entry = heads[0][3]
            instance = entry.request.instance
            yield entry
            following = self.first(instance)
            if following is None or following is entry:
                heappop(heads)
            else:
                heapreplace(heads, self._of[instance][0])

    def waits_for(self, instance: str) -> bool:
        """Whether a job waits for this instance."""
        return self.first(instance) is not None

    def best(self, most: int | None = None) -> list[Entry]:
        """The jobs in line, best first; no more than `most`."""
        tickets = [ticket for line in self._of.values() for ticket in line if ticket[2] == ticket[3].place]
        if most is None:
            return [ticket[3] for ticket in sorted(tickets, key=_order)]
        return [ticket[3] for ticket in nsmallest(most, tickets, key=_order)]


def _order(ticket: Ticket) -> tuple[float, int]:
    return ticket[:2]


class Instance:
    """An instance of a capability, with its worker and its jobs."""

    def __init__(
        self,
        manifest: Manifest,
        worker: SupervisedWorker,
        config: Mapping[str, Any],
        *,
        is_enabled: bool = True,
        host: Mapping[str, str] = os.environ,
    ) -> None:
        """Create it; `host` is the environment of which its worker sees a part."""
        self.manifest = manifest
        self.worker = worker
        self.id = worker.instance
        self.is_enabled = is_enabled
        self.rate_limit = rate_limit_in(manifest)
        """How often its jobs may start. It follows the manifest while the host runs."""
        self.arguments = ArgumentCheck(manifest.name, manifest.parameters)
        """The check of the arguments of its jobs; a started worker says what they are."""
        self.configure(config)
        self.entries: dict[str, Entry] = {}
        """Its running jobs."""
        self.hook_is_due = False
        """Whether the disable hook waits for the last of them to end."""
        self.is_being_freed = False
        """Whether its memory is being freed; nothing is started meanwhile."""
        self.is_draining = False
        """Whether its process is replaced before the next job; running jobs finish first."""
        self.is_leaving = False
        """Whether it is being unloaded; no jobs are accepted or started for it."""
        self._emptied: asyncio.Event | None = None
        self.card = _card(manifest, host)
        """The first GPU that its worker may see, as its environment names it."""

    def configure(self, config: Mapping[str, Any]) -> None:
        """Set another configuration; the instance is measured again."""
        self.requested_config: Mapping[str, Any] = config
        # As requested: what a worker adds is known only once it has started.
        self.config = config_hash({**(self.manifest.defaults or {}), **config})

    def leave(self, entry: Entry) -> None:
        """Remove a job."""
        self.entries.pop(entry.id, None)
        if self._emptied is not None and not self.entries:
            self._emptied.set()

    async def emptied(self) -> None:
        """Wait until it has no job."""
        while self.entries:
            if self._emptied is None or self._emptied.is_set():
                self._emptied = asyncio.Event()
            await self._emptied.wait()

    @property
    def is_closed(self) -> bool:
        """Whether nothing may be started in it for now."""
        return self.is_being_freed or self.is_draining or self.is_leaving

    @property
    def is_full(self) -> bool:
        """Whether it has as many jobs as it takes at a time."""
        return len(self.entries) >= self.manifest.concurrency

    @property
    def uses_gpu(self) -> bool:
        """Whether it says that it works on a GPU."""
        return self.manifest.resources.gpu or "cuda" in self.manifest.resources.accelerators


_VISIBLE = "CUDA_VISIBLE_DEVICES"


def _card(manifest: Manifest, host: Mapping[str, str]) -> str:
    """The GPU in the worker's environment; its manifest takes precedence over the host."""
    variables = {
        variable.name: variable.value
        for variable in manifest.env
        if not variable.secret and variable.value is not None
    }
    visible = variables.get(_VISIBLE, host.get(_VISIBLE))
    if visible is None:
        return "0"
    # An empty list, or one that begins with no GPU, hides all of them.
    return visible.partition(",")[0].strip() or "-1"
