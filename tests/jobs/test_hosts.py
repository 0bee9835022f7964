"""Several hosts on one store: they share the jobs, take over from one another, and no job is run twice in silence."""

import asyncio
import signal
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import rmtree
from typing import Any

from failwell.errors.axes import Certainty
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.faults import LeaseLost
from failwell.jobs.job import Job, JobRequest, JobState
from failwell.jobs.runtime import Runtime
from failwell.jobs.store.sqlite import JobStore
from tests.jobs.many_hosts import HostProcess, started_hosts
from tests.jobs.queues import a_capability, a_runtime, began, types
from tests.jobs.workers import SAMPLES, run, until


def a_registry(folder: Path, **fields: Any) -> CapabilityRegistry:
    """The capability `worker`, for every host of the folder."""
    file = folder / "worker.toml"
    words = "".join(f"{name} = {value}\n" for name, value in fields.items())
    file.write_text(f'name = "worker"\nobject = "queueing:Worker"\npath = ["{SAMPLES}"]\n{words}')
    registry = CapabilityRegistry(folder / "registry")
    registry.add(file)
    return registry


@contextmanager
def a_client(folder: Path, **fields: Any) -> Generator[QueueClient]:
    with closing(JobStore(folder / "state")) as store:
        yield QueueClient(store, a_registry(folder, **fields))


def until_jobs(client: QueueClient, folder: Path, number: int, **more: Any) -> list[Job]:
    """Jobs that run until `go` is there."""
    asked = JobRequest(instance="worker", arguments={"path": str(folder / "go")}, action="until", **more)
    return [client.submit(asked) for _ in range(number)]


def running(jobs: Runtime) -> int:
    return jobs.queue.state.running


@asynccontextmanager
async def two_hosts(folder: Path, *, lanes: int = 2) -> AsyncGenerator[tuple[Runtime, Runtime]]:
    async with a_runtime(folder, lanes=lanes) as first, a_runtime(folder, lanes=lanes) as second:
        for each in (first, second):
            each.queue.outside.tick()
        yield first, second


def test_hosts_share_waiting_jobs_and_a_late_one_gets_work_at_once(tmp_path: Path) -> None:
    async def work() -> None:
        with a_client(tmp_path, concurrency=4) as client:
            async with two_hosts(tmp_path) as (first, second):
                until_jobs(client, tmp_path, 9)
                await until(lambda: running(first) + running(second) == 4)
                assert (running(first), running(second)) == (2, 2)
                # What cannot start yet belongs to no host.
                assert client.store.ownership(0).unowned == {"worker": 5}
                async with a_runtime(tmp_path, lanes=3) as late:
                    await until(lambda: running(late) == 3)
                    assert (running(first), running(second)) == (2, 2)
                    (tmp_path / "go").touch()
                    await first.drained()

                assert client.store.counts()["completed"] == 9
                assert client.store.ownership(0) == ({}, 0)

    run(work())


def test_a_host_waits_for_cancels_and_repeats_jobs_of_another_one(tmp_path: Path) -> None:
    async def work() -> None:
        with a_client(tmp_path, concurrency=4) as client:
            async with two_hosts(tmp_path, lanes=1) as (first, second):
                mine = await first.submit("worker", {"path": str(tmp_path / "go")}, action="until", key="k")
                await began(tmp_path / "go")
                same = await second.submit("worker", {"path": "other"}, action="until", key="k")
                waiting = asyncio.create_task(second.wait(mine.id))
                called = asyncio.create_task(
                    second.call("worker", {"path": "other", "value": 1}, action="until", key="k")
                )
                await asyncio.sleep(0.05)
                assert (same.id, waiting.done(), called.done()) == (mine.id, False, False)
                (tmp_path / "go").touch()
                assert (await waiting).state is JobState.COMPLETED
                assert await called is None

                other = await first.submit("worker", {"path": str(tmp_path / "never")}, action="until")
                await began(tmp_path / "never")
                assert second.cancel(other.id)
                ended = await second.wait(other.id)
                assert ended.error is not None
                assert (ended.state, ended.error.certainty) == (JobState.CANCELLED, Certainty.PARTIAL)
                assert client.store.control_requests() == []

    run(work())


def test_a_job_that_no_host_has_is_cancelled_by_whoever_asks(tmp_path: Path) -> None:
    async def work() -> None:
        with a_client(tmp_path) as client:
            until_jobs(client, tmp_path, 1)
            waiting = until_jobs(client, tmp_path, 3)
            async with a_runtime(tmp_path, lanes=1) as jobs:
                await until(lambda: running(jobs) == 1)
                assert client.cancel(waiting[0].id)
                assert client.find(waiting[0].id).state is JobState.CANCELLED
                assert jobs.cancel(waiting[1].id)
                assert jobs.job(waiting[1].id).state is JobState.CANCELLED
                assert jobs.reorder(waiting[2].id, 7)
                assert client.find(waiting[2].id).request.priority == 7
                assert not jobs.cancel("none")
                assert not client.cancel(waiting[0].id)
                (tmp_path / "go").touch()
                await jobs.drained()

            ends = [client.find(job.id) for job in waiting]
            assert [job.state.value for job in ends] == ["cancelled", "cancelled", "completed"]
            assert [job.error.certainty for job in ends[:2] if job.error] == [Certainty.NOT_SENT] * 2
            assert [event.type for event in client.store.events(job=waiting[0].id)] == [
                "submitted",
                "cancelled",
            ]

    run(work())


