"""Main memory and disk as they really are: shipped probe, real workers, memory that is really taken.

What the queue may use is bounded by the means that people have: `Limits`, a control group, a small disk.
"""

import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from failwell.jobs import Limits
from failwell.jobs.job import Job, JobState
from failwell.jobs.manifest import Manifest, Resources
from failwell.jobs.runtime import Runtime
from failwell.jobs.workers.protocol import Supervision
from tests.jobs.machine import a_small_disk, in_a_small_process, within_memory
from tests.jobs.queues import (
    a_capability,
    a_holder,
    began,
    book_of,
    evicted,
    learned,
    lines,
    meet,
    pids,
    spans,
    types,
    when,
)
from tests.jobs.workers import SAMPLES, run, until

pytestmark = pytest.mark.slow
"""Real memory is taken and given back, which takes its time."""

BOUND = 3.0
"""Seconds within which room that somebody else made is noticed: the queue looks once a second."""


def a_hungry_one(name: str, kind: str = "Hungry", **fields: Any) -> Manifest:
    return Manifest(name=name, object=f"hungry:{kind}", path=(SAMPLES,), **fields)


@asynccontextmanager
async def a_shipped_runtime(
    folder: Path, *, state: Path | None = None, **wishes: Any
) -> AsyncGenerator[Runtime]:
    """A runtime as anybody makes one, with nothing replaced."""
    async with Runtime(state or folder / "state", registry=folder / "registry", **wishes) as jobs:
        yield jobs


async def blocked(jobs: Runtime, job: Job) -> str:
    """Why it does not start."""
    await until(lambda: jobs.job(job.id).block_reason is not None)
    return str(jobs.job(job.id).block_reason)


async def outdated(jobs: Runtime) -> None:
    """Wait until the queue would not start anything by what it saw last."""
    book = book_of(jobs)
    assert book is not None
    await until(lambda: not book.is_fresh)


async def holding(jobs: Runtime, name: str, mb: int, path: Path, **more: Any) -> Job:
    """A job that holds `mb` until `path` is there, and does so already."""
    job = await jobs.submit(name, {"mb": mb, "until": str(path), **more})
    await began(path)
    return job


async def measure(jobs: Runtime, name: str, mb: int, *, kind: str = "Hungry", keep: bool = False) -> None:
    jobs.register(a_hungry_one(name, kind, memory_limit=mb + 100))
    assert await jobs.call(name, {"mb": mb, "keep": keep}) == 7


def is_near(seen: float, mb: float) -> bool:
    """A bare interpreter holds some 15 MB of its own."""
    return mb <= seen <= mb * 1.1 + 30


# ------------------------------------------------------------------ measuring


@pytest.mark.acceptance("cjm-substrate 42")
def test_first_runs_beside_others_teach_what_each_really_took(tmp_path: Path) -> None:
    sizes = {"small": 100, "large": 400}

    async def work() -> None:
        go, known_log = tmp_path / "go", tmp_path / "known"
        async with a_shipped_runtime(tmp_path) as jobs:
            await measure(jobs, "known", 40)
            busy = await holding(jobs, "known", 40, go, log=str(known_log))
            firsts: list[Job] = []
            for name, mb in sizes.items():
                jobs.register(a_hungry_one(name))
                firsts.append(
                    await holding(jobs, name, mb, tmp_path / name, log=str(tmp_path / f"{name}.log"))
                )
            for name in ("go", *sizes):
                (tmp_path / name).touch()
            ended = [await jobs.wait(one.id) for one in (busy, *firsts)]

            assert [one.error for one in ended if one.state is not JobState.COMPLETED] == []
            assert meet(spans(tmp_path / "small.log"), spans(tmp_path / "large.log"))
            for name, mb in sizes.items():
                profile = learned(jobs, name)
                assert profile is not None
                assert is_near(profile.ram_mb, mb), profile

    run(work())


