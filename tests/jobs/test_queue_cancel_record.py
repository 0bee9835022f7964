"""What the record of a cancelled job says: it never began, it may have run, or it had finished."""

import asyncio
import random
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from failwell.adapters.describe import describe
from failwell.capability import CapabilityTransientError
from failwell.errors import Certainty
from failwell.errors.report import Scene
from failwell.jobs.cancelled_job import cancelled_report
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.job import Job, JobRequest, JobState
from failwell.jobs.memory.machine import MachineMemory
from failwell.jobs.runtime import Runtime
from failwell.jobs.store.sqlite import JobStore
from failwell.jobs.workers.protocol import Measured, WorkerEvent
from tests.jobs.queues import (
    OutsideWorld,
    a_capability,
    a_runtime,
    began,
    change_stored,
    lines,
    types,
)
from tests.jobs.workers import SAMPLES, a_worker, failure, run, until


def certainty(jobs: Runtime, job: Job) -> Certainty | None:
    """What the stored record of a cancelled job says that it did; its last event says the same."""
    record = jobs.store.find(job.id)
    assert record is not None
    assert record.state is JobState.CANCELLED
    assert record.error is not None
    assert record.error.kind == "cancel.job"
    last = jobs.store.events(job=job.id)[-1]
    assert (last.type, last.data["certainty"]) == ("cancelled", record.error.certainty)
    return record.error.certainty


async def told_to_stop(jobs: Runtime, job: Job) -> None:
    """Wait until the worker of a job was told to stop."""
    await until(lambda: "cancel_phase" in types(jobs, job))


def a_client(folder: Path) -> QueueClient:
    return QueueClient(JobStore(folder / "state"), CapabilityRegistry(folder / "registry"))


