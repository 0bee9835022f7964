"""A store that others use too: nobody's wish is lost, the loop never waits for them, and little is read again."""

import asyncio
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from failwell.errors.facts import NotBefore
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.job import Job, JobId, JobRequest, JobState
from failwell.jobs.queue.state import Rules
from failwell.jobs.runtime import Runtime
from failwell.jobs.store.records import Unowned
from failwell.jobs.store.rows import job_values
from failwell.jobs.store.sqlite import JobStore
from failwell.store.faults import StoreUnavailable
from tests.jobs.queues import OutsideWorld, a_capability, a_runtime, began, lines, types
from tests.jobs.workers import SAMPLES, run, until


def _in_the_registry(folder: Path) -> CapabilityRegistry:
    file = folder / "worker.toml"
    file.write_text(f'name = "worker"\nobject = "queueing:Worker"\npath = ["{SAMPLES}"]\n')
    registry = CapabilityRegistry(folder / "registry")
    registry.add(file)
    return registry


class _Interrupted(JobStore):
    """A store where something happens right after the host read which jobs there are."""

    between: Any = None

    def unowned(self) -> Unowned:
        found = super().unowned()
        if self.between is not None:
            happens, self.between = self.between, None
            happens()
        return found


def test_a_cancel_that_comes_right_behind_its_job_is_not_lost(tmp_path: Path) -> None:
    async def work() -> None:
        go, made = tmp_path / "go", list[str]()
        store = _Interrupted(tmp_path / "state")
        client = QueueClient(JobStore(tmp_path / "state"), _in_the_registry(tmp_path))

        def meanwhile() -> None:
            asked = JobRequest(instance="worker", arguments={"path": str(go)}, action="until")
            made.append(client.submit(asked).id)
            client.cancel(made[0])

        async with Runtime(store, registry=tmp_path / "registry", probe=OutsideWorld()) as jobs:
            await asyncio.sleep(0)
            store.between = meanwhile
            jobs.queue.look_outside()
            await until(lambda: bool(made))
            ended = await jobs.wait(made[0], timeout=20)

            assert ended.state is JobState.CANCELLED
            assert store.control_requests() == []
        store.close()
        client.store.close()

    run(work())


def test_a_wish_is_kept_until_what_came_of_it_is_on_record(tmp_path: Path) -> None:
    async def work() -> None:
        client = QueueClient(JobStore(tmp_path / "state"), _in_the_registry(tmp_path))
        async with Runtime(tmp_path / "state", registry=tmp_path / "registry", probe=OutsideWorld()) as jobs:
            jobs.pause()
            job = await jobs.submit("worker")
            assert client.store.request_control(job.id, "cancel", 1.0)
            jobs.queue.look_outside()
            assert len(client.store.control_requests()) == 1
            await jobs.drained()

            assert client.store.control_requests() == []
            assert client.find(job.id).state is JobState.CANCELLED
        client.store.close()

    run(work())


