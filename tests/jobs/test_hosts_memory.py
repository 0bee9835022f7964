"""Several hosts on one store book memory in one ledger: together they never reserve more than the machine has."""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from failwell.jobs.job import JobState
from failwell.jobs.runtime import Runtime
from failwell.jobs.store.records import Reserved
from failwell.jobs.store.sqlite import JobStore
from tests.jobs.queues import OutsideWorld, a_gpu, a_model, a_runtime, evicted, pids, types
from tests.jobs.workers import run, until

TOTAL, BUDGET = 10_000.0, 9_000.0
"""Megabytes of the GPU, and what jobs may use of it."""


def booked(folder: Path) -> float:
    """What all hosts have reserved of the GPU."""
    with closing(sqlite3.connect(folder / "state" / "journal.db")) as raw:
        return raw.execute("SELECT coalesce(sum(mb), 0) FROM job_reserved WHERE pool = 'gpu:0'").fetchone()[0]


@asynccontextmanager
async def two_hosts(folder: Path, kind: str = "Model") -> AsyncGenerator[tuple[Runtime, Runtime]]:
    """Two hosts that know that a model needs 6,000 MB."""
    gpu = a_gpu(folder)
    world = OutsideWorld(gpu, total=TOTAL)
    config = {"gpu": str(gpu)}

    def register(jobs: Runtime) -> None:
        jobs.register(a_model("model", kind), config=config)

    async with a_runtime(folder, world=world) as first:
        register(first)
        await first.call("model", {"mb": 6_000})
        await first.worker("model").stop()
        async with a_runtime(folder, world=world) as second:
            register(second)
            yield first, second


@pytest.mark.slow
def test_a_job_waits_for_memory_that_another_host_has_reserved(tmp_path: Path) -> None:
    async def work() -> None:
        async with two_hosts(tmp_path) as (first, second):
            go = tmp_path / "go"
            running = await first.submit("model", {"mb": 6_000, "until": str(go)})
            await until(lambda: booked(tmp_path) == 6_000.0)
            second.queue.outside.tick()
            waiting = await second.submit("model", {"mb": 6_000})
            await until(lambda: "blocked" in types(second, waiting))

            assert "running jobs leave 3,000 MB" in str(second.job(waiting.id).block_reason)
            assert booked(tmp_path) == 6_000.0
            go.touch()
            assert (await first.wait(running.id)).state is JobState.COMPLETED
            assert (await second.wait(waiting.id, timeout=30)).state is JobState.COMPLETED

    run(work())


@pytest.mark.slow
def test_two_hosts_that_start_at_once_do_not_book_the_same_memory(tmp_path: Path) -> None:
    async def work() -> None:
        async with two_hosts(tmp_path) as (first, second):
            go = tmp_path / "go"
            hosts = (first, second)
            for each in hosts:
                each.pause()
            jobs = [await each.submit("model", {"mb": 6_000, "until": str(go)}) for each in hosts]
            for each in hosts:
                await each.queue.state.book.look()
                # Neither knows of the other's job.
                each.queue.state.book.elsewhere = {}
                each.resume()
            for each in hosts:
                each.queue.state.turn()

            assert [each.queue.state.running for each in hosts] == [1, 0]
            assert booked(tmp_path) == 6_000.0
            await until(lambda: "blocked" in types(second, jobs[1]))
            assert types(second, jobs[1]) == ["submitted", "blocked"]
            go.touch()
            for job in jobs:
                assert (await first.wait(job.id, timeout=30)).state is JobState.COMPLETED

    run(work())


@pytest.mark.slow
def test_a_job_goes_to_the_host_that_can_make_room_and_no_host_evicts_for_another(tmp_path: Path) -> None:
    async def work() -> None:
        async with two_hosts(tmp_path) as (first, second):
            # The idle worker of the first holds the memory.
            await first.call("model", {"mb": 6_000})
            before = pids(first, "model")
            second.queue.outside.tick()
            job = await second.submit("model", {"mb": 6_000})
            ended = await second.wait(job.id, timeout=30)

            assert ended.state is JobState.COMPLETED
            assert pids(first, "model") == before
            assert pids(second, "model") == {"model": None}
            assert evicted(first) == evicted(second) == []

    run(work())


def test_what_is_not_needed_any_more_is_given_back_and_a_busy_host_writes_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with two_hosts(tmp_path) as (first, second):
            store, outside = first.store, first.queue.outside
            written: list[Any] = []
            tick = outside.tick
            outside.tick = lambda: None
            reserve = store.reserve
            store.reserve = lambda *args: (written.append(args), reserve(*args))[1]  # type: ignore[method-assign]
            for _ in range(5):
                await first.call("model", {"mb": 6_000})

            assert (len(written), booked(tmp_path)) == (1, 6_000.0)
            tick()
            assert (len(written), booked(tmp_path)) == (2, 0.0)
            second.queue.outside.tick()
            assert second.queue.state.book.elsewhere == {}

    run(work())


def test_a_reservation_is_refused_beyond_the_budget_and_never_where_it_shrinks(tmp_path: Path) -> None:
    with closing(JobStore(tmp_path)) as store, store.hosting(1) as one, store.hosting(1) as other:
        first = store.reserve(one.key, {"ram": Reserved(600.0, 0.0)}, {"ram": 1_000.0})
        too_much = store.reserve(other.key, {"ram": Reserved(401.0, 0.0)}, {"ram": 1_000.0})
        enough = store.reserve(other.key, {"ram": Reserved(400.0, 9.0)}, {"ram": 1_000.0})
        less = store.reserve(one.key, {"ram": Reserved(599.0, 0.0)}, {"ram": 10.0})

        assert [first.is_granted, too_much.is_granted, enough.is_granted, less.is_granted] == [
            True, False, True, True,
        ]  # fmt: skip
        assert store.look(one.key).elsewhere == {other.key: {"ram": Reserved(400.0, 9.0)}}
