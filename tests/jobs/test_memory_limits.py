"""Memory limits that hold: of one worker with everything that it starts, and of all workers together."""

import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.calls.policy import GiveUp, Match, Policy, RetryState, Rule, decide
from failwell.errors.report import ErrorReport
from failwell.jobs import Limits
from failwell.jobs.faults import memory_limit_reached
from failwell.jobs.job import Job, JobState
from failwell.jobs.manifest import Manifest
from failwell.jobs.memory.ledger import Pool
from failwell.jobs.runtime import Runtime
from failwell.processes.guardian import MemoryWatch
from failwell.processes.tree import children_below, memory_shares, resident_mb
from failwell.processes.worker_memory import OverLimit
from tests.jobs.queues import OutsideWorld, a_runtime, began, book_of, evicted, learned, types
from tests.jobs.workers import SAMPLES, parent_of, run, until

LIMIT = 120


def a_leaky_one(name: str = "leaky", **fields: Any) -> Manifest:
    return Manifest(name=name, object="leaky:Leaky", path=(SAMPLES,), **fields)


def a_machine(mb: float) -> OutsideWorld:
    world = OutsideWorld()
    world.ram = Pool(mb, mb)
    return world


class Peak:
    """The most memory that a worker used, as somebody outside saw it."""

    def __init__(self) -> None:
        self.mb = 0.0
        self.is_over = threading.Event()

    def watch(self, guardian: int) -> None:
        # Without a pause this thread would take a core from the guardian that it watches.
        while not self.is_over.wait(0.001):
            pids = children_below(guardian)
            sizes = [memory_shares(pid)[1] if len(pids) > 1 else resident_mb(pid) for pid in pids]
            self.mb = max(self.mb, sum(sizes))


@contextmanager
def watched(jobs: Runtime, name: str) -> Generator[Peak]:
    """Look at a worker that runs, all the time."""
    peak, pid = Peak(), jobs.worker(name).pid
    assert pid is not None
    thread = threading.Thread(target=peak.watch, args=(parent_of(pid),))
    thread.start()
    try:
        yield peak
    finally:
        peak.is_over.set()
        thread.join()


async def failed(jobs: Runtime, job: Job) -> tuple[Job, ErrorReport]:
    ended = await jobs.wait(job.id)
    assert ended.state is JobState.FAILED
    assert ended.error is not None
    return ended, ended.error


# ------------------------------------------------------------------ one worker


def test_a_worker_is_ended_at_its_limit_however_it_takes_its_memory(tmp_path: Path) -> None:
    ways: list[tuple[str, dict[str, Any]]] = [
        ("leak", {"step": 0.25}),
        ("leak", {"step": 1_000.0}),
        ("leak_in_a_child", {}),
    ]

    async def work() -> None:
        async with a_runtime(tmp_path, a_leaky_one(memory_limit=LIMIT)) as jobs:
            for action, arguments in ways:
                await jobs.call("leaky", action="pid")
                with watched(jobs, "leaky") as peak:
                    job = await jobs.submit("leaky", arguments, action=action)
                    ended, error = await failed(jobs, job)

                assert (error.kind, error.category.job, ended.attempt) == (
                    "resource.system_memory",
                    "resource",
                    1,
                )
                assert types(jobs, job) == ["submitted", "started", "failed"]
                short = error.resource_shortfall
                assert short is not None
                assert (short.resource, short.available) == ("system_ram_mb", LIMIT)
                assert LIMIT <= short.needed < LIMIT * 1.1
                assert LIMIT * 0.5 < peak.mb < LIMIT * 1.1, (action, peak.mb)
                assert (error.details["out_of_memory"], error.details["limit_source"]) == (
                    "confirmed",
                    "manifest",
                )
                assert "and its `memory_limit` is 120 MB" in error.message
                assert error.user_action is not None
                assert "Raise `memory_limit`" in str(error.user_action.detail)
            # Nothing of it is left, and the next one works.
            assert await jobs.call("leaky", {"value": 1}) == 1

    run(work())


@pytest.mark.slow
def test_memory_that_processes_share_counts_once(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_leaky_one(memory_limit=LIMIT)) as jobs:
            assert await jobs.call("leaky", {"mb": 60, "children": 3}, action="share") == 60 << 20

    run(work())


def test_a_first_run_may_use_its_share_and_a_measured_one_has_no_limit(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, world=a_machine(400)) as jobs:
            jobs.register(a_leaky_one())
            await book_of(jobs).look()
            assert [worker["limit_mb"] for worker in jobs.stats()["workers"]] == [90]
            ended, error = await failed(
                jobs, await jobs.submit("leaky", {"mb": 150, "path": "/"}, action="hold")
            )
            unmeasured = learned(jobs, "leaky")
            await jobs.call("leaky", {"value": 1})

            assert unmeasured is None
            assert (error.kind, ended.attempt) == ("resource.system_memory", 1)
            assert error.details["limit_mb"] == 90
            assert "before it is measured it may use 90 MB" in error.message
            assert "Set `memory_limit` in the manifest" in str(error.user_action and error.user_action.detail)
            # Its peak is reserved from now on, and no limit was declared.
            assert [worker["limit_mb"] for worker in jobs.stats()["workers"]] == [None]
            assert await jobs.call("leaky", {"mb": 150, "path": "/"}, action="hold") == 150

    run(work())


def test_a_worker_that_needs_too_much_to_start_fails_with_its_numbers(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path) as jobs:
            jobs.register(a_leaky_one(memory_limit=LIMIT), config={"eats": 1.0})
            ended, error = await failed(jobs, await jobs.submit("leaky", {"value": 1}))

            assert (error.kind, ended.attempt) == ("resource.system_memory", 1)
            assert error.details["limit_mb"] == LIMIT

    run(work())


