# pyright: reportPrivateUsage=false
# ruff: noqa: T201
"""Everything at once, by a seed: jobs of every sort, and somebody who kills, cancels, switches and unloads.

`python -m tests.jobs.storm SECONDS SEED` lets it rage for as long as one wants.
"""

import asyncio
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from failwell.calls.backoff import Backoff
from failwell.calls.policy import Match, Rule, Schedule
from failwell.errors.fault import Fault
from failwell.errors.faults import CapabilityDisabledError, CapabilityNotLoadedError
from failwell.jobs.job import Job, JobState
from failwell.jobs.manifest import Manifest, Resources
from failwell.jobs.queue.state import DEFAULT, Rules
from failwell.jobs.runtime import Runtime
from failwell.jobs.workers.protocol import Supervision
from failwell.processes.tree import descendants
from tests.jobs.queues import OutsideWorld, book_of
from tests.jobs.workers import SAMPLES, until

WORKERS = {"one": 1, "two": 2, "three": 3}
"""Instance → how many calls it takes at a time."""
MODELS = {"model": "Model", "giving": "Releasing"}
CROWD = 40
"""Jobs that may be there at a time."""
SOON = replace(
    DEFAULT,
    rules=(
        *DEFAULT.rules,
        Rule(match=Match(), schedule=Schedule(max_attempts=3, backoff=Backoff(curve="fixed", first=0.05))),
    ),
)
LATE = 2.0
"""Seconds after its deadline by which the end of a job may be written down on a machine that is busy."""


