"""Stopping: one call, cooperatively or by force; a call whose time is up; a whole worker."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

import failwell
from failwell.capability import CapabilityCancelledError, CapabilityTimeoutError
from failwell.jobs import Runtime
from failwell.jobs.job import CancelPhase, Job, JobState
from failwell.jobs.workers.protocol import CancelPhased, Died, Started, WorkerState
from failwell.jobs.workers.supervisor import SupervisedWorker
from tests.jobs.workers import a_manifest, a_worker, exists, failure, is_alive, run, until


async def underway(
    worker: SupervisedWorker, started: Path, action: str, job: str = "job", **limits: Any
) -> "asyncio.Future[Any]":
    """A call that has begun in the worker; its fault comes out of the future."""
    arguments = {"started": str(started)} | ({} if action == "woken" else {"seconds": 60})
    call = asyncio.ensure_future(failure(worker.call(job, arguments, action=action, **limits)))
    await until(exists(started))
    return call


@pytest.mark.acceptance("cjm-substrate 33")
@pytest.mark.parametrize("action", ["patient", "woken", "sleeping"])
def test_a_call_that_listens_is_cancelled_and_keeps_its_worker(action: str, tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_worker() as (worker, told):
            call = await underway(worker, tmp_path / "started", action)
            pid = worker.pid
            how = await worker.cancel("job")
            after = await worker.call("next", action="pid")
            return await call, how, pid == after, [one.phase for one in told.of(CancelPhased)]

    fault, how, same, phases = run(work())

    assert isinstance(fault, CapabilityCancelledError)
    assert failwell.describe(fault).category == "cancelled"
    assert how is CancelPhase.COOPERATIVE
    assert same
    assert phases == [CancelPhase.COOPERATIVE, CancelPhase.COMPLETED]


@pytest.mark.acceptance("cjm-substrate 34")
def test_a_call_that_does_not_listen_is_ended_with_its_process(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_worker() as (worker, told):
            call = await underway(worker, tmp_path / "started", "deaf")
            pid = worker.pid
            how = await worker.cancel("job", grace=0.1)
            fault = await call
            assert pid is not None
            assert not is_alive(pid)
            return fault, how, worker.state, worker.pid != pid, [one.phase for one in told.of(CancelPhased)]

    fault, how, state, fresh, phases = run(work())

    assert isinstance(fault, CapabilityCancelledError)
    assert how is CancelPhase.FORCE
    assert state is WorkerState.READY
    assert fresh
    assert phases == [
        CancelPhase.COOPERATIVE,
        CancelPhase.FORCE,
        CancelPhase.RELOADING,
        CancelPhase.COMPLETED,
    ]


def test_a_timeout_of_the_capabilitys_own_while_it_is_cancelled_is_still_a_cancellation(
    tmp_path: Path,
) -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            started = tmp_path / "started"
            arguments = {"seconds": 0.2, "started": str(started)}
            call = asyncio.ensure_future(failure(worker.call("job", arguments, action="deaf_but_ends")))
            await until(exists(started))
            pid = worker.pid
            how = await worker.cancel("job")
            return await call, how, pid == worker.pid

    fault, how, same = run(work())

    assert isinstance(fault, CapabilityCancelledError)
    assert how is CancelPhase.COOPERATIVE
    assert same


def test_a_result_that_races_with_its_cancellation_is_dropped(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            started = tmp_path / "started"
            arguments = {"seconds": 0.2, "started": str(started)}
            call = asyncio.ensure_future(failure(worker.call("job", arguments, action="deaf")))
            await until(exists(started))
            return await worker.cancel("job"), await call

    how, fault = run(work())

    assert how is CancelPhase.COOPERATIVE
    assert isinstance(fault, CapabilityCancelledError)


@pytest.mark.acceptance("cjm-substrate 36")
def test_cancelling_one_of_two_calls_in_a_worker_leaves_the_other_alone(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_worker(concurrency=2) as (worker, _):
            neighbour = asyncio.ensure_future(worker.call("other", {"seconds": 0.3}, action="patient"))
            call = await underway(worker, tmp_path / "started", "patient")
            how = await worker.cancel("job")
            return await call, how, await neighbour

    fault, how, other = run(work())

    assert isinstance(fault, CapabilityCancelledError)
    assert how is CancelPhase.COOPERATIVE
    assert other == "done"


def test_the_neighbour_of_a_call_ended_by_force_is_told_that_it_is_not_to_blame(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_worker(concurrency=2) as (worker, _):
            neighbour = await underway(worker, tmp_path / "other", "deaf", "other")
            await underway(worker, tmp_path / "started", "deaf")
            await worker.cancel("job", grace=0.05)
            return failwell.describe(await neighbour)

    report = run(work())

    assert (report.kind, report.details["reason"]) == ("worker.crashed", "replaced")


@pytest.mark.acceptance("cjm-substrate 37")
def test_a_cancelled_call_does_not_cancel_the_next_one(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            call = await underway(worker, tmp_path / "started", "patient")
            await worker.cancel("job")
            await call
            return await worker.call("job", {"seconds": 0.05}, action="patient")

    assert run(work()) == "done"


def test_a_call_cancelled_before_it_began_never_begins(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            first = await underway(worker, tmp_path / "first", "patient", "first")
            second = asyncio.ensure_future(
                failure(
                    worker.call("second", {"seconds": 0, "started": str(tmp_path / "second")}, action="deaf")
                )
            )
            await until(lambda: worker.in_flight == ("first", "second"))
            waiting = asyncio.ensure_future(worker.cancel("second"))
            await asyncio.sleep(0)
            await worker.cancel("first")
            await asyncio.gather(first, waiting)
            return await second

    assert isinstance(run(work()), CapabilityCancelledError)
    assert not (tmp_path / "second").exists()


def test_a_call_that_still_waits_for_its_worker_can_be_cancelled_and_the_start_goes_on() -> None:
    async def work() -> Any:
        async with a_worker(config={"beating": 0.6}) as (worker, told):
            call = asyncio.ensure_future(failure(worker.call("job", {"value": 1})))
            await until(lambda: worker.state is WorkerState.STARTING)
            how = await worker.cancel("job")
            fault = await call
            state = worker.state
            return how, fault, state, await worker.call("next", {"value": 2}), len(told.of(Started))

    how, fault, state, after, starts = run(work())

    assert how is CancelPhase.COOPERATIVE
    assert isinstance(fault, CapabilityCancelledError)
    assert state is WorkerState.STARTING
    assert (after, starts) == (2, 1)


@pytest.mark.acceptance("cjm-substrate 38")
def test_cancelling_what_does_not_run_says_so_and_tells_nobody() -> None:
    async def work() -> Any:
        async with a_worker() as (worker, told):
            await worker.call("done", {"value": 1})
            return [await worker.cancel("done"), await worker.cancel("never")], told.of(CancelPhased)

    assert run(work()) == ([None, None], [])


@pytest.mark.acceptance("cjm-substrate 29")
@pytest.mark.parametrize("action", ["patient", "deaf"])
def test_a_job_whose_time_is_up_fails_soon_and_costs_its_worker_only_if_it_does_not_listen(
    action: str, tmp_path: Path
) -> None:
    async def work() -> tuple[Job, int, int]:
        async with Runtime(tmp_path / "state", registry=tmp_path / "registry") as jobs:
            instance = jobs.register(a_manifest(cancel_grace=0.5))
            before = await jobs.call(instance, action="pid")
            job = await jobs.submit(instance, {"seconds": 10}, action=action, timeout=1)
            ended = await jobs.wait(job.id)
            after = await jobs.call(instance, action="pid")
            assert is_alive(before) == (action == "patient")
            return ended, before, after

    ended, before, after = run(work())

    assert (ended.state, ended.attempt) == (JobState.FAILED, 1)
    assert ended.error is not None
    assert (ended.error.kind, ended.error.category.job) == ("worker.timeout", "transient")
    assert ended.error.details["timeout_seconds"] == 1
    assert ended.started_at is not None
    assert ended.completed_at is not None
    # Ten seconds is what the job would take; the rest is room for a busy machine.
    assert 1 <= (ended.completed_at - ended.started_at).total_seconds() < 3
    assert (before == after) == (action == "patient")


@pytest.mark.acceptance("cjm-substrate 29")
def test_a_call_whose_time_is_up_is_stopped_and_its_worker_is_used_again(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            before = await worker.call("first", action="pid")
            fault = await failure(worker.call("job", {"seconds": 60}, action="patient", timeout=0.1))
            return fault, before == await worker.call("next", action="pid")

    fault, same = run(work())

    assert isinstance(fault, CapabilityTimeoutError)
    assert (fault.timeout_seconds, fault.capability_name) == (0.1, "sample")
    assert failwell.describe(fault).kind == "worker.timeout"
    assert failwell.describe(fault).category.job == "transient"
    assert same


@pytest.mark.acceptance("cjm-substrate 29")
def test_a_call_whose_time_is_up_and_that_does_not_listen_costs_its_process(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_worker(cancel_grace=0.1) as (worker, told):
            before = await worker.call("first", action="pid")
            fault = await failure(worker.call("job", {"seconds": 60}, action="deaf", timeout=0.1))
            after = await worker.call("next", action="pid")
            return fault, before != after, is_alive(before), told.of(Died)[0].expected

    fault, fresh, alive, expected = run(work())

    assert isinstance(fault, CapabilityTimeoutError)
    assert fresh
    assert not alive
    assert expected


def test_a_call_that_ends_in_time_is_left_alone_after_it() -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            await worker.call("job", {"value": 1}, timeout=0.2)
            return await worker.call("next", {"seconds": 0.4}, action="patient")

    assert run(work()) == "done"


def test_a_caller_that_goes_away_stops_its_call(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            started = tmp_path / "started"
            task = asyncio.ensure_future(
                worker.call("job", {"seconds": 60, "started": str(started)}, action="patient")
            )
            await until(exists(started))
            task.cancel()
            await asyncio.wait([task])
            await until(lambda: worker.in_flight == ())
            return task.cancelled(), await worker.call("next", {"value": 1})

    assert run(work()) == (True, 1)


def test_stopping_runs_the_capabilitys_cleanup_and_reaps_the_process(tmp_path: Path) -> None:
    marker = tmp_path / "cleaned"

    async def work() -> Any:
        async with a_worker(config={"cleanup_marker": str(marker)}) as (worker, told):
            pid = await worker.call("one", action="pid")
            await worker.stop()
            return pid, worker.state, worker.pid, told.of(Died)[0]

    pid, state, now, died = run(work())

    assert marker.read_text() == "cleaned"
    assert not is_alive(pid)
    assert (state, now) == (WorkerState.COLD, None)
    assert (died.expected, died.returncode, died.report) == (True, 0, None)


@pytest.mark.parametrize("obstacle", ["hangs in cleanup", "is stopped", "is busy"])
def test_stopping_ends_a_worker_that_does_not_want_to_end(obstacle: str, tmp_path: Path) -> None:
    async def work() -> Any:
        config = {"hang_in_cleanup": obstacle == "hangs in cleanup"}
        async with a_worker(config=config) as (worker, _):
            pid = await worker.call("one", action="pid")
            call = None
            if obstacle == "is stopped":
                os.kill(pid, signal.SIGSTOP)
            if obstacle == "is busy":
                call = await underway(worker, tmp_path / "started", "deaf")
            await worker.stop(grace=0.1)
            return pid, None if call is None else failwell.describe(await call)

    pid, report = run(work())

    assert not is_alive(pid)
    if report is not None:
        assert (report.kind, report.details["reason"]) == ("worker.crashed", "stopped")


@pytest.mark.parametrize("ending", ["stop", "restart"])
@pytest.mark.parametrize(
    "action",
    [
        "patient",
        "deaf_but_ends",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("woken", "sleeping")),
    ],
)
def test_a_call_that_gives_up_because_its_worker_is_stopped_was_cancelled_by_nobody(
    action: str, ending: str, tmp_path: Path
) -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            started = tmp_path / "started"
            arguments: dict[str, Any] = {"started": str(started)}
            if action != "woken":
                arguments["seconds"] = 0.2 if action == "deaf_but_ends" else 60
            call = asyncio.ensure_future(failure(worker.call("job", arguments, action=action)))
            await until(exists(started))
            await getattr(worker, ending)()
            return failwell.describe(await call)

    report = run(work())

    assert (report.kind, report.details["reason"]) == ("worker.crashed", "stopped")


def test_a_call_that_ends_well_while_its_worker_is_stopped_has_ended_well(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            started = tmp_path / "started"
            arguments = {"seconds": 0.2, "started": str(started)}
            call = asyncio.ensure_future(worker.call("job", arguments, action="deaf"))
            await until(exists(started))
            await worker.stop()
            return await call

    assert run(work()) == "done"


def test_a_call_may_still_be_cancelled_while_its_worker_is_stopped(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            call = await underway(worker, tmp_path / "started", "deaf")
            stopping = asyncio.ensure_future(worker.stop())
            await until(lambda: worker.state is WorkerState.STOPPING)
            how = await worker.cancel("job", grace=0.05)
            await stopping
            return how, await call

    how, fault = run(work())

    assert how is CancelPhase.FORCE
    assert isinstance(fault, CapabilityCancelledError)


def test_a_stopped_worker_starts_again_when_it_is_called_with_the_same_configuration() -> None:
    async def work() -> Any:
        async with a_worker(config={"model": "large"}) as (worker, _):
            await worker.start()
            await worker.stop()
            return await worker.call("one", action="seen_config"), worker.generation

    assert run(work()) == ({"model": "large"}, 2)


@pytest.mark.parametrize("stops", [1, 2, 5])
@pytest.mark.parametrize("moment", ["at once", "spawned", "initialising"])
def test_stopping_while_starting_leaves_nothing_and_tells_whoever_waits(
    moment: str, stops: int, tmp_path: Path
) -> None:
    async def work() -> Any:
        marker = tmp_path / "started"
        async with a_worker("rough:Rough", config={"slow": 60, "started": str(marker)}) as (worker, told):
            starting = asyncio.ensure_future(failure(worker.start()))
            calling = asyncio.ensure_future(failure(worker.call("job", {"value": 1})))
            await asyncio.sleep(0)
            if moment == "spawned":
                await until(lambda: worker.pid is not None)
            if moment == "initialising":
                await until(exists(marker))
            pid = worker.pid
            async with asyncio.timeout(10):
                await asyncio.gather(*(worker.stop() for _ in range(stops)))
                return pid, await starting, await calling, worker.state, worker.pid, told

    pid, starting, calling, state, now, told = run(work())

    assert pid is None or not is_alive(pid)
    for fault in (starting, calling):
        report = failwell.describe(fault)
        assert (report.kind, report.details["reason"]) == ("worker.crashed", "stopped")
    assert (state, now) == (WorkerState.COLD, None)
    assert len(told.of(Died)) == len(told.of(Started))


def test_a_worker_that_was_stopped_twice_while_it_was_started_can_be_called() -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            starting = asyncio.ensure_future(failure(worker.start()))
            await until(lambda: worker.pid is not None)
            first = asyncio.ensure_future(worker.stop())
            await asyncio.sleep(0)
            second = asyncio.ensure_future(worker.stop())
            await asyncio.sleep(0)
            third = asyncio.ensure_future(worker.restart())
            async with asyncio.timeout(10):
                await asyncio.gather(starting, first, second, third)
                return await worker.call("job", {"value": 1})

    assert run(work()) == 1


def test_a_job_that_waits_for_a_worker_being_restarted_is_told_that_it_is_not_to_blame(
    tmp_path: Path,
) -> None:
    async def work() -> Any:
        marker = tmp_path / "started"
        async with a_worker("rough:Rough", config={"slow": 0.3, "started": str(marker)}) as (worker, _):
            calling = asyncio.ensure_future(failure(worker.call("job", {"value": 1})))
            await until(exists(marker))
            await worker.restart()
            return failwell.describe(await calling), await worker.call("again", {"value": 2})

    report, again = run(work())

    assert (report.kind, report.details["reason"]) == ("worker.crashed", "stopped")
    assert again == 2


def test_whoever_is_in_a_hurry_hastens_a_stop_that_is_under_way(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_worker(config={"hang_in_cleanup": True}, stop_grace=60.0) as (worker, _):
            await worker.start()
            patient = asyncio.ensure_future(worker.stop())
            await until(lambda: worker.state is WorkerState.STOPPING)
            async with asyncio.timeout(10):
                await worker.stop(grace=0.05)
                await patient
            return worker.state

    assert run(work()) is WorkerState.COLD


def test_a_stop_goes_on_when_whoever_asked_for_it_goes_away() -> None:
    async def work() -> Any:
        async with a_worker(config={"hang_in_cleanup": True}, stop_grace=0.3) as (worker, _):
            pid = await worker.call("one", action="pid")
            stopping = asyncio.ensure_future(worker.stop())
            await until(lambda: worker.state is WorkerState.STOPPING)
            stopping.cancel()
            await until(lambda: worker.state is WorkerState.COLD and worker.pid is None)
            return is_alive(pid)

    assert run(work()) is False


def test_a_worker_that_dies_in_the_moment_it_is_stopped_does_not_come_back() -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            for _ in range(5):
                pid = await worker.call("one", action="pid")
                os.kill(pid, signal.SIGKILL)
                await worker.stop()
                assert (worker.state, worker.pid) == (WorkerState.COLD, None)
            return worker.generation

    assert run(work()) == 5


def test_stopping_twice_or_before_the_start_does_no_harm() -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            await worker.stop()
            await worker.start()
            await asyncio.gather(worker.stop(), worker.stop())
            return worker.state

    assert run(work()) is WorkerState.COLD
