# pyright: reportPrivateUsage=false
"""Memory on real workers: admitted by what was learned, freed by those who hold it idle."""

import time
from pathlib import Path

import pytest

from failwell.jobs.job import JobState
from failwell.jobs.memory.ledger import Pool
from failwell.jobs.memory.needs import _towards
from failwell.jobs.runtime import Runtime
from tests.jobs.queues import (
    OutsideWorld,
    a_capability,
    a_gpu,
    a_model,
    a_runtime,
    began,
    book_of,
    types,
    when,
)
from tests.jobs.workers import run, until


@pytest.mark.acceptance("cjm-substrate 43")
@pytest.mark.parametrize(("second", "together"), [(6_000, False), (2_000, True)])
def test_learned_peaks_decide_whether_two_run_together(tmp_path: Path, second: int, together: bool) -> None:
    async def work() -> None:
        gpu, go = a_gpu(tmp_path), tmp_path / "go"
        go.touch()
        async with a_runtime(tmp_path, world=OutsideWorld(gpu)) as jobs:
            for name, peak in (("a", 6_000), ("b", second)):
                jobs.register(a_model(name), config={"gpu": str(gpu), "keeps": False})
                until_seen = tmp_path / f"{name}.seen"
                job = await jobs.submit(name, {"mb": peak, "until": str(until_seen)})
                await began(until_seen)
                # The peak is what was seen during the call, not what is left after it.
                await until(lambda name=name: _peak(jobs, name, "gpu") > 0)
                until_seen.touch()
                await jobs.wait(job.id)
            go.unlink()

            first = await jobs.submit("a", {"mb": 6_000, "until": str(go)})
            await began(go)
            other = await jobs.submit("b", {"mb": second})
            if together:
                await jobs.wait(other.id)
            else:
                await until(lambda: jobs.job(other.id).block_reason is not None)
                assert "running jobs leave" in str(jobs.job(other.id).block_reason)
            assert jobs.job(first.id).state is JobState.RUNNING
            go.touch()
            await jobs.wait(first.id)
            await jobs.wait(other.id)

    run(work())


@pytest.mark.acceptance("cjm-substrate 43")
def test_who_holds_its_memory_already_is_not_let_in_beyond_what_is_promised_to_others(tmp_path: Path) -> None:
    async def work() -> None:
        gpu, go = a_gpu(tmp_path), tmp_path / "go"
        async with a_runtime(tmp_path, world=OutsideWorld(gpu)) as jobs:
            for name, held in (("a", 5_000), ("b", 4_500)):
                jobs.register(a_model(name), config={"gpu": str(gpu)})
                await jobs.call(name, {"mb": held})
            first = await jobs.submit("a", {"mb": 5_000, "until": str(go)})
            await began(go)
            other = await jobs.submit("b", {"mb": 4_500})
            await until(lambda: jobs.job(other.id).block_reason is not None)

            assert "running jobs leave 4,000 MB" in str(jobs.job(other.id).block_reason)
            assert jobs.job(first.id).state is JobState.RUNNING
            go.touch()
            assert (await jobs.wait(other.id)).state is JobState.COMPLETED

    run(work())


def _peak(jobs: Runtime, name: str, what: str) -> float:
    book = book_of(jobs)
    peak = book._peaks.get(name)
    return 0.0 if peak is None else getattr(peak, what)


@pytest.mark.acceptance("cjm-substrate 44")
def test_what_can_never_fit_fails_at_once_with_numbers(tmp_path: Path) -> None:
    async def work() -> None:
        gpu = a_gpu(tmp_path)
        world = OutsideWorld(gpu)
        async with a_runtime(tmp_path, world=world) as jobs:
            jobs.register(a_model("a"), config={"gpu": str(gpu)})
            await jobs.call("a", {"mb": 9_500})
            await jobs.worker("a").stop()

            job = await jobs.submit("a", {"mb": 9_500})
            ended = await jobs.wait(job.id)

            assert (ended.state, ended.attempt) == (JobState.FAILED, 0)
            assert ended.error is not None
            assert (ended.error.kind, ended.error.retryable) == ("resource.never_fits", False)
            short = ended.error.resource_shortfall
            assert short is not None
            assert (short.resource, short.needed, short.available) == ("gpu_vram_mb", 9_500, 9_000)

    run(work())