def test_a_waiting_job_never_began(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            jobs.pause()
            job = await jobs.submit("worker", {"value": 1})
            jobs.cancel(job.id)
            await jobs.wait(job.id)

            assert certainty(jobs, job) is Certainty.NOT_SENT

    run(work())


@pytest.mark.parametrize("timeout", [None, 60.0])
def test_a_job_whose_worker_is_being_started_never_began(tmp_path: Path, timeout: float | None) -> None:
    async def work() -> None:
        from datetime import UTC, datetime, timedelta

        slow = tmp_path / "slow"
        deadline = None if timeout is None else datetime.now(UTC) + timedelta(seconds=timeout)
        async with a_runtime(tmp_path, measured=False, drain=0.1) as jobs:
            jobs.register(
                a_capability(kind="SlowStart", stop_grace=0.1),
                config={"slow_if": str(slow), "log": str(tmp_path / "log")},
            )
            await jobs.call("worker", {"value": "first"})
            await jobs.worker("worker").stop()
            slow.touch()
            job = await jobs.submit("worker", {"value": "never"}, deadline=deadline)
            await until(lambda: jobs.job(job.id).state is JobState.RUNNING)
            await asyncio.sleep(0)
            jobs.cancel(job.id)
            await jobs.wait(job.id)

            assert certainty(jobs, job) is Certainty.NOT_SENT
        assert lines(tmp_path / "log") == ["first"]

    run(work())


def test_a_call_that_waits_in_its_worker_never_began(tmp_path: Path) -> None:
    async def work() -> None:
        go, never, log = tmp_path / "go", tmp_path / "never", tmp_path / "log"
        async with a_worker("queueing:NotesCancel", config={"log": str(log)}) as (worker, _):
            await worker.start()
            busy = asyncio.ensure_future(worker.call("busy", {"path": str(go)}, action="until"))
            queued = asyncio.ensure_future(
                failure(worker.call("queued", {"value": 1, "path": str(never)}, action="effects"))
            )
            await began(go)
            stopping = asyncio.ensure_future(worker.cancel("queued"))
            await until(lambda: "cancel" in lines(log))
            go.touch()
            await asyncio.gather(busy, stopping)

            assert (await queued).certainty is Certainty.NOT_SENT
        assert not never.exists()

    run(work())


def test_a_job_that_stops_when_asked_to_began_and_did_not_finish(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, a_capability()) as jobs:
            job = await jobs.submit("worker", {"path": str(go)}, action="until")
            await began(go)
            jobs.cancel(job.id)
            await jobs.wait(job.id)

            assert certainty(jobs, job) is Certainty.PARTIAL

    run(work())


def test_a_job_that_is_killed_may_have_run(tmp_path: Path) -> None:
    async def work() -> None:
        deaf = tmp_path / "deaf"
        async with a_runtime(tmp_path, a_capability()) as jobs:
            job = await jobs.submit("worker", {"path": str(deaf)}, action="deaf")
            await began(deaf)
            jobs.cancel(job.id, grace=0.01)
            await jobs.wait(job.id)

            assert certainty(jobs, job) is Certainty.UNKNOWN

    run(work())


def test_a_job_that_returns_after_the_cancel_was_recorded_had_finished(tmp_path: Path) -> None:
    async def work() -> None:
        deaf = tmp_path / "deaf"
        async with a_runtime(tmp_path, a_capability()) as jobs:
            job = await jobs.submit("worker", {"path": str(deaf)}, action="deaf")
            await began(deaf)
            jobs.cancel(job.id)
            await told_to_stop(jobs, job)
            deaf.touch()
            ended = await jobs.wait(job.id)

            assert certainty(jobs, job) is Certainty.DONE_BUT_LOST
            assert ended.result is None

    run(work())


def test_a_result_that_arrives_before_the_cancel_is_recorded_completes_the_job(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            answers: list[bool] = []

            def cancel_at_the_answer(event: WorkerEvent) -> None:
                # It is told of memory that a job needed first before the result is handed on.
                if isinstance(event, Measured):
                    answers.append(jobs.cancel(event.job))

            jobs.worker("worker").listen(cancel_at_the_answer)
            job = await jobs.submit(
                "worker", {"path": str(tmp_path), "value": "kept", "mb": 64}, action="until"
            )
            ended = await jobs.wait(job.id)

            assert answers == [True]
            assert (ended.state, ended.result, ended.cancel_requested_at) == (
                JobState.COMPLETED,
                "kept",
                None,
            )
            assert types(jobs, job) == ["submitted", "started", "completed"]

    run(work())


class _SlowLook(OutsideWorld):
    """A machine that can be looked at only once it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()
        self.free.set()

    def read(self) -> MachineMemory:
        assert self.free.wait(30)
        return super().read()


def test_a_job_whose_result_has_arrived_cannot_be_cancelled(tmp_path: Path) -> None:
    async def work() -> None:
        go, world = tmp_path / "go", _SlowLook()
        async with a_runtime(tmp_path, measured=False, world=world) as jobs:
            jobs.register(a_capability())
            # The first call of an instance ends after another look at the machine.
            job = await jobs.submit("worker", {"path": str(go), "value": "kept"}, action="until")
            await began(go)
            world.free.clear()
            go.touch()
            await until(lambda: jobs.queue.state.live[job.id].has_result)
            is_cancelled = jobs.cancel(job.id)
            world.free.set()
            ended = await jobs.wait(job.id)

            assert not is_cancelled
            assert (ended.state, ended.result) == (JobState.COMPLETED, "kept")

    run(work())


def test_a_job_that_was_tried_before_may_have_run_and_its_failure_stays_on_record(tmp_path: Path) -> None:
    async def work() -> None:
        count = tmp_path / "count"
        async with a_runtime(tmp_path, a_capability()) as jobs:
            job = await jobs.submit(
                "worker", {"times": 1, "path": str(count), "after": 50.0}, action="fail_first"
            )
            await until(lambda: jobs.job(job.id).state is JobState.WAITING)
            jobs.cancel(job.id)
            ended = await jobs.wait(job.id)

            assert certainty(jobs, job) is Certainty.UNKNOWN
            assert ended.error is not None
            assert [(row.number, row.kind) for row in ended.error.attempts] == [(1, "worker.transient")]

    run(work())


def test_a_job_that_another_process_cancelled_cannot_be_started(tmp_path: Path) -> None:
    async def work() -> None:
        log = tmp_path / "log"
        async with a_runtime(tmp_path, measured=False) as jobs:
            jobs.register(a_capability(), config={"log": str(log)})
            await jobs.call("worker", {"value": "first"})
            jobs.pause()
            job = await jobs.submit("worker", {"value": "never"})
            other = await jobs.submit("worker", {"value": "other"})
            with closing(a_client(tmp_path).store) as store:
                is_cancelled = store.request_control(job.id, "cancel", 1.0)
                # The host tries to start both before it has read the request.
                jobs.resume()
                jobs.queue.state.turn()
                await jobs.wait(job.id)
                await jobs.wait(other.id)

                assert is_cancelled
                assert store.control_requests() == []
                assert not store.request_control(job.id, "cancel", 1.0)
                assert store.control_requests() == []
            assert types(jobs, job) == ["submitted", "cancelled"]
            assert certainty(jobs, job) is Certainty.NOT_SENT
            assert jobs.job(job.id).attempt == 0
            assert jobs.counts() == {**jobs.counts(), "pending": 0, "running": 0, "cancelled": 1}
        assert lines(log) == ["first", "other"]

    run(work())


def test_without_a_host_a_waiting_job_never_began_and_one_that_lost_its_host_may_have_run(
    tmp_path: Path,
) -> None:
    file = tmp_path / "worker.toml"
    file.write_text(f'name = "worker"\nobject = "queueing:Worker"\npath = ["{SAMPLES}"]\n')
    registry = CapabilityRegistry(tmp_path / "registry")
    registry.add(file)
    with closing(JobStore(tmp_path / "state")) as store:
        client = QueueClient(store, registry)
        lost = client.submit(JobRequest(instance="worker"))
        change_stored(store, state=JobState.RUNNING, attempt=1, charged=1)
        waiting = client.submit(JobRequest(instance="worker"))
        for job in (lost, waiting):
            assert client.cancel(job.id)
        ended = [client.find(job.id) for job in (lost, waiting)]
        events = [store.events(job=job.id)[-1] for job in (lost, waiting)]

    assert [job.error and job.error.certainty for job in ended] == ["unknown", "not_sent"]
    assert [event.data["certainty"] for event in events] == ["unknown", "not_sent"]


_CANCELLER = """
import sys
from pathlib import Path
from failwell.jobs.store.sqlite import JobStore
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.capabilities import CapabilityRegistry
client = QueueClient(JobStore(Path(sys.argv[1]) / "state"), CapabilityRegistry(Path(sys.argv[1]) / "registry"))
print("ready", flush=True)
for line in sys.stdin:
    client.cancel(line.strip())
"""


@pytest.mark.slow
@pytest.mark.acceptance("cjm-substrate 35")
def test_every_record_tells_the_truth_when_cancels_race_with_starts_and_ends(tmp_path: Path) -> None:
    async def work() -> None:
        log, number, rng = tmp_path / "log", 600, random.Random(11)
        canceller = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            _CANCELLER,
            str(tmp_path),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert canceller.stdin is not None
        assert canceller.stdout is not None
        async with a_runtime(tmp_path, a_capability(concurrency=4, cancel_grace=30.0)) as jobs:
            await canceller.stdout.readline()
            submitted: list[Job] = []
            for value in range(number):
                arguments = {
                    "value": value,
                    "path": str(log),
                    "seconds": rng.choice([0.0, 0.002, 0.005, 0.01]),
                    "hears": rng.random() < 0.5,
                }
                job = await jobs.submit("worker", arguments, action="effects")
                submitted.append(job)
                # Few jobs wait, so that a cancel meets running jobs as often as waiting ones.
                await until(lambda: len(jobs.queue.state.live) <= 5)
                chosen = rng.choice(submitted[-5:])
                if rng.random() < 0.5:
                    canceller.stdin.write(f"{chosen.id}\n".encode())
                else:
                    for _ in range(rng.randrange(8)):
                        await asyncio.sleep(0)
                    jobs.cancel(chosen.id)
            canceller.stdin.close()
            await canceller.wait()
            await jobs.drained()
            records = [job for job in jobs.store.jobs(limit=number) if job.request.action == "effects"]
            ids = {job.id for job in records}
            finals = [event.job for event in jobs.store.events() if event.is_final and event.job in ids]

        assert len(records) == number
        assert sorted(finals) == sorted(ids)
        effects = log.read_text().splitlines()
        assert len(effects) == len(set(effects))
        for job in records:
            value = job.request.arguments["value"]
            did = (f"began {value}" in effects, f"finished {value}" in effects)
            if job.state is JobState.COMPLETED:
                assert did == (True, True)
                continue
            assert job.state is JobState.CANCELLED
            assert job.error is not None
            expected = {
                (False, False): Certainty.NOT_SENT,
                (True, False): Certainty.PARTIAL,
                (True, True): Certainty.DONE_BUT_LOST,
            }
            assert job.error.certainty is expected[did], value
        seen = {job.error.certainty for job in records if job.error is not None}
        assert {Certainty.NOT_SENT, Certainty.DONE_BUT_LOST} <= seen

    run(work())


@pytest.mark.parametrize(
    ("earlier", "expected"),
    [
        (None, Certainty.UNKNOWN),
        (Certainty.UNKNOWN, Certainty.UNKNOWN),
        (Certainty.PARTIAL, Certainty.PARTIAL),
        (Certainty.REJECTED, Certainty.PARTIAL),
    ],
)
def test_an_earlier_attempt_that_may_have_finished_leaves_it_open_what_a_cancelled_job_did(
    earlier: Certainty | None, expected: Certainty
) -> None:
    failure = None if earlier is None else describe(CapabilityTransientError("no", certainty=earlier))

    report = cancelled_report("echo", Scene(job="j"), 2, Certainty.PARTIAL, failure)

    assert report.certainty is expected


def test_the_advice_after_a_cancel_follows_what_the_job_did() -> None:
    for certainty, words in (
        (Certainty.NOT_SENT, "if it is still wanted"),
        (Certainty.PARTIAL, "check what it did"),
        (Certainty.DONE_BUT_LOST, "Its work was done"),
    ):
        report = cancelled_report("echo", Scene(job="j"), 1, certainty, None)

        assert report.certainty is certainty
        assert report.user_action is not None
        assert words in report.user_action.detail