@pytest.mark.slow
def test_a_job_is_repeated_once_its_limit_is_higher(tmp_path: Path) -> None:
    async def work() -> None:
        world, go = a_machine(400), tmp_path / "go"
        async with a_runtime(tmp_path, world=world) as jobs:
            jobs.register(a_leaky_one())
            job = await jobs.submit("leaky", {"path": str(go)}, action="wait_and_leak")
            await began(go)
            world.ram = Pool(8_000, 8_000)
            await book_of(jobs).look()
            go.touch()
            ended = await jobs.wait(job.id)

            assert (ended.state, ended.result, ended.attempt) == (JobState.COMPLETED, 150, 2)

    run(work())


def test_no_policy_repeats_what_would_reach_the_same_limit(tmp_path: Path) -> None:
    report = describe(memory_limit_reached("leaky", OverLimit(130, 120, "manifest")))
    eager = Policy(name="eager", rules=(Rule(match=Match(), retryable=True),))

    decision = decide(
        eager, report, RetryState(attempts=1, may_evict=True, same_limit="the memory limit of 120 MB")
    )

    assert isinstance(decision, GiveUp)
    assert decision.why == "a repeat would reach the memory limit of 120 MB again"


@pytest.mark.slow
def test_jobs_that_shared_the_worker_are_tried_again(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, a_leaky_one(memory_limit=LIMIT, concurrency=2)) as jobs:
            innocent = await jobs.submit("leaky", {"mb": 1, "path": str(go)}, action="hold")
            await until(Path(f"{go}.1.began").exists)
            guilty = await jobs.submit("leaky", action="leak")
            await until(lambda: jobs.job(guilty.id).attempt == 2 or jobs.job(guilty.id).state.is_final)
            go.touch()
            ended = await jobs.wait(innocent.id)
            _, error = await failed(jobs, guilty)

            assert (ended.state, ended.result) == (JobState.COMPLETED, 1)
            assert error.kind == "resource.system_memory"

    run(work())


def test_a_kill_by_somebody_else_stays_an_assumption(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, a_leaky_one(memory_limit=LIMIT)) as jobs:
            job = await jobs.submit(
                "leaky", {"mb": 1, "path": str(go)}, action="hold", control={"max_attempts": 1}
            )
            await until(Path(f"{go}.1.began").exists)
            pid = jobs.worker("leaky").pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            _, error = await failed(jobs, job)

            assert (error.kind, error.details["out_of_memory"]) == ("worker.oom", "assumed")
            advice = str(error.user_action and error.user_action.detail)
            assert "`dmesg`" in advice
            assert "`memory.events`" in advice
            assert "raise the memory limit" not in advice.lower()

    run(work())


# ------------------------------------------------------------------ all workers together


@pytest.mark.slow
def test_of_all_workers_the_one_that_is_furthest_beyond_its_reserve_is_ended(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        manifests = [a_leaky_one(name) for name in ("modest", "greedy")]
        async with a_runtime(tmp_path, *manifests, limits=Limits(memory_mb=200)) as jobs:
            modest = await jobs.submit("modest", {"mb": 60, "path": str(go)}, action="hold")
            await until(Path(f"{go}.60.began").exists)
            greedy = await jobs.submit("greedy", action="leak", control={"max_attempts": 1})
            _, error = await failed(jobs, greedy)
            state = jobs.job(modest.id).state
            go.touch()

            assert state is JobState.RUNNING
            assert (await jobs.wait(modest.id)).result == 60
            assert (error.kind, error.details["limit_source"]) == ("resource.system_memory", "together")
            assert error.details["limit_mb"] == 200
            assert 200 <= error.details["used_mb"] < 220
            assert "the workers together used" in error.message

    run(work())


@pytest.mark.slow
def test_idle_workers_make_room_before_a_job_is_ended(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        go.touch()
        manifests = [a_leaky_one(name) for name in ("idle", "busy")]
        async with a_runtime(tmp_path, *manifests, limits=Limits(memory_mb=250)) as jobs:
            await jobs.call("idle", {"mb": 100}, action="keep")
            job = await jobs.submit("busy", {"mb": 150, "path": str(go)}, action="hold")
            ended = await jobs.wait(job.id)

            assert (ended.state, ended.result) == (JobState.COMPLETED, 150)
            # The job needs not wait until the worker has stopped.
            await until(lambda: bool(evicted(jobs)))
            assert evicted(jobs) == [("idle", "stopped")]

    run(work())


@pytest.mark.slow
def test_one_worker_that_uses_all_that_there_is_for_all_is_not_repeated(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_leaky_one(), limits=Limits(memory_mb=LIMIT)) as jobs:
            ended, error = await failed(jobs, await jobs.submit("leaky", action="leak"))

            assert (error.kind, ended.attempt) == ("resource.system_memory", 1)
            assert error.details["limit_source"] in ("total", "together")
            assert "Raise `--memory`" in str(error.user_action and error.user_action.detail)

    run(work())


# ------------------------------------------------------------------ the pace


def test_without_a_limit_nothing_is_looked_at() -> None:
    assert MemoryWatch().pause == 1_000


@pytest.mark.parametrize(
    ("limit", "used", "pause"),
    [(4_000, 100, 250), (400, 20, 100), (400, 380, 10), (400, 400, 5), (100, 100, 2)],
)
def test_the_nearer_the_limit_the_shorter_the_pause(limit: float, used: float, pause: float) -> None:
    watch = MemoryWatch()
    watch.set(limit)
    watch.used = used

    assert watch.pause == pytest.approx(pause)
