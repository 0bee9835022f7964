"""The host's event loop is free while jobs are repeated and memory is taken from others."""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import pytest

from failwell.jobs.job import JobState
from failwell.jobs.memory.machine import MachineMemory
from failwell.jobs.queue.state import Rules
from tests.jobs.queues import OutsideWorld, a_capability, a_gpu, a_model, a_runtime, lines
from tests.jobs.workers import run

LONGEST = 0.1
Held = list[tuple[float, str]]
"""How long each turn held the loop up, and what it was."""


def _not_scheduled() -> float:
    """Seconds that this thread wanted to run and another one had the processor; 0 where the kernel does not say."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


class SlowWorld(OutsideWorld):
    """A machine whose memory takes longer to read than the loop may be held up, as a busy driver's does."""

    def read(self) -> MachineMemory:
        Event().wait(1.2 * LONGEST)
        return super().read()


@contextmanager
def watched() -> Generator[Held]:
    """How long each turn of the loop held it up: all of the time that passed, waiting for disks and locks
    included, less what the machine gave to other programs.
    """
    held: Held = []
    original = asyncio.Handle._run

    def timed(self: asyncio.Handle) -> None:
        begun, elsewhere = monotonic(), _not_scheduled()
        original(self)
        held.append((monotonic() - begun - (_not_scheduled() - elsewhere), repr(self)))

    asyncio.Handle._run = timed
    try:
        yield held
    finally:
        asyncio.Handle._run = original


def too_long(tmp_path: Path, work: Callable[[Path], Coroutine[Any, Any, Held]]) -> Held:
    """The turns that took too long each time. What we do takes as long every time; starting a program also waits
    for a processor that runs it, and on a busy machine that is now and then as long.
    """
    found: Held = []
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = [one for one in run(work(folder)) if one[0] > LONGEST]
        if not found:
            break
    return found


@pytest.mark.slow
@pytest.mark.acceptance("cjm-substrate 52")
def test_the_loop_is_free_while_idle_workers_are_ended_and_a_job_is_repeated(tmp_path: Path) -> None:
    async def work(folder: Path) -> Held:
        gpu = a_gpu(folder)
        async with a_runtime(
            folder, world=SlowWorld(gpu), rules=Rules(lanes=4, rescan=0.05, calm=0.05)
        ) as jobs:
            for name in ("one", "two", "three"):
                # It does not end by itself, so that it takes long to end it.
                jobs.register(a_model(name, "Stubborn", stop_grace=0.5), config={"gpu": str(gpu)})
                await jobs.call(name, {"mb": 2_500})
            jobs.register(a_model("needy"), config={"gpu": str(gpu)})
            with watched() as held:
                job = await jobs.submit("needy", {"mb": 9_000})
                ended = await jobs.wait(job.id)

            told = [one.data["instance"] for one in jobs.store.events() if one.type == "worker:evicted"]
            assert (ended.state, ended.retry_count) == (JobState.COMPLETED, 1)
            assert sorted(told) == ["one", "three", "two"]
            assert len(held) > 50
            return held

    assert too_long(tmp_path, work) == []


@pytest.mark.acceptance("cjm-substrate 52")
def test_the_loop_is_free_while_many_jobs_are_repeated_beside_each_other(tmp_path: Path) -> None:
    async def work(folder: Path) -> Held:
        async with a_runtime(folder, a_capability(concurrency=4), lanes=4) as jobs:
            await jobs.call("worker", action="pid")

            async def one(number: int) -> Any:
                path = folder / f"count-{number}"
                wish = {"times": 1, "path": str(path), "after": 0.05}
                job = await jobs.submit("worker", wish, action="fail_first")
                ended = await jobs.wait(job.id)
                return ended.state, ended.retry_count, len(lines(path))

            with watched() as held:
                ended = await asyncio.gather(*(one(number) for number in range(60)))

            assert set(ended) == {(JobState.COMPLETED, 1, 2)}
            return held

    assert too_long(tmp_path, work) == []


def test_what_holds_the_loop_up_is_seen_whatever_it_waits_for(tmp_path: Path) -> None:
    async def work(_folder: Path) -> Held:
        with watched() as held:
            asyncio.get_running_loop().call_soon(Event().wait, 0.15)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        return held

    assert len(too_long(tmp_path, work)) == 1