@pytest.mark.acceptance("cjm-substrate 42")
def test_what_a_call_took_between_two_pulses_is_learned_all_the_same(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_shipped_runtime(tmp_path, supervision=Supervision(pulse=30.0)) as jobs:
            await measure(jobs, "brief", 200)

            profile = learned(jobs, "brief")
            assert profile is not None
            assert is_near(profile.ram_mb, 200), profile

    run(work())


@pytest.mark.acceptance("cjm-substrate 42")
def test_only_what_ended_well_is_known_and_only_as_it_is_configured(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_shipped_runtime(tmp_path) as jobs:
            await measure(jobs, "known", 40)
            await measure(jobs, "fresh", 200)
            jobs.register(a_hungry_one("failing"))
            failed = await jobs.wait((await jobs.submit("failing", {"mb": 100}, action="fail")).id)
            assert (failed.state, learned(jobs, "failing")) == (JobState.FAILED, None)

            go = tmp_path / "go"
            busy = await holding(jobs, "known", 40, go)
            await jobs.configure("fresh", {"size": "large"})
            after_a_change = learned(jobs, "fresh")
            # More than before: the kernel's mark of a process tells of a short call only if it rises.
            sizes = {"failing": 200, "fresh": 240}
            for name, mb in sizes.items():
                job = await jobs.submit(name, {"mb": mb})
                assert (await jobs.wait(job.id)).state is JobState.COMPLETED
            assert jobs.job(busy.id).state is JobState.RUNNING
            go.touch()
            await jobs.wait(busy.id)

            assert after_a_change is None
            for name, mb in sizes.items():
                profile = learned(jobs, name)
                assert profile is not None
                assert is_near(profile.ram_mb, mb), profile

    run(work())


# ------------------------------------------------------------------ admission


@contextmanager
def a_machine_with(mb: int, how: str) -> Generator[Limits]:
    """As if the machine had so much memory: by the queue's own limit, or by the kernel's."""
    if how == "limit":
        yield Limits(memory_mb=mb)
    else:
        # Nine tenths of what there is may be used.
        with within_memory(int(mb / 0.9)):
            yield Limits()


@pytest.mark.acceptance("cjm-substrate 43")
@pytest.mark.parametrize("how", ["limit", "group"])
def test_main_memory_is_never_promised_twice_and_small_ones_run_together(tmp_path: Path, how: str) -> None:
    sizes = {"one": 550, "two": 550, "small": 200}
    logs = {name: tmp_path / name for name in sizes}
    go = tmp_path / "go"

    async def work(limits: Limits) -> None:
        async with a_shipped_runtime(tmp_path, limits=limits) as jobs:
            for name, mb in sizes.items():
                await measure(jobs, name, mb)
            first = await holding(jobs, "one", sizes["one"], go, log=str(logs["one"]))
            second = await jobs.submit("two", {"mb": sizes["two"], "log": str(logs["two"])})
            why = await blocked(jobs, second)
            beside = await jobs.submit("small", {"mb": sizes["small"], "log": str(logs["small"])})
            assert (await jobs.wait(beside.id)).state is JobState.COMPLETED
            assert jobs.job(first.id).state is JobState.RUNNING
            rest = [
                await jobs.submit(name, {"mb": sizes[name], "log": str(logs[name])})
                for _ in range(5)
                for name in ("one", "two")
            ]
            go.touch()
            ended = [await jobs.wait(one.id) for one in (first, second, *rest)]

            assert "running jobs leave" in why
            assert [one.error for one in ended if one.state is not JobState.COMPLETED] == []
            held = {name: spans(path) for name, path in logs.items()}
            assert [len(held[name]) for name in sizes] == [6, 6, 1]
            assert not meet(held["one"], held["two"])
            assert meet(held["one"], held["small"])
            assert evicted(jobs) == []

    with a_machine_with(1_000, how) as limits:
        run(work(limits))


@pytest.mark.acceptance("cjm-substrate 44")
@pytest.mark.parametrize("how", ["limit", "group"])
def test_more_main_memory_than_there_may_be_fails_at_once_with_numbers(tmp_path: Path, how: str) -> None:
    async def learn() -> None:
        async with a_shipped_runtime(tmp_path) as jobs:
            await measure(jobs, "large", 660)

    async def work(limits: Limits) -> None:
        async with a_shipped_runtime(tmp_path, limits=limits) as jobs:
            jobs.register(a_hungry_one("large"))
            job = await jobs.submit("large", {"mb": 660})
            ended = await jobs.wait(job.id)

            assert (ended.state, ended.attempt) == (JobState.FAILED, 0)
            assert ended.error is not None
            assert (ended.error.kind, ended.error.retryable) == ("resource.never_fits", False)
            short = ended.error.resource_shortfall
            assert short is not None
            assert short.resource == "system_ram_mb"
            assert is_near(short.needed, 660), short
            assert abs(short.available - 650) < 2, short
            assert jobs.worker("large").pid is None

    run(learn())
    with a_machine_with(650, how) as limits:
        run(work(limits))


@pytest.mark.acceptance("cjm-substrate 44")
def test_more_disk_than_there_is_fails_at_once_with_numbers(tmp_path: Path) -> None:
    async def work(disk: Path) -> None:
        file = disk / "file"
        async with a_shipped_runtime(tmp_path, state=disk / "state") as jobs:
            jobs.register(a_hungry_one("writer"))
            await jobs.call("writer", {"path": str(file), "mb": 94}, action="fill")
            file.unlink()
            job = await jobs.submit("writer", {"path": str(file), "mb": 94}, action="fill")
            ended = await jobs.wait(job.id)

            assert (ended.state, ended.attempt) == (JobState.FAILED, 0)
            assert ended.error is not None
            assert ended.error.kind == "resource.never_fits"
            short = ended.error.resource_shortfall
            assert short is not None
            assert (short.resource, short.available) == ("disk_mb", 90.0)
            assert 94 <= short.needed < 97, short
            assert not file.exists()

    with a_small_disk(tmp_path / "disk", 100) as disk:
        run(work(disk))


# ------------------------------------------------------------------ waiting for others


@pytest.mark.acceptance("cjm-substrate 45", "cjm-substrate 46")
def test_main_memory_that_another_program_gives_back_is_noticed_soon(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_shipped_runtime(tmp_path) as jobs:
            await measure(jobs, "needy", 500)
            await jobs.worker("needy").stop()
            async with a_holder("ram_holder.py", 700):
                await outdated(jobs)
                job = await jobs.submit("needy", {"mb": 500})
                why = await blocked(jobs, job)
            freed = time.time()
            ended = await jobs.wait(job.id)

            assert "MB more of memory, and" in why
            assert (ended.state, ended.attempt) == (JobState.COMPLETED, 1), ended.error
            assert types(jobs, job) == ["submitted", "blocked", "started", "completed"]
            assert when(jobs, job, "started") - freed < BOUND
            assert evicted(jobs) == []

    with within_memory(1_000):
        run(work())


@pytest.mark.acceptance("cjm-substrate 46")
def test_disk_space_that_somebody_gives_back_is_noticed_soon(tmp_path: Path) -> None:
    async def work(disk: Path) -> None:
        file, ballast = disk / "file", disk / "ballast"
        async with a_shipped_runtime(tmp_path, state=disk / "state") as jobs:
            jobs.register(a_hungry_one("writer"))
            await jobs.call("writer", {"path": str(file), "mb": 50}, action="fill")
            file.unlink()
            profile = learned(jobs, "writer")
            ballast.write_bytes(b"x" * (60 << 20))
            await outdated(jobs)
            job = await jobs.submit("writer", {"path": str(file), "mb": 50}, action="fill")
            why = await blocked(jobs, job)
            ballast.unlink()
            freed = time.time()
            ended = await jobs.wait(job.id)

            assert profile is not None
            assert 50 <= profile.disk_mb < 55
            assert "MB more of disk space, and" in why
            assert (ended.state, ended.result) == (JobState.COMPLETED, 50), ended.error
            assert types(jobs, job) == ["submitted", "blocked", "started", "completed"]
            assert when(jobs, job, "started") - freed < BOUND

    with a_small_disk(tmp_path / "disk", 100) as disk:
        run(work(disk))


# ------------------------------------------------------------------ making room


@pytest.mark.acceptance("cjm-substrate 45", "cjm-substrate 47", "cjm-substrate 49")
def test_the_largest_idle_holder_of_main_memory_makes_room_and_nobody_else(tmp_path: Path) -> None:
    residents = {"wanted": 420, "large": 380, "small": 120, "busy": 80}
    go, wanted_go = tmp_path / "go", tmp_path / "wanted_go"

    async def work() -> None:
        async with a_shipped_runtime(tmp_path, limits=Limits(memory_mb=1_400)) as jobs:
            await measure(jobs, "needy", 450)
            await jobs.worker("needy").stop()
            # What it has is on the card; in main memory it is as good as empty.
            jobs.register(a_capability("on_card", resources=Resources(gpu=True)))
            await jobs.call("on_card", {"value": 1})
            for name, mb in residents.items():
                await measure(jobs, name, mb, keep=True)
            # Somebody waits for the largest of all, which is switched off for the moment.
            before = await holding(jobs, "wanted", residents["wanted"], wanted_go, keep=True)
            waiting = await jobs.submit("wanted", {"mb": residents["wanted"]})
            await jobs.disable("wanted")
            wanted_go.touch()
            await jobs.wait(before.id)
            running = await holding(jobs, "busy", residents["busy"], go, keep=True)
            spared = pids(jobs, "wanted", "small", "busy", "on_card")

            job = await jobs.submit("needy", {"mb": 450})
            ended = await jobs.wait(job.id)

            assert (ended.state, ended.attempt) == (JobState.COMPLETED, 1), ended.error
            assert types(jobs, job) == ["submitted", "blocked", "started", "completed"]
            assert evicted(jobs) == [("large", "stopped")]
            assert pids(jobs, *spared) == spared
            assert jobs.job(waiting.id).state is JobState.PENDING
            go.touch()
            await jobs.wait(running.id)
            await jobs.enable("wanted")
            assert (await jobs.wait(waiting.id)).state is JobState.COMPLETED

    run(work())


@pytest.mark.acceptance("cjm-substrate 49", "cjm-substrate 50")
@pytest.mark.parametrize("ending", ["completed", "cancelled"])
@in_a_small_process
def test_who_the_kernel_ended_for_memory_succeeds_once_the_idle_ones_are_gone(
    tmp_path: Path, ending: str
) -> None:
    config = {"colour": "green"}

    async def work(folder: Path) -> bool:
        go = folder / "go"
        # With one lane, a first run may use all that there is.
        async with a_shipped_runtime(folder, lanes=1) as jobs:
            jobs.register(a_capability("hollow"))
            await jobs.call("hollow", {"value": 1})
            await measure(jobs, "stiff", 300, keep=True)
            await measure(jobs, "giving", 300, kind="Giving", keep=True)
            spared = pids(jobs, "hollow", "giving")
            jobs.register(a_hungry_one("needy", concurrency=2), config=config)

            job = await jobs.submit("needy", {"mb": 600, "until": str(go), "doomed": True})
            await until(lambda: (jobs.job(job.id).attempt, jobs.job(job.id).progress) == (2, 0.25))
            seen = jobs.job(job.id)
            if ending == "completed":
                go.touch()
            else:
                assert jobs.cancel(job.id)
            ended = await jobs.wait(job.id)
            deaths = [event for event in jobs.store.events() if event.type == "worker:died"]
            if any(not event.data["jobs"] and not event.data["expected"] for event in deaths):
                return False

            assert (seen.state, seen.retry_count) == (JobState.RUNNING, 1)
            assert (ended.state.value, ended.retry_count) == (ending, 1), ended.error
            again = [
                event.data["kind"] for event in jobs.store.events(job=job.id) if event.type == "retrying"
            ]
            assert again == ["worker.oom"]
            assert sorted(evicted(jobs)) == [("giving", "released"), ("stiff", "stopped")]
            assert pids(jobs, "hollow", "giving", "stiff") == {**spared, "stiff": None}
            assert await jobs.call("needy", action="seen_config") == config
            assert jobs.worker("needy").manifest.concurrency == 2
            return True

    # On a busy machine the kernel may end an idle one as well, and then nobody has to free it.
    with within_memory(1_000):
        assert any(run(work(tmp_path / str(number))) for number in range(3))


# ------------------------------------------------------------------ shortages that last


@pytest.mark.acceptance("cjm-substrate 51")
@pytest.mark.parametrize("numbers", [True, False])
def test_memory_that_the_kernel_refuses_is_asked_for_twice(tmp_path: Path, numbers: bool) -> None:
    async def work() -> None:
        count = tmp_path / "count"
        async with a_shipped_runtime(tmp_path) as jobs:
            jobs.register(a_hungry_one("large"))
            asked = {"mb": 300, "count": str(count), "numbers": numbers}
            job = await jobs.submit("large", asked, action="limited")
            ended = await jobs.wait(job.id)

            assert len(lines(count)) == 2
            assert (ended.state, ended.attempt) == (JobState.FAILED, 2)
            assert ended.error is not None
            assert ended.error.category.job == "resource"
            if numbers:
                short = ended.error.resource_shortfall
                assert short is not None
                assert (short.resource, short.needed, short.available) == ("system_ram_mb", 600, 300)

    run(work())


@pytest.mark.acceptance("cjm-substrate 51")
@in_a_small_process
def test_who_is_ended_for_memory_every_time_is_tried_twice(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_shipped_runtime(tmp_path) as jobs:
            jobs.register(a_hungry_one("large"))
            # Once it is measured it has no limit but the kernel's.
            await jobs.call("large", {"mb": 10})
            job = await jobs.submit("large", {"mb": 900, "doomed": True})
            ended = await jobs.wait(job.id)

            assert (ended.state, ended.attempt) == (JobState.FAILED, 2)
            assert ended.error is not None
            assert (ended.error.kind, ended.error.category.job) == ("worker.oom", "resource")
            assert ended.error.details["oom_kills"] >= 1

    with within_memory(500):
        run(work())


@pytest.mark.acceptance("cjm-substrate 51")
def test_a_disk_that_stays_full_is_tried_twice(tmp_path: Path) -> None:
    async def work(disk: Path) -> None:
        file = disk / "file"
        async with a_shipped_runtime(tmp_path, state=disk / "state") as jobs:
            jobs.register(a_hungry_one("writer"))
            job = await jobs.submit("writer", {"path": str(file), "mb": 70}, action="fill")
            ended = await jobs.wait(job.id)

            assert (ended.state, ended.attempt) == (JobState.FAILED, 2)
            assert ended.error is not None
            assert (ended.error.kind, ended.error.category.job) == ("resource.disk", "resource")

    with a_small_disk(tmp_path / "disk", 40) as disk:
        run(work(disk))