@contextmanager
def _held(folder: Path) -> Generator[sqlite3.Connection]:
    """The store in the hands of another process, until the block ends or it is let go."""
    with closing(sqlite3.connect(folder / "state" / "journal.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


def test_the_loop_goes_on_while_another_process_holds_the_store(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            with _held(tmp_path) as other:
                handing_in = asyncio.create_task(jobs.submit("worker", {"value": 1}))
                lag = await _worst_lag(0.8)
                assert not handing_in.done()
                other.execute("ROLLBACK")
                job = await handing_in

            assert lag < 0.3
            assert (await jobs.wait(job.id)).result == 1

    run(work())


async def _worst_lag(seconds: float) -> float:
    loop = asyncio.get_running_loop()
    end, worst = loop.time() + seconds, 0.0
    while loop.time() < end:
        before = loop.time()
        await asyncio.sleep(0.005)
        worst = max(worst, loop.time() - before)
    return worst


def test_what_ran_is_put_back_on_record_though_the_store_is_away_for_a_moment(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, a_capability(), drain=0.05) as jobs:
            job = await jobs.submit("worker", {"path": str(go)}, action="until")
            await began(go)
            other = sqlite3.connect(tmp_path / "state" / "journal.db", isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            asyncio.get_running_loop().call_later(0.4, other.execute, "ROLLBACK")
        other.close()
        async with a_runtime(tmp_path) as jobs:
            assert types(jobs, job)[-1] == "requeued"
            assert jobs.job(job.id).state is JobState.PENDING

    run(work())


def test_nothing_is_written_after_the_end_however_the_store_fared(tmp_path: Path) -> None:
    async def work() -> None:
        go, log = tmp_path / "go", tmp_path / "log"
        store = _Counted(tmp_path / "state", log)
        rules = Rules(patience=0.05)
        runtime = Runtime(
            store, registry=tmp_path / "registry", probe=OutsideWorld(), rules=rules, drain=0.05
        )
        async with runtime as jobs:
            jobs.register(a_capability())
            await jobs.call("worker", action="pid")
            await jobs.submit("worker", {"path": str(go)}, action="until")
            await began(go)
            other = sqlite3.connect(tmp_path / "state" / "journal.db", isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
        tried = len(lines(log))
        await asyncio.sleep(0.7)

        assert len(lines(log)) == tried
        other.close()
        store.close()

    run(work())


class _Counted(JobStore):
    """A store that notes every attempt to write."""

    def __init__(self, folder: Path, log: Path) -> None:
        super().__init__(folder)
        self._attempts = log

    def commit(self, *given: Any, **named: Any) -> Any:
        with self._attempts.open("a") as file:
            file.write("x\n")
        return super().commit(*given, **named)


def test_an_old_job_that_cannot_start_here_is_not_claimed(tmp_path: Path) -> None:
    async def work() -> None:
        client = QueueClient(JobStore(tmp_path / "state"), _in_the_registry(tmp_path))
        old = client.submit(JobRequest(instance="worker"))
        ended = [
            replace(old, key=None, id=JobId(f"x{number}"), state=JobState.COMPLETED, ended=1.0)
            for number in range(3)
        ]
        client.store.commit([job_values(job, None) for job in ended])
        store = _Asked(tmp_path / "state")
        async with Runtime(store, registry=tmp_path / "nothing", probe=OutsideWorld()) as jobs:
            for _ in range(3):
                jobs.queue.look_outside()
                await asyncio.sleep(0.02)

            assert (store.looks > 0, store.claims) == (True, 0)
            assert jobs.job(old.id).state is JobState.PENDING
            assert jobs.job(old.id).block_reason == "`worker` is not loaded here"
            assert types(jobs, old) == ["submitted", "blocked"]
        store.close()
        client.store.close()

    run(work())


class _Asked(JobStore):
    """A store that counts how often jobs are looked for and claimed."""

    looks = 0
    claims = 0

    def unowned(self) -> Unowned:
        self.looks += 1
        return super().unowned()

    def claim(self, *args: Any, **named: Any) -> list[tuple[Job, float]]:
        self.claims += 1
        return super().claim(*args, **named)


class _Refusing(JobStore):
    """A store that refuses one write and says when the next may succeed."""

    refusals = 0
    writes = 0

    def commit(self, *args: Any, **options: Any) -> Any:
        self.writes += 1
        if self.refusals:
            self.refusals -= 1
            raise StoreUnavailable(message="the store is restarting", not_before=NotBefore(after=0.3))
        return super().commit(*args, **options)


def test_a_refused_write_is_repeated_when_the_store_says_and_not_before(tmp_path: Path) -> None:
    async def work() -> None:
        store = _Refusing(tmp_path / "state")
        _in_the_registry(tmp_path)
        async with Runtime(store, registry=tmp_path / "registry", probe=OutsideWorld()) as jobs:
            await jobs.call("worker", {"value": 1})
            store.refusals, store.writes = 1, 0
            began_at = asyncio.get_running_loop().time()
            await jobs.submit("worker", {"value": 2})

            assert asyncio.get_running_loop().time() - began_at >= 0.3
            assert store.writes == 2
        store.close()

    run(work())