@pytest.mark.acceptance("cjm-substrate 45", "cjm-substrate 47")
def test_a_blocked_job_says_why_once_and_the_largest_idle_holder_makes_room(tmp_path: Path) -> None:
    async def work() -> None:
        gpu, go = a_gpu(tmp_path), tmp_path / "go"
        async with a_runtime(tmp_path, world=OutsideWorld(gpu)) as jobs:
            wanted_go = tmp_path / "wanted_go"
            peaks = {"needy": 4_000, "small": 300, "large": 4_000, "wanted": 4_200, "busy": 500}
            for name, peak in peaks.items():
                jobs.register(a_model(name), config={"gpu": str(gpu)})
                await jobs.call(name, {"mb": peak})
                if name == "needy":
                    await jobs.worker("needy").stop()
            # Somebody waits for the largest of all, which is switched off for the moment.
            before = await jobs.submit("wanted", {"mb": 4_200, "until": str(wanted_go)})
            await began(wanted_go)
            waiting = await jobs.submit("wanted", {"mb": 4_200})
            await jobs.disable("wanted")
            wanted_go.touch()
            await jobs.wait(before.id)
            running = await jobs.submit("busy", {"mb": 500, "until": str(go)})
            await began(go)
            pids = {name: jobs.worker(name).pid for name in ("small", "wanted", "busy")}

            job = await jobs.submit("needy", {"mb": 4_000})
            ended = await jobs.wait(job.id)

            assert ended.state is JobState.COMPLETED
            assert types(jobs, job) == ["submitted", "blocked", "started", "completed"]
            told = [event.data for event in jobs.store.events() if event.type == "worker:evicted"]
            assert [(one["instance"], one["how"]) for one in told] == [("large", "stopped")]
            assert {name: jobs.worker(name).pid for name in ("small", "wanted", "busy")} == pids
            assert jobs.job(waiting.id).state is JobState.PENDING
            go.touch()
            await jobs.wait(running.id)

    run(work())


@pytest.mark.acceptance("cjm-substrate 45")
def test_room_that_somebody_outside_makes_is_noticed(tmp_path: Path) -> None:
    async def work() -> None:
        gpu = a_gpu(tmp_path)
        outside = gpu / "0"
        async with a_runtime(tmp_path, world=OutsideWorld(gpu)) as jobs:
            jobs.register(a_model("needy"), config={"gpu": str(gpu)})
            await jobs.call("needy", {"mb": 6_000})
            await jobs.worker("needy").stop()
            outside.write_text("8000")
            job = await jobs.submit("needy", {"mb": 6_000})
            await until(lambda: jobs.job(job.id).block_reason is not None)
            assert jobs.job(job.id).state is JobState.PENDING
            outside.write_text("0")
            freed = time.time()

            assert (await jobs.wait(job.id)).state is JobState.COMPLETED
            assert types(jobs, job).count("blocked") == 1
            # The worker starts anew, which takes most of it.
            assert when(jobs, job, "started") - freed < 3.0

    run(work())


@pytest.mark.acceptance("cjm-substrate 46")
@pytest.mark.parametrize("short", ["ram", "disk"])
def test_memory_and_disk_block_visibly_and_the_job_starts_when_they_are_there(
    tmp_path: Path, short: str
) -> None:
    async def work() -> None:
        world = OutsideWorld()
        go = tmp_path / "go"
        async with a_runtime(tmp_path, world=world) as jobs:
            jobs.register(a_capability())
            world.disk = Pool(100_000, 50_000)
            job = await jobs.submit("worker", {"path": str(go), "mb": 200, "disk_mb": 64}, action="until")
            await began(go)
            world.disk = Pool(100_000, 49_900)
            await until(lambda: _peak(jobs, "worker", "ram") > 200 and _peak(jobs, "worker", "disk") >= 100)
            go.touch()
            await jobs.wait(job.id)
            await jobs.worker("worker").stop()
            low = Pool(100_000, 20)
            if short == "ram":
                world.ram = low
            else:
                world.disk = low
            await book_of(jobs).look()

            blocked = await jobs.submit("worker", {"value": 1})
            await until(lambda: jobs.job(blocked.id).block_reason is not None)
            words = "MB more of memory" if short == "ram" else "MB more of disk space"
            assert words in str(jobs.job(blocked.id).block_reason)
            world.ram = world.disk = Pool(100_000, 90_000)

            assert (await jobs.wait(blocked.id)).result == 1

    run(work())