def test_a_more_urgent_job_goes_before_those_that_a_host_has(tmp_path: Path) -> None:
    async def work() -> None:
        with a_client(tmp_path) as client:
            async with a_runtime(tmp_path, lanes=1) as jobs:
                first = await jobs.submit("worker", {"path": str(tmp_path / "go")}, action="until")
                later = [await jobs.submit("worker", {"value": number}) for number in range(3)]
                await began(tmp_path / "go")
                urgent = client.submit(JobRequest(instance="worker", priority=1))
                usual = client.submit(JobRequest(instance="worker"))
                await until(lambda: urgent.id in jobs.queue.state.live)
                (tmp_path / "go").touch()
                await jobs.drained()
                order = [event.job for event in jobs.store.events() if event.type == "started"]

        assert order == [first.id, urgent.id, *(job.id for job in later), usual.id]

    run(work())


def test_jobs_that_a_host_cannot_run_are_left_to_the_others(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, lanes=1) as first, a_runtime(tmp_path, lanes=1) as second:
            first.register(a_capability("only", concurrency=4))
            second.register(a_capability("only", concurrency=4))
            await second.unload("only")
            first.pause()
            made = [await first.submit("only", {"value": number}) for number in range(5)]
            # The first is paused and the second does not know the instance: they wait in the store.
            first.queue.outside.tick()
            await until(lambda: first.store.ownership(0).unowned == {"only": 5})
            second.register(a_capability("only", concurrency=4))
            ends = [await first.wait(job.id) for job in made]

        assert [job.result for job in ends] == list(range(5))

    run(work())


def test_a_host_that_stops_leaves_its_waiting_jobs_at_once(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, a_capability(), lanes=1) as second:
            first = Runtime(tmp_path / "state", registry=tmp_path / "registry", drain=20.0)
            async with first:
                first.register(a_capability())
                await first.submit("worker", {"path": str(go)}, action="until")
                await began(go)
                waiting = await first.submit("worker", {"value": 1})
                told = asyncio.create_task(first.wait(waiting.id))
                first.queue.outside.tick()
                stopping = asyncio.create_task(first.queue.stop(20.0))
                # The first still waits for its running job.
                assert (await second.wait(waiting.id, timeout=20)).result == 1
                assert not stopping.done()
                go.touch()
                await stopping
                assert (await told).result == 1

    run(work())


def test_a_deadline_passes_and_a_later_start_comes_though_no_host_has_the_job(tmp_path: Path) -> None:
    async def work() -> None:
        now = datetime.now(UTC)
        with a_client(tmp_path) as client:
            [blocker] = until_jobs(client, tmp_path, 1)
            late = client.submit(JobRequest(instance="worker", deadline=now + timedelta(seconds=0.3)))
            soon = client.submit(JobRequest(instance="worker", not_before=now + timedelta(seconds=0.3)))
            async with a_runtime(tmp_path, lanes=1) as jobs:
                ended = await jobs.wait(late.id, timeout=20)
                (tmp_path / "go").touch()
                await jobs.drained()
                started = {event.job: event.at for event in jobs.store.events() if event.type == "started"}

        assert (ended.state, ended.error and ended.error.kind) == (JobState.FAILED, "limit.run_timeout")
        assert started.keys() == {blocker.id, soon.id}
        assert started[soon.id] >= now.timestamp() + 0.3

    run(work())


# -------------------------------------------------------------- hosts in processes of their own


def test_a_killed_host_is_noticed_at_once_and_its_jobs_are_run_by_another(tmp_path: Path) -> None:
    with a_client(tmp_path, concurrency=4) as client:
        jobs = until_jobs(client, tmp_path, 6)
        with started_hosts(tmp_path, 2, lanes=2) as hosts:
            wait(lambda: client.store.counts()["running"] == 4)
            victim, other = hosts
            lost = owned(client, victim)
            victim.kill(signal.SIGKILL)
            wait(lambda: owned(client, other) >= lost or client.store.counts()["pending"] == 4)
            (tmp_path / "go").touch()
            for job in jobs:
                client.wait(job.id)
        requeued = Counter(event.job for event in client.store.events() if event.type == "requeued")
        ends = [client.find(job.id) for job in jobs]

    assert [job.state for job in ends] == [JobState.COMPLETED] * 6
    assert len(lost) == 2
    assert requeued == Counter(lost)
    assert {job.id: job.attempt for job in ends} == {job.id: 1 + (job.id in lost) for job in ends}


