"""A host that runs chosen jobs only: it claims no other one, and nobody relies on it for others."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from failwell.jobs import ScheduleSpec
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.faults import LeaseLost
from failwell.jobs.job import Job, JobRequest, JobState
from failwell.jobs.runtime import Runtime
from failwell.jobs.store.records import Want
from failwell.jobs.store.sqlite import ChosenJobs, JobStore, is_hosted
from tests.jobs.queues import a_runtime, began, types
from tests.jobs.workers import SAMPLES, run, until


@pytest.fixture
def client(tmp_path: Path) -> Generator[QueueClient]:
    file = tmp_path / "worker.toml"
    file.write_text(f'name = "worker"\nobject = "queueing:Worker"\npath = ["{SAMPLES}"]\nconcurrency = 4\n')
    registry = CapabilityRegistry(tmp_path / "registry")
    registry.add(file)
    with closing(JobStore(tmp_path / "state")) as store:
        yield QueueClient(store, registry)


@asynccontextmanager
async def a_host_of(folder: Path, *chosen: Job) -> AsyncGenerator[Runtime]:
    with closing(JobStore(folder / "state")) as store:
        async with a_runtime(folder, store=ChosenJobs(store, [job.id for job in chosen])) as jobs:
            yield jobs


def _submitted(client: QueueClient, value: int, **fields: object) -> Job:
    return client.submit(JobRequest(instance="worker", arguments={"value": value}, **fields))  # pyright: ignore[reportArgumentType]


def test_only_the_chosen_job_is_claimed_though_others_come_first(tmp_path: Path, client: QueueClient) -> None:
    async def work() -> None:
        first = _submitted(client, 1, priority=5)
        chosen = _submitted(client, 2)
        deadline = datetime.now(UTC) + timedelta(seconds=0.1)
        late = _submitted(client, 3, deadline=deadline)
        async with a_host_of(tmp_path, chosen) as jobs:
            ended = await jobs.wait(chosen.id, timeout=20)
            own = await jobs.call("worker", {"value": 4})
            await until(lambda: datetime.now(UTC) > deadline)
            jobs.queue.look_outside()
            jobs.queue.state.turn()

            assert (ended.result, own) == (2, 4)
            assert types(jobs, first) == types(jobs, late) == ["submitted"]

    run(work())


def test_a_chosen_job_starts_when_it_is_due(tmp_path: Path, client: QueueClient) -> None:
    async def work() -> None:
        soon = datetime.now(UTC) + timedelta(seconds=0.2)
        due = _submitted(client, 1, not_before=soon)
        async with a_host_of(tmp_path, due) as jobs:
            ended = await jobs.wait(due.id, timeout=20)

        assert ended.result == 1
        assert ended.started_at is not None
        assert ended.started_at >= soon

    run(work())


@pytest.mark.parametrize("is_enabled", [True, False])
def test_a_chosen_job_fails_when_it_is_late(tmp_path: Path, client: QueueClient, *, is_enabled: bool) -> None:
    async def work() -> None:
        deadline = datetime.now(UTC) + timedelta(seconds=0.1)
        late = _submitted(client, 1, deadline=deadline)
        client.registry.set_enabled("worker", is_enabled)
        async with a_host_of(tmp_path) as jobs:
            await until(lambda: datetime.now(UTC) > deadline)
            before = types(jobs, late)
        async with a_host_of(tmp_path, late) as jobs:
            ended = await jobs.wait(late.id, timeout=20)

        assert before == ["submitted"]
        assert (ended.state, ended.attempt) == (JobState.FAILED, 0)

    run(work())


def test_a_chosen_job_says_why_it_cannot_run_here(tmp_path: Path, client: QueueClient) -> None:
    async def work() -> None:
        other, chosen = _submitted(client, 1), _submitted(client, 2)
        client.registry.remove("worker")
        async with a_host_of(tmp_path, chosen) as jobs:
            await until(lambda: "blocked" in types(jobs, chosen))

            assert jobs.job(chosen.id).block_reason == "`worker` is not loaded here"
            assert types(jobs, other) == ["submitted"]

    run(work())


def test_nobody_relies_on_a_host_of_chosen_jobs_for_other_jobs(tmp_path: Path, client: QueueClient) -> None:
    async def work() -> None:
        chosen, other = _submitted(client, 1), _submitted(client, 2)
        state = tmp_path / "state"
        async with a_host_of(tmp_path, chosen) as jobs:
            await jobs.wait(chosen.id, timeout=20)
            alone = is_hosted(state), client.store.is_hosted(), client.store.is_served(other.id)
            async with a_runtime(tmp_path) as everything:
                seen = [host.serves_all for host in client.store.look(0).live]
                both = is_hosted(state), client.store.is_served(other.id)
                ended = await everything.wait(other.id, timeout=20)

        assert alone == (False, True, False)
        assert (seen, both) == ([False, True], (True, True))
        assert ended.result == 2

    run(work())


def test_a_job_is_served_while_the_host_lives_that_has_it(tmp_path: Path, client: QueueClient) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        job = client.submit(JobRequest(instance="worker", arguments={"path": str(go)}, action="until"))
        before = client.store.is_served(job.id)
        async with a_host_of(tmp_path, job) as jobs:
            await began(go)
            meanwhile = client.store.is_served(job.id)
            go.touch()
            await jobs.wait(job.id, timeout=20)
            ended = client.store.is_served(job.id)

        assert (before, meanwhile, ended) == (False, True, False)

    run(work())


def test_a_host_keeps_its_waiting_jobs_beside_one_of_chosen_jobs(tmp_path: Path, client: QueueClient) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, lanes=1) as jobs:
            running, waiting = [
                await jobs.submit("worker", {"path": str(go)}, action="until") for _ in range(2)
            ]
            await began(go)
            async with a_host_of(tmp_path):
                jobs.queue.outside.tick()
                kept = waiting.id in jobs.queue.state.live
                async with a_runtime(tmp_path, lanes=1):
                    jobs.queue.outside.tick()
                    await until(lambda: waiting.id not in jobs.queue.state.live)
            go.touch()
            await jobs.wait(running.id, timeout=20)
            await jobs.wait(waiting.id, timeout=20)

        assert kept

    run(work())


def test_a_host_of_chosen_jobs_leaves_schedules_alone(tmp_path: Path, client: QueueClient) -> None:
    async def work() -> None:
        client.store.put_schedules(
            {"worker/minutely": ScheduleSpec(name="minutely", cron="* * * * *")}, "client", 0.0
        )
        before = client.store.schedules()
        async with a_host_of(tmp_path):
            left = client.store.schedules()
        async with a_runtime(tmp_path):
            fired = client.store.schedules()

        assert left == before
        assert fired[0].handled > left[0].handled

    run(work())


def test_a_host_that_was_taken_to_be_dead_claims_no_chosen_job(tmp_path: Path, client: QueueClient) -> None:
    job = _submitted(client, 1)

    with closing(JobStore(tmp_path / "state")) as store, pytest.raises(LeaseLost):
        ChosenJobs(store, [job.id]).claim(99, {"worker": Want(1)}, 1, 0.0)

    assert [waiting.id for waiting in client.store.unowned_jobs()] == [job.id]
