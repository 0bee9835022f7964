# ruff: noqa: T201
"""Jobs that hang, leak and crash beside jobs that work, in one host, and what that costs those that work.

`python -m tests.jobs.neighbours SECONDS` runs them together for so long. Every minute of it has a sixth in which the good jobs
are alone, so that a machine that is busy with something else slows both down.

Lanes: there is one for each place of each capability (4 good, 2 hanging, 1 leaking, 1 crashing), so the good jobs have the same four
lanes alone and together. A job that hangs holds its lane until its time-out.
"""

import asyncio
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from failwell.adapters.describe import describe
from failwell.errors.fault import Fault
from failwell.jobs.job import JobState
from failwell.jobs.manifest import Manifest
from failwell.jobs.runtime import Runtime
from failwell.jobs.workers.protocol import Supervision
from tests.jobs.queues import book_of
from tests.jobs.workers import SAMPLES, until

PLACES = {"work": 4, "hang": 2, "leak": 1, "crash": 1}
LANES = sum(PLACES.values())
LIMIT = 200.0
"""Megabytes that the leaking capability may use."""
SECONDS = 0.02
"""How long a good job takes."""
TIMEOUT = 3.0
"""How long a hanging job holds its lane."""


@dataclass
class Seen:
    """What was measured."""

    alone: list[float] = field(default_factory=list[float])
    """Good jobs a second, in each window in which they were alone."""
    together: list[float] = field(default_factory=list[float])
    ends: Counter[str] = field(default_factory=Counter[str])
    """How the bad jobs ended, by capability and kind."""
    peak_mb: float = 0.0
    """The most memory that the leaking worker had, as somebody outside saw it."""
    running_at_once: int = 0
    """How many jobs ran at once afterwards."""

    @property
    def kept(self) -> float:
        """The part of their throughput that the good jobs kept: the median over neighbouring windows."""
        pairs = zip(self.alone, self.together, self.alone[1:], strict=False)
        return median(beside / ((before + after) / 2) for before, beside, after in pairs)


class Neighbours:
    """One host with four capabilities."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._is_together = False
        self._is_over = False
        self._done = 0
        self._alive: set[int] = set()
        self.seen = Seen()

    async def run(self, seconds: float, window: float) -> Seen:
        """Let them run together for so many seconds, in windows; a fifth of each is added for the good ones alone."""
        async with Runtime(
            self._folder / "state",
            registry=self._folder / "registry",
            lanes=LANES,
            supervision=Supervision(cooldown=5.0),
        ) as jobs:
            for name, places in PLACES.items():
                fields: dict[str, Any] = {"memory_limit": LIMIT} if name == "leak" else {}
                if name == "hang":
                    fields = {"timeout": TIMEOUT, "cancel_grace": 0.2}
                jobs.register(
                    Manifest(
                        name=name, object=f"neighbours:{name}", path=(SAMPLES,), concurrency=places, **fields
                    )
                )
            await jobs.call("work", {"seconds": SECONDS})
            watch = threading.Thread(target=self._watch, args=(jobs,))
            watch.start()
            good = [asyncio.create_task(self._work(jobs)) for _ in range(2 * PLACES["work"])]
            try:
                await self._measure(jobs, seconds, window)
            finally:
                self._is_over = True
                watch.join()
                await asyncio.gather(*good)
            await jobs.drained()
            await self._count_lanes(jobs)
        return self.seen

    async def _measure(self, jobs: Runtime, seconds: float, window: float) -> None:
        end, alone = time.monotonic() + seconds * 1.2, max(3.0, window / 5)
        await self._window(self.seen.alone, alone)
        while time.monotonic() < end:
            self._is_together = True
            bad = [
                asyncio.create_task(self._misbehave(jobs, name))
                for name, places in PLACES.items()
                for _ in range(places)
                if name != "work"
            ]
            await self._window(self.seen.together, window)
            self._is_together = False
            for task in bad:
                task.cancel()
            await asyncio.gather(*bad, return_exceptions=True)
            await until(
                lambda: (
                    not any(jobs.queue.state.instances[name].entries for name in PLACES if name != "work")
                ),
                60,
            )
            await self._window(self.seen.alone, alone)

    async def _window(self, rates: list[float], seconds: float) -> None:
        began, before = time.monotonic(), self._done
        await asyncio.sleep(seconds)
        rates.append((self._done - before) / (time.monotonic() - began))

    async def _work(self, jobs: Runtime) -> None:
        while not self._is_over:
            await jobs.call("work", {"seconds": SECONDS})
            self._done += 1

    async def _misbehave(self, jobs: Runtime, name: str) -> None:
        paces = [50, None]
        turn = 0
        while self._is_together:
            arguments = {"pace": paces[turn % 2]} if name == "leak" else {}
            turn += 1
            try:
                await jobs.call(name, arguments, control={"max_attempts": 1})
            except Fault as fault:
                self.seen.ends[f"{name} {describe(fault).kind}"] += 1

    def _watch(self, jobs: Runtime) -> None:
        """Look at the memory of the leaking worker, which is one process, as the kernel counts it."""
        while not self._is_over:
            pid = jobs.worker("leak").pid
            if pid is not None:
                self.seen.peak_mb = max(self.seen.peak_mb, _high_water_mb(pid))
            time.sleep(0.003)

    async def _count_lanes(self, jobs: Runtime) -> None:
        """Fill every lane that the capability that works and another one may have."""
        jobs.register(Manifest(name="more", object="neighbours:work", path=(SAMPLES,), concurrency=LANES))
        await jobs.call("more", {"seconds": 0})
        waiting = [
            await jobs.submit(name, {"seconds": 1.0})
            for name in ("work", "more")
            for _ in range(PLACES["work"])
        ]
        await until(lambda: jobs.queue.state.running == LANES, 30)
        self.seen.running_at_once = jobs.queue.state.running
        ended = [await jobs.wait(job.id) for job in waiting]
        assert {job.state for job in ended} == {JobState.COMPLETED}
        assert (jobs.queue.state.running, book_of(jobs).reserved()) == (0, {})


def _high_water_mb(pid: int) -> float:
    try:
        rows = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return 0.0
    return next((int(row.split()[1]) / 1024 for row in rows if row.startswith("VmHWM:")), 0.0)


async def live_together(folder: Path, seconds: float, window: float) -> Seen:
    return await Neighbours(folder).run(seconds, window)


def main(seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        seen = asyncio.run(live_together(Path(folder), seconds, min(50.0, seconds / 2)))
    print(f"{len(seen.together)} windows together, {len(seen.alone)} alone")
    print("good jobs a second alone:   ", " ".join(f"{rate:.1f}" for rate in seen.alone))
    print("good jobs a second together:", " ".join(f"{rate:.1f}" for rate in seen.together))
    print(f"kept: {seen.kept:.1%} (median over neighbouring windows)")
    print("ends of the others:", dict(seen.ends))
    print(f"leaking worker: {seen.peak_mb:.1f} MB at most, limit {LIMIT:.0f} MB ({seen.peak_mb / LIMIT:.1%})")
    print(f"lanes: {seen.running_at_once} of {LANES} at once afterwards")


if __name__ == "__main__":
    main(float(sys.argv[1]))