class Storm:
    """What was done to one runtime, and what is to be seen of it afterwards."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._rng = random.Random(seed)
        self._gpu = folder / "gpu"
        self._gpu.mkdir()
        self._tags = 0
        self._ids: list[str] = []
        self._stopped: set[int] = set()
        """Tags of jobs that somebody cancelled, or whose items somebody left."""
        self._tag_of: dict[str, int] = {}
        self._deeds: set[asyncio.Task[Any]] = set()
        self._away: set[str] = set()
        self._unhandled: list[str] = []
        self.done: Counter[str] = Counter()

    @property
    def submitted(self) -> int:
        return self._tags

    async def rage(self, is_over: Callable[["Storm"], bool]) -> dict[str, int]:
        """Let it go on until `is_over`, then calm down and look; how many jobs ended how comes back."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: self._unhandled.append(str(context)))
        before, processes = asyncio.all_tasks(), set(descendants(os.getpid()))
        async with Runtime(
            self._folder / "state",
            registry=self._folder / "registry",
            probe=OutsideWorld(self._gpu),
            rules=Rules(lanes=4, rescan=0.05, calm=0.05, starving=0.5, policy=SOON),
            supervision=Supervision(pulse=0.05, cooldown=0.3),
        ) as jobs:
            for name in (*WORKERS, *MODELS):
                self._register(jobs, name)
            while not is_over(self):
                await until(lambda: len(jobs.queue.state.live) <= CROWD, 60)
                await self._strike(jobs)
                if self._rng.random() < 0.3:
                    await asyncio.sleep(self._rng.random() * 0.02)
            await self._calm(jobs)
            counts = self._check(jobs)
        await asyncio.sleep(0)

        assert asyncio.all_tasks() == before
        assert set(descendants(os.getpid())) <= processes
        assert self._unhandled == []
        return counts

    # -------------------------------------------------------------- what happens

    def _register(self, jobs: Runtime, name: str) -> None:
        times: dict[str, Any] = {"cancel_grace": 0.3, "stop_grace": 0.5}
        if name in WORKERS:
            manifest = Manifest(
                name=name, object="stormy:Stormy", path=(SAMPLES,), concurrency=WORKERS[name], **times
            )
            jobs.register(manifest)
            return
        manifest = Manifest(
            name=name,
            object=f"queueing:{MODELS[name]}",
            path=(SAMPLES,),
            resources=Resources(gpu=True),
            **times,
        )
        jobs.register(manifest, config={"gpu": str(self._gpu)})

    async def _strike(self, jobs: Runtime) -> None:
        deed = self._rng.choices(
            [self._work, self._stream, self._load, self._cancel, self._reorder, self._kill, self._switch,
             self._configure, self._pause, self._unload, self._restart],
            [50, 6, 8, 14, 5, 4, 3, 3, 2, 1, 1],
        )[0]  # fmt: skip
        self.done[deed.__name__[1:]] += 1
        await deed(jobs)

    async def _work(self, jobs: Runtime) -> None:
        action, given = self._rng.choice(
            [
                ("execute", {"seconds": self._rng.random() * 0.1}),
                ("execute", {"seconds": 0.0}),
                ("execute", {"seconds": 0.0}),
                ("deaf", {"seconds": self._rng.random() * 0.1}),
                ("die", {"code": self._rng.randrange(1, 100)}),
                ("fail", {"kind": self._rng.choice(["transient", "resource", "fatal"])}),
            ]
        )
        wishes: dict[str, Any] = {"action": action, "priority": self._rng.randrange(3)}
        wishes["control"] = {"max_attempts": self._rng.randrange(1, 4)}
        if self._rng.random() < 0.15:
            wishes["timeout"] = 0.02 + self._rng.random() * 0.05
        if self._rng.random() < 0.15:
            wishes["deadline"] = datetime.now(UTC) + timedelta(seconds=self._rng.random() * 2 - 0.3)
        await self._submit(jobs, self._rng.choice([*WORKERS]), given, wishes)

    async def _load(self, jobs: Runtime) -> None:
        """Want more of the card than there is for all of them."""
        name = self._rng.choice([*MODELS])
        await self._submit(jobs, name, {"mb": self._rng.choice([500, 3_000, 6_000])}, {}, tagged=False)

    async def _submit(
        self, jobs: Runtime, name: str, given: dict[str, Any], wishes: dict[str, Any], *, tagged: bool = True
    ) -> None:
        self._tags += 1
        tag = self._tags
        try:
            job = await jobs.submit(name, {**given, "tag": tag} if tagged else given, **wishes)
        except (CapabilityDisabledError, CapabilityNotLoadedError):
            self._tags -= 1
            return
        self._ids.append(job.id)
        self._tag_of[job.id] = tag

    async def _stream(self, jobs: Runtime) -> None:
        self._tags += 1
        self._beside(self._take(jobs, self._rng.choice([*WORKERS]), self._tags, self._rng.randrange(80)))

    async def _take(self, jobs: Runtime, name: str, tag: int, most: int) -> None:
        """Take some of the items, one now and then; sometimes none for longer than it may take."""
        taken = 0
        limit = 0.3 if tag % 3 == 0 else None
        items = jobs.stream(name, {"tag": tag, "number": 40}, action="items", timeout=limit)
        try:
            async for _ in items:
                taken += 1
                if taken > most:
                    self._stopped.add(tag)
                    break
                if taken == 5 and tag % 2 == 0:
                    await asyncio.sleep(0.4)
        except (CapabilityDisabledError, CapabilityNotLoadedError):
            self._tags -= 1
        except Fault:
            # It was killed or timed out; its record says which, and is looked at in the end.
            return
        finally:
            await items.aclose()

    async def _cancel(self, jobs: Runtime) -> None:
        if self._ids:
            job = self._rng.choice(self._ids[-20:])
            if jobs.cancel(job):
                self._stopped.add(self._tag_of[job])

    async def _reorder(self, jobs: Runtime) -> None:
        if self._ids:
            jobs.reorder(self._rng.choice(self._ids[-10:]), self._rng.randrange(5))

    async def _kill(self, jobs: Runtime) -> None:
        name = self._rng.choice([*WORKERS, *MODELS])
        if name in self._away:
            return
        pid = jobs.worker(name).pid
        if pid is not None and pid in descendants(os.getpid()):
            os.kill(pid, signal.SIGKILL)

    async def _switch(self, jobs: Runtime) -> None:
        name = self._rng.choice([*WORKERS])
        await self._known(name, lambda: jobs.disable(name))
        await asyncio.sleep(self._rng.random() * 0.02)
        await self._known(name, lambda: jobs.enable(name))

    async def _configure(self, jobs: Runtime) -> None:
        name = self._rng.choice([*WORKERS])
        config = {"slow": self._rng.choice([0, 0, 0.05])}
        self._beside(self._known(name, lambda: jobs.configure(name, config)))

    async def _pause(self, jobs: Runtime) -> None:
        jobs.pause()
        await asyncio.sleep(self._rng.random() * 0.02)
        jobs.resume()

    async def _unload(self, jobs: Runtime) -> None:
        name = self._rng.choice([*WORKERS])
        if name not in self._away:
            self._away.add(name)
            self._beside(self._reload(jobs, name))

    async def _reload(self, jobs: Runtime, name: str) -> None:
        await jobs.unload(name)
        await asyncio.sleep(0.05)
        self._register(jobs, name)
        self._away.discard(name)

    async def _restart(self, jobs: Runtime) -> None:
        name = self._rng.choice([*WORKERS])
        self._beside(self._known(name, lambda: jobs.worker(name).restart()))

    async def _known(self, name: str, deed: Callable[[], Awaitable[Any]]) -> None:
        """Do something to an instance that may be dying, or gone."""
        if name in self._away:
            return
        try:
            await deed()
        except CapabilityNotLoadedError:
            return
        except Fault as fault:
            # Its worker ended under it, or may not be started for a moment.
            if not str(fault.kind).startswith("worker."):
                self._unhandled.append(repr(fault))

    def _beside(self, deed: Any) -> None:
        task = asyncio.ensure_future(deed)
        self._deeds.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: "asyncio.Task[Any]") -> None:
        self._deeds.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._unhandled.append(repr(task.exception()))

    # -------------------------------------------------------------- what is to be seen afterwards

    async def _calm(self, jobs: Runtime) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + 60
        while self._deeds or jobs.queue.state.live:
            assert loop.time() < end, _picture(jobs, self._deeds)
            for name in (*WORKERS, *MODELS):
                if name not in self._away:
                    jobs.worker(name).forgive()
                    await self._known(name, lambda name=name: jobs.enable(name))
            await asyncio.sleep(0.02)

    def _check(self, jobs: Runtime) -> dict[str, int]:
        known = jobs.store.jobs(limit=1_000_000)
        ends = Counter(
            event.job for event in jobs.store.events(limit=10_000_000) if event.job and event.is_final
        )
        by_state = Counter(job.state.value for job in known)
        counts = {state: much for state, much in jobs.counts().items() if much}

        without_one_end = [(job, ends[job.id]) for job in known if ends[job.id] != 1]
        assert not without_one_end, without_one_end
        assert {job.id for job in known} >= set(self._ids)
        assert counts == dict(by_state)
        assert sum(counts.values()) == self.submitted
        assert set(counts) <= {"completed", "failed", "cancelled"}
        assert [job for job in known if job.state is JobState.CANCELLED and not self._was_stopped(job)] == []
        assert [job for job in known if job.state is JobState.COMPLETED and _is_late(job)] == []
        assert jobs.queue.state.running == 0
        assert (book_of(jobs).reserved(), book_of(jobs)._peaks) == ({}, {})
        for name in (*WORKERS, *MODELS):
            assert (jobs._instances.loaded[name].entries, jobs.worker(name).in_flight) == ({}, ())
        return counts

    def _was_stopped(self, job: Job) -> bool:
        return self._tag_of.get(job.id, job.request.arguments.get("tag")) in self._stopped