@pytest.mark.acceptance("cjm-substrate 48", "cjm-substrate 50")
def test_for_an_unmeasured_job_every_idle_holder_goes_and_its_second_attempt_is_whole(tmp_path: Path) -> None:
    async def work() -> None:
        gpu, go = a_gpu(tmp_path), tmp_path / "go"
        config = {"gpu": str(gpu), "total": 10_000}
        async with a_runtime(tmp_path, world=OutsideWorld(gpu), lanes=4) as jobs:
            jobs.register(a_capability("cpu"))
            await jobs.call("cpu", {"value": 1})
            for name, kind, peak in (("one", "Model", 3_000), ("two", "Releasing", 4_000)):
                jobs.register(a_model(name, kind), config={"gpu": str(gpu)})
                await jobs.call(name, {"mb": peak})
            before = {name: jobs.worker(name).pid for name in ("cpu", "one", "two")}
            jobs.register(a_model("needy", concurrency=2), config=config)

            job = await jobs.submit("needy", {"mb": 8_000, "until": str(go)})
            await began(go)
            await until(lambda: jobs.job(job.id).progress == 0.25)
            seen = jobs.job(job.id)
            assert jobs.cancel(job.id)
            ended = await jobs.wait(job.id)

            assert (seen.state, seen.retry_count) == (JobState.RUNNING, 1)
            assert (ended.state, ended.attempt) == (JobState.CANCELLED, 2)
            assert types(jobs, job).count("retrying") == 1
            told = {event.data["instance"]: event.data["how"] for event in jobs.store.events()
                    if event.type == "worker:evicted"}  # fmt: skip
            assert told == {"one": "stopped", "two": "released"}
            assert jobs.worker("cpu").pid == before["cpu"]
            assert jobs.worker("two").pid == before["two"]
            assert jobs.worker("one").pid is None
            assert await jobs.call("needy", action="seen_config") == {**config, "keeps": True}
            assert jobs.worker("needy").manifest.concurrency == 2

    run(work())


@pytest.mark.acceptance("cjm-substrate 50")
def test_a_shortage_that_clears_ends_well_with_one_retry(tmp_path: Path) -> None:
    async def work() -> None:
        gpu = a_gpu(tmp_path)
        async with a_runtime(tmp_path, world=OutsideWorld(gpu)) as jobs:
            jobs.register(a_model("resident"), config={"gpu": str(gpu)})
            await jobs.call("resident", {"mb": 7_000})
            jobs.register(a_model("needy"), config={"gpu": str(gpu)})
            job = await jobs.submit("needy", {"mb": 8_000})
            ended = await jobs.wait(job.id)

            assert (ended.state, ended.retry_count, ended.error) == (JobState.COMPLETED, 1, None)

    run(work())


@pytest.mark.acceptance("cjm-substrate 49")
def test_a_want_of_main_memory_ends_who_holds_main_memory(tmp_path: Path) -> None:
    async def work() -> None:
        gpu = a_gpu(tmp_path)
        async with a_runtime(tmp_path, world=OutsideWorld(gpu)) as jobs:
            jobs.register(a_model("on_gpu"), config={"gpu": str(gpu)})
            await jobs.call("on_gpu", {"mb": 9_000})
            jobs.register(a_capability("needy"))
            jobs.register(a_capability("holder"))
            await jobs.call("holder", {"mb": 150}, action="keep")
            await until(lambda: (jobs.worker("holder").memory() or _NOTHING).rss_mb > 150)
            on_gpu = jobs.worker("on_gpu").pid

            job = await jobs.submit(
                "needy",
                {"times": 1, "path": str(tmp_path / "count"), "kind": "resource"},
                action="fail_first",
            )
            ended = await jobs.wait(job.id)

            assert ended.state is JobState.COMPLETED
            assert jobs.worker("on_gpu").pid == on_gpu
            told = [event.data["instance"] for event in jobs.store.events() if event.type == "worker:evicted"]
            assert told == ["holder"]
            assert jobs.worker("holder").pid is None

    run(work())


class _Nothing:
    rss_mb = 0.0


_NOTHING = _Nothing()


def test_a_peak_that_was_an_outlier_is_forgotten_slowly() -> None:
    assert _towards(1_000, 2_000) == 2_000
    assert 940 < _towards(1_000, 0) < 960