def test_a_suspended_host_keeps_its_jobs(tmp_path: Path) -> None:
    with a_client(tmp_path, concurrency=4) as client, started_hosts(tmp_path, 2, lanes=1) as hosts:
        jobs = until_jobs(client, tmp_path, 4)
        wait(lambda: client.store.counts()["running"] == 2)
        suspended, other = hosts
        mine = owned(client, suspended)
        suspended.kill(signal.SIGSTOP)
        (tmp_path / "go").touch()
        wait(lambda: client.store.counts()["completed"] == 3)
        assert client.store.is_hosted()
        assert owned(client, suspended) == mine
        assert client.find(next(iter(mine))).state is JobState.RUNNING
        suspended.kill(signal.SIGCONT)
        for job in jobs:
            client.wait(job.id)
        assert other.process.poll() is None
        events = client.store.events()

    assert Counter(event.type for event in events if event.job)["started"] == 4
    assert [event for event in events if event.type == "requeued"] == []


def test_a_job_whose_host_was_killed_can_be_cancelled_though_no_other_host_runs(tmp_path: Path) -> None:
    with a_client(tmp_path) as client:
        [job] = until_jobs(client, tmp_path, 1)
        with started_hosts(tmp_path, 1, lanes=1) as hosts:
            wait(lambda: client.store.counts()["running"] == 1)
            hosts[0].kill(signal.SIGKILL)
        # A process that the host was starting has the lock too until it runs its own program.
        wait(lambda: not client.store.is_hosted())
        assert client.cancel(job.id)
        ended = client.find(job.id)

    assert ended.error is not None
    assert (ended.state, ended.error.certainty) == (JobState.CANCELLED, Certainty.UNKNOWN)


def wait(holds: Any, seconds: float = 40.0) -> None:
    run(until(holds, seconds))


def owned(client: QueueClient, host: HostProcess) -> set[str]:
    """The open jobs that a host owns."""
    with closing(sqlite3.connect(client.store.folder.parent / "journal.db")) as raw:
        rows = raw.execute(
            "SELECT id FROM jobs JOIN job_hosts ON owner = job_hosts.key WHERE pid = ? AND ended IS NULL",
            (host.pid,),
        )
        return {row[0] for row in rows}


def test_nothing_is_left_of_a_host_that_has_ended(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()):
            assert len(list((tmp_path / "state" / "jobs" / "hosts").iterdir())) == 1
        async with a_runtime(tmp_path) as jobs:
            assert len(list((tmp_path / "state" / "jobs" / "hosts").iterdir())) == 1
            assert jobs.store.look(jobs.queue.state.host.key)[:2] == ([], [])

    run(work())


def test_a_host_that_was_taken_to_be_dead_changes_nothing_of_its_jobs(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, a_capability(), drain=0.1) as first:
            job = await first.submit("worker", {"path": str(go)}, action="until")
            await began(go)
            # Somebody deletes the folder of the locks.
            rmtree(tmp_path / "state" / "jobs" / "hosts")
            async with a_runtime(tmp_path, a_capability(), measured=False, lanes=1) as second:
                second.pause()
                await until(lambda: "requeued" in types(second, job))
                go.touch()
                await until(lambda: first.queue.trouble is not None)

                assert isinstance(first.queue.trouble, LeaseLost)
                assert second.job(job.id).state is JobState.PENDING
                second.resume()
                assert (await second.wait(job.id, timeout=20)).state is JobState.COMPLETED
                assert types(second, job) == ["submitted", "started", "requeued", "started", "completed"]
                assert second.counts()["completed"] == 2

    run(work())


def test_the_events_of_another_host_are_delivered(tmp_path: Path) -> None:
    async def work() -> None:
        a_registry(tmp_path)
        async with two_hosts(tmp_path, lanes=1) as (first, second):
            with second.events(live=False) as events:
                job = await first.submit("worker", {"value": 1})
                await first.wait(job.id)
                second.queue.hub.catch_up()
                of_job: list[str] = []
                while "completed" not in of_job:
                    event = await asyncio.wait_for(anext(events), 20)
                    of_job += [event.type] if event.job == job.id else []

        assert of_job == ["submitted", "started", "completed"]

    run(work())


def test_hosts_whose_store_is_busy_for_a_while_lose_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        with a_client(tmp_path, concurrency=4) as client:
            async with two_hosts(tmp_path) as (first, second):
                until_jobs(client, tmp_path, 6)
                await until(lambda: running(first) + running(second) == 4)
                with closing(
                    sqlite3.connect(tmp_path / "state" / "journal.db", isolation_level=None)
                ) as other:
                    other.execute("BEGIN IMMEDIATE")
                    (tmp_path / "go").touch()
                    await asyncio.sleep(1.2)
                    other.execute("ROLLBACK")
                await first.drained()

                events = Counter(event.type for event in client.store.events() if event.job)
                assert client.store.counts()["completed"] == 6
                assert (events["started"], events["completed"], events["requeued"]) == (6, 6, 0)

    run(work())