def _is_late(job: Job) -> bool:
    deadline, end = job.request.deadline, job.completed_at
    return deadline is not None and end is not None and end > deadline + timedelta(seconds=LATE)


def _picture(jobs: Runtime, deeds: set[asyncio.Task[Any]]) -> str:
    live = [
        f"{one.id} {one.request.instance}.{one.request.action} {one.state} {one.block_reason} sent={one.is_sent}"
        f" cancelled={one.cancelled} task={one.task}"
        for one in jobs.queue.state.live.values()
    ]
    return "\n".join([*live[:10], *map(str, deeds), str(jobs.stats()["workers"])])


async def rage(folder: Path, seed: int, *, jobs: int | None = None, seconds: float | None = None) -> Storm:
    """A storm of so many jobs, or for so long."""
    made, loop = Storm(folder, seed), asyncio.get_running_loop()
    end = loop.time() + (seconds or 0.0)
    counts = await made.rage(
        lambda storm: loop.time() >= end if jobs is None else storm.submitted >= jobs,
    )
    made.done.update({f"jobs {state}": much for state, much in counts.items()})
    return made


def main() -> None:
    """Rage for SECONDS with SEED."""
    seconds, seed = float(sys.argv[1]), int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        made = asyncio.run(rage(Path(folder), seed, seconds=seconds))
    for what, much in sorted(made.done.items()):
        print(f"{what}: {much}")


if __name__ == "__main__":
    main()
