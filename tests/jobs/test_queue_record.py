# pyright: reportPrivateUsage=false
"""What is on record: events that nobody loses for another's sake, history after a restart, a store that fails."""

import asyncio
import os
import resource
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.errors.fault import Fault
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.job import JobRequest, JobState
from failwell.jobs.queue.state import Rules
from failwell.jobs.runtime import Runtime
from failwell.jobs.store.sqlite import JobStore
from tests.jobs.queues import a_capability, a_runtime, began, lines, types
from tests.jobs.workers import run, until


@pytest.mark.acceptance("cjm-substrate 58")
def test_a_slow_listener_loses_its_own_events_alone_and_can_read_them_later(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            start = jobs.queue.hub.last
            slow = jobs.events(buffer=10, live=False)
            quick = jobs.events(buffer=1_000, live=False)
            for number in range(20):
                await jobs.call("worker", {"value": number})
            last = jobs.queue.hub.last
            slow.end()
            quick.end()
            heard = [event async for event in quick]
            few = [event async for event in slow]

            assert quick.dropped == 0
            assert [event.seq for event in heard] == list(range(start + 1, last + 1))
            assert len(few) == 10
            assert slow.dropped == len(heard) - 10
            replay = jobs.events(after=slow.cursor, live=False)
            missed = [await anext(replay) for _ in range(slow.dropped)]
            replay.close()
            assert [*few, *missed] == heard

    run(work())


def test_listening_to_one_job_ends_with_it_and_shows_its_progress(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, a_capability()) as jobs:
            job = await jobs.submit("worker", {"path": str(go)}, action="until")
            events = jobs.events(job.id, after=0)
            await began(go)
            go.touch()
            told = [event.type async for event in events]
            late = [event.type async for event in jobs.events(job.id, after=0)]

            assert [one for one in told if one != "progress"] == ["submitted", "started", "completed"]
            assert late == ["submitted", "started", "completed"]

    run(work())


@pytest.mark.acceptance("cjm-substrate 59")
def test_history_is_there_after_a_restart(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            good = await jobs.submit("worker", {"value": "x"})
            bad = await jobs.submit("worker", {"times": 9, "path": str(tmp_path / "c"), "kind": "resource"},
                                    action="fail_first")  # fmt: skip
            await jobs.wait(good.id)
            before = await jobs.wait(bad.id)
        async with a_runtime(tmp_path) as jobs:
            after = await jobs.wait(bad.id)

            assert after.error is not None
            assert before.error is not None
            assert after.error.to_dict() == before.error.to_dict()
            assert (after.state, after.retry_count) == (JobState.FAILED, 1)
            assert (after.submitted_at, after.started_at, after.completed_at) == (
                before.submitted_at,
                before.started_at,
                before.completed_at,
            )
            assert [job.id for job in jobs.history()][:2] == [bad.id, good.id]
            assert jobs.counts()["failed"] == 1

    run(work())


@pytest.mark.acceptance("cjm-substrate 59")
def test_a_store_that_fails_stops_submits_and_not_jobs_until_it_is_well(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        rules = Rules(patience=0.05)
        async with a_runtime(tmp_path, a_capability(), rules=rules) as jobs:
            running = await jobs.submit("worker", {"path": str(go), "value": "done"}, action="until")
            await began(go)
            waiter = asyncio.create_task(jobs.wait(running.id))
            with closing(sqlite3.connect(tmp_path / "state" / "journal.db", isolation_level=None)) as other:
                jobs.store._database.connection.execute("PRAGMA busy_timeout = 0")
                other.execute("BEGIN IMMEDIATE")
                with pytest.raises(Fault) as refused:
                    await jobs.submit("worker", {"value": 1})
                with pytest.raises(Fault):
                    await jobs.submit("worker", {"value": 2})
                go.touch()
                ended = await waiter
                other.execute("ROLLBACK")
            await until(lambda: jobs.queue.trouble is None)

            assert describe(refused.value).kind == "session.store_unavailable"
            assert (ended.state, ended.result) == (JobState.COMPLETED, "done")
            assert await jobs.call("worker", {"value": 3}) == 3
            assert types(jobs, running) == ["submitted", "started", "completed"]
            counted = jobs.counts()
            assert counted["completed"] == 3
            assert sum(counted.values()) == 3

    run(work())


def counted(path: Path) -> tuple[dict[str, int], dict[str, int]]:
    with closing(JobStore(path.parent)) as store:
        kept = {state: count for state, count in store.counts().items() if count}
    with closing(sqlite3.connect(path)) as connection:
        real = dict(connection.execute("SELECT state, count(*) FROM jobs GROUP BY state").fetchall())
    return kept, real


@pytest.mark.slow
@pytest.mark.acceptance("cjm-substrate 60")
def test_ten_thousand_short_jobs_leave_memory_bounded_totals_exact_and_cost_little_each(
    tmp_path: Path,
) -> None:
    number = int(os.environ.get("FAILWELL_JOBS", "10000"))

    async def work() -> tuple[int, int, list[float], list[float]]:
        async with Runtime(tmp_path / "state", registry=tmp_path / "registry", lanes=8, history=100) as jobs:
            jobs.register(a_capability("a", concurrency=4))
            jobs.register(a_capability("b", concurrency=4))
            await jobs.call("a", {"value": 0})
            await jobs.call("b", {"value": 0})
            waiting = iter(range(number))
            memory: list[float] = []

            async def lane(instance: str) -> None:
                for value in waiting:
                    assert await jobs.call(instance, {"value": value}) == value
                    if value % (number // 10) == 0:
                        memory.append(resident_mb())

            await asyncio.gather(*(lane("a" if n % 2 else "b") for n in range(32)))
            queue = jobs.queue
            state = queue.state
            held = [state.live, state.once, state.tasks, queue._record.dirty, queue._ends._timers]
            sizes = len(queue.state.recent), sum(map(len, held))
            assert jobs.counts()["completed"] == number + 2
            worker, direct, queued = jobs.worker("a"), list[float](), list[float]()
            for value in range(200):
                # One beside the other, so that both see the same machine.
                begun = monotonic()
                await worker.call(f"direct-{value}", {"value": value})
                middle = monotonic()
                await jobs.call("a", {"value": value})
                direct.append(middle - begun)
                queued.append(monotonic() - middle)
            return *sizes, memory, [one - other for one, other in zip(queued, direct, strict=True)]

    recent, held, memory, overhead = run(work())
    kept, real = counted(tmp_path / "state" / "journal.db")

    assert recent == 100
    assert held <= 32
    assert kept == real == {"completed": number + 202}
    # The first tenth fills buffers and caches; nine tenths more of jobs do not need more.
    assert max(memory[2:]) - memory[1] < 8.0
    assert median(overhead) < 0.010


def resident_mb() -> float:
    """The main memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def test_what_another_hands_in_right_before_us_is_taken_up_and_can_be_waited_for(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            jobs.registry.add(_manifest(tmp_path))
            client = QueueClient(jobs.store, jobs.registry)
            for value in range(5):
                # No turn of the loop lies between the two, so the host cannot have been woken for the first.
                theirs = client.submit(JobRequest(instance="worker", arguments={"value": value}))
                ours = await jobs.submit("worker", {"value": -value})

                assert (await jobs.wait(ours.id)).result == -value
                assert (await jobs.wait(theirs.id, timeout=10)).result == value
            last = client.submit(JobRequest(instance="worker", arguments={"value": "last"}))
            assert (await jobs.wait(last.id, timeout=10)).result == "last"

    run(work())


def _manifest(folder: Path) -> Path:
    file = folder / "worker.toml"
    file.write_text('name = "worker"\nobject = "queueing:Worker"\n')
    return file


def test_old_jobs_can_be_forgotten_and_numbers_are_not_given_again(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            for value in range(5):
                await jobs.call("worker", {"value": value})
            last = jobs.store.last_event()

            assert len(jobs.store.forget(keep=2).jobs) == 4
            assert jobs.counts()["completed"] == 2
            assert jobs.store.last_event() == last
            await jobs.call("worker", {"value": 9})
            assert jobs.store.last_event() == last + 3

    run(work())


def test_a_result_in_a_file_comes_back_from_the_store_as_a_file(tmp_path: Path) -> None:
    from failwell.jobs.store.rows import read_result, result_to_json
    from failwell.jobs.workers.protocol import FileHandle

    value = {"image": FileHandle(path="/x", size=3), "rest": [1, {"$other": 2}]}

    assert read_result(result_to_json(value)) == value


@pytest.mark.parametrize(
    "value",
    [
        {"$file": {"path": "/etc/passwd", "size": 1}},
        [{"a": {"$file": {"path": "/etc/passwd", "size": 1}}}],
        {"$file": None},
        {"$file": 3, "b": 1},
        {"$plain": {"$file": {"path": "/x", "size": 1}}},
        {"$plain": 1},
        {"$plain": {"$plain": {}}},
        {},
    ],
)
def test_a_result_that_looks_like_a_file_stays_what_it_is(tmp_path: Path, value: object) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            assert await jobs.call("worker", {"value": value}) == value
            [job] = jobs.history(limit=1)
            assert job.result == value

    run(work())


def test_arguments_that_are_not_json_are_refused_at_the_door(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            with pytest.raises(Fault):
                await jobs.submit("worker", {"value": object()})
            assert not jobs.queue.state.live
            assert lines(tmp_path / "nothing") == []

    run(work())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes, where the machine lets us have one."""
    place = tmp_path / "small"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("this machine lets nobody mount a file system")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_refuses_submits_lets_jobs_end_and_heals(tmp_path: Path, small_disk: Path) -> None:
    async def work() -> None:
        go, ballast = tmp_path / "go", small_disk / "ballast"
        runtime = Runtime(small_disk / "state", registry=tmp_path / "registry")
        async with runtime as jobs:
            jobs.register(a_capability())
            await jobs.call("worker", action="pid")
            running = await jobs.submit("worker", {"path": str(go), "value": "done"}, action="until")
            await began(go)
            _fill(ballast)
            refused: Fault | None = None
            for _ in range(50):
                try:
                    await jobs.submit("worker", {"value": "x" * 20_000})
                except Fault as fault:
                    refused = fault
                    break
            assert refused is not None
            assert describe(refused).kind == "resource.disk"
            go.touch()
            assert (await jobs.wait(running.id)).result == "done"

            ballast.unlink()
            await until(lambda: jobs.queue.trouble is None)
            assert await jobs.call("worker", {"value": 1}) == 1
            assert types(jobs, running) == ["submitted", "started", "completed"]

    run(work())


def _fill(file: Path) -> None:
    with file.open("wb", buffering=0) as out:
        try:
            while out.write(bytes(4096)):
                continue
        except OSError:
            return


def test_jobs_that_are_submitted_together_share_a_commit(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability(concurrency=4)) as jobs:
            commits: list[int] = []
            commit: Any = jobs.store.commit

            def counted(*args: Any, **options: Any) -> Any:
                commits.append(len(args[0]))
                return commit(*args, **options)

            jobs.store.commit = counted
            assert await asyncio.gather(*(jobs.call("worker", {"value": n}) for n in range(4))) == [
                0,
                1,
                2,
                3,
            ]

            assert commits[0] == 4

    run(work())
