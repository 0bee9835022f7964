"""Workers that die: seen at once, classified by how they died, replaced, and nothing left of them."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import failwell
from failwell.capability import CapabilityResourceError, CapabilityTransientError, WorkerOOMError
from failwell.errors.fault import Fault
from failwell.errors.report import TracebackPolicy
from failwell.jobs.faults import WorkerCrashed
from failwell.jobs.workers.protocol import Died, Quarantined, Ready, Supervision, WorkerState
from failwell.processes.tree import descendants
from tests.jobs.queues import a_runtime
from tests.jobs.workers import (
    SAMPLES,
    a_manifest,
    a_worker,
    exists,
    failure,
    is_alive,
    parent_of,
    reported,
    run,
    until,
)

CAMPAIGN = os.environ.get("FAILWELL_CAMPAIGN") == "1"
"""Whether to die as often as it takes to be sure: a few minutes instead of seconds."""


def times(often: int, few: int) -> int:
    return often if CAMPAIGN else few


@pytest.mark.slow
@pytest.mark.acceptance("cjm-substrate 22")
@pytest.mark.timeout(600)
def test_a_worker_killed_during_a_call_is_out_of_memory_every_single_time(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_worker() as (worker, told):
            for round_ in range(times(200, 20)):
                started = tmp_path / f"{round_}"
                call = asyncio.ensure_future(
                    failure(
                        worker.call(f"job-{round_}", {"seconds": 60, "started": str(started)}, action="deaf")
                    )
                )
                await until(exists(started))
                assert worker.pid is not None
                os.kill(worker.pid, signal.SIGKILL)
                fault = await call

                assert isinstance(fault, WorkerOOMError)
                assert isinstance(fault, CapabilityResourceError)
                assert fault.process_returncode == -9
                assert "returncode=-9" in str(fault)
                report = failwell.describe(fault)
                assert (report.kind, report.details["out_of_memory"]) == ("worker.oom", "assumed")
                assert "kernel log" in report.user_action.detail
                assert await worker.call("next", {"value": round_}) == round_
            deaths = [one for one in told.of(Died) if not one.expected]
            assert [one.in_flight for one in deaths] == [(f"job-{n}",) for n in range(times(200, 20))]

    run(work())


@pytest.mark.acceptance("cjm-substrate 23")
@pytest.mark.timeout(600)
def test_a_worker_that_segfaults_is_transient_and_the_next_job_gets_a_fresh_one() -> None:
    async def work() -> None:
        async with a_worker() as (worker, _):
            for _ in range(times(50, 4)):
                before = await worker.call("before", action="pid")
                fault = await failure(worker.call("dying", action="segfault"))
                after = await worker.call("after", action="pid")

                report = failwell.describe(fault)
                assert isinstance(fault, CapabilityTransientError)
                assert (report.kind, report.details["signal"]) == ("worker.crashed", "SIGSEGV")
                assert "SIGSEGV" in report.message
                assert (
                    "string_at" in report.details["stderr_tail"]
                    or "segfault" in report.details["stderr_tail"]
                )
                assert before != after

    run(work())


@pytest.mark.acceptance("cjm-substrate 23")
@pytest.mark.timeout(600)
def test_a_worker_that_exits_is_transient_and_names_its_code() -> None:
    async def work() -> None:
        async with a_worker() as (worker, _):
            for round_ in range(times(50, 4)):
                code = (3, 1, 42, 0, 255)[round_ % 5]
                report = await reported(worker.call("dying", {"how": code}, action="die"))

                assert (report.kind, report.details["exit_code"]) == ("worker.crashed", code)
                assert report.category.job == "transient"
                assert f"exited with code {code}" in report.message
                assert await worker.call("next", {"value": 1}) == 1

    run(work())


def test_an_abort_whose_last_words_speak_of_memory_is_out_of_memory() -> None:
    async def work() -> Any:
        async with a_worker(traceback=TracebackPolicy.FULL) as (worker, _):
            return await reported(worker.call("dying", action="abort_for_memory"))

    report = run(work())

    assert report.kind == "worker.oom"
    assert "bad_alloc" in report.details["stderr_tail"]
    assert report.details["out_of_memory"] == "confirmed"


def test_a_limit_on_address_space_is_a_shortage_of_memory_and_the_worker_lives() -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            before = worker.pid or await worker.call("zero", action="pid")
            report = await reported(worker.call("one", {"megabytes": 512}, action="limited"))
            return report, before, worker.pid

    report, before, after = run(work())

    assert (report.kind, report.error_type) == ("resource.system_memory", "MemoryError")
    assert report.details["ram_available_mb"] > 0
    assert before == after


def _memory_group() -> Path | None:
    """A control group of our own with a memory limit, where the machine lets us make one."""
    for root, limit in (
        (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
        (Path("/sys/fs/cgroup"), "memory.max"),
    ):
        group = root / f"failwell-test-{os.getpid()}"
        try:
            group.mkdir()
            (group / limit).write_text(str(128 * 1024 * 1024))
        except OSError:
            if group.exists():
                group.rmdir()
            continue
        return group
    return None


@pytest.mark.skipif(sys.platform != "linux", reason="control groups are Linux's")
def test_a_worker_that_the_kernel_ends_for_memory_says_so(tmp_path: Path) -> None:
    group = _memory_group()
    if group is None:
        pytest.skip("this machine lets nobody make a control group")

    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho $$ > {group}/cgroup.procs\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)

    async def work() -> Any:
        async with a_worker(python=str(python)) as (worker, _):
            first = await failure(worker.call("hungry", {"megabytes": 400}, action="eat"))
            return first, await worker.call("next", {"value": "fed"})

    try:
        fault, after = run(work())
    finally:
        group.rmdir()

    assert isinstance(fault, WorkerOOMError)
    assert fault.process_returncode == -9
    details = failwell.describe(fault).details
    assert details["oom_kills"] >= 1
    assert details["out_of_memory"] == "confirmed"
    assert after == "fed"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte, where the machine lets us mount one."""
    place = tmp_path / "small"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if made.returncode != 0:
        pytest.skip("this machine lets nobody mount a disk")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="mounting is Linux's")
def test_a_disk_that_is_really_full_is_a_shortage_of_disk_and_the_worker_lives(small_disk: Path) -> None:
    async def work() -> Any:
        async with a_worker(folder=str(small_disk)) as (worker, _):
            before = await worker.call("zero", action="pid")
            arguments = {"path": str(small_disk / "file"), "megabytes": 2}
            written = await reported(worker.call("one", arguments, action="fill"))
            returned = await reported(worker.call("two", action="binary"))
            return written, returned, before == await worker.call("three", action="pid")

    written, returned, same = run(work())

    assert (written.kind, returned.kind) == ("resource.disk", "resource.disk")
    assert same


def test_every_call_in_flight_fails_with_the_death_and_is_named_in_it() -> None:
    async def work() -> Any:
        async with a_worker(concurrency=3) as (worker, told):
            await worker.start()
            calls = [
                asyncio.ensure_future(failure(worker.call(f"job-{n}", {"seconds": 60}, action="deaf")))
                for n in range(2)
            ]
            dying = await failure(worker.call("dying", {"how": 9}, action="die"))
            return [dying, *(await asyncio.gather(*calls))], told.of(Died)[0]

    faults, died = run(work())

    assert {type(one) for one in faults} == {WorkerCrashed}
    assert set(died.in_flight) == {"job-0", "job-1", "dying"}
    assert died.report is not None
    assert died.report.kind == "worker.crashed"


def test_a_worker_comes_back_by_itself_with_the_same_configuration() -> None:
    async def work() -> Any:
        async with a_worker(config={"model": "large"}) as (worker, told):
            await worker.start()
            await failure(worker.call("dying", {"how": 3}, action="die"))
            await until(lambda: len(told.of(Ready)) == 2)
            return worker.state, worker.generation, await worker.call("one", action="seen_config")

    assert run(work()) == (WorkerState.READY, 2, {"model": "large"})


def test_a_worker_that_keeps_dying_is_quarantined_and_may_be_forgiven() -> None:
    care = Supervision(deaths=3, cooldown=600.0)

    async def work() -> Any:
        async with a_worker(care=care) as (worker, told):
            await worker.start()
            for _ in range(3):
                await failure(worker.call("dying", {"how": 7}, action="die"))
            refused = await reported(worker.call("refused", {"value": 1}))
            state = worker.state
            processes = worker.generation
            worker.forgive()
            return refused, state, processes, told.of(Quarantined), await worker.call("again", {"value": 1})

    refused, state, processes, quarantines, again = run(work())

    assert state is WorkerState.QUARANTINED
    assert processes == 3
    assert refused.details["reason"] == "quarantined"
    assert refused.not_before is not None
    assert 590 < refused.not_before.after <= 600
    assert [one.deaths for one in quarantines] == [3]
    assert again == 1


def test_a_finished_call_between_deaths_shows_that_the_worker_is_sound() -> None:
    async def work() -> Any:
        async with a_worker(care=Supervision(deaths=2)) as (worker, told):
            for _ in range(4):
                await failure(worker.call("dying", {"how": 7}, action="die"))
                await worker.call("good", {"value": 1})
            return told.of(Quarantined)

    assert run(work()) == []


@pytest.mark.acceptance("cjm-substrate 26")
@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_no_descendant_survives_its_worker_not_even_one_in_a_session_of_its_own(ending: str) -> None:
    async def work() -> list[int]:
        async with a_worker() as (worker, _):
            below = await worker.call("one", action="start_descendants")
            assert all(is_alive(pid) for pid in below)
            await until(lambda: (held := worker.memory()) is not None and set(below) <= set(held.pids))
            if ending == "kill":
                assert worker.pid is not None
                os.kill(worker.pid, signal.SIGKILL)
                await until(lambda: not any(is_alive(pid) for pid in below))
            return below

    below = run(work())

    assert not any(is_alive(pid) for pid in below)


HOST = """
import asyncio, sys
from tests.jobs.workers import a_manifest
from failwell.jobs.workers.supervisor import SupervisedWorker

async def main():
    workers = [SupervisedWorker(a_manifest(), instance=f"w{n}") for n in range(2)]
    pids = []
    for worker in workers:
        pids += await worker.call("one", action="start_descendants")
        pids.append(worker.pid)
    calls = [asyncio.ensure_future(w.call("two", {"seconds": 600}, action="deaf")) for w in workers]
    print(*pids, flush=True)
    await asyncio.gather(*calls)

asyncio.run(main())
"""


@pytest.mark.acceptance("cjm-substrate 24")
def test_a_host_that_is_killed_takes_its_workers_and_their_descendants_with_it() -> None:
    root = Path(SAMPLES).parents[2]
    host = subprocess.Popen(
        [sys.executable, "-c", HOST],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"},
    )
    assert host.stdout is not None
    pids = [int(one) for one in host.stdout.readline().split()]
    guardians = descendants(host.pid)
    assert len(pids) == 8
    assert all(is_alive(pid) for pid in pids)

    host.kill()
    host.wait()
    host.stdout.close()

    end = time.monotonic() + 5
    while any(is_alive(pid) for pid in [*pids, *guardians]) and time.monotonic() < end:
        os.sched_yield()
    assert not any(is_alive(pid) for pid in [*pids, *guardians])


def test_a_worker_whose_guardian_is_killed_dies_too_and_is_replaced() -> None:
    async def work() -> Any:
        async with a_worker() as (worker, told):
            first = await worker.call("one", action="pid")
            guardian = parent_of(first)
            call = asyncio.ensure_future(failure(worker.call("two", {"seconds": 60}, action="deaf")))
            await until(lambda: worker.in_flight == ("two",))
            os.kill(guardian, signal.SIGKILL)
            fault = await call
            await until(lambda: not is_alive(first))
            return fault, await worker.call("three", {"value": 3}), told.of(Died)

    fault, after, deaths = run(work())

    assert isinstance(fault, WorkerCrashed)
    assert after == 3
    assert not deaths[0].expected


def test_a_guardian_that_is_killed_during_a_start_is_a_crash_and_nobodys_mistake(tmp_path: Path) -> None:
    async def work() -> Any:
        marker = tmp_path / "started"
        async with a_worker("rough:Rough", config={"slow": 60, "started": str(marker)}) as (worker, _):
            starting = asyncio.ensure_future(reported(worker.start()))
            await until(exists(marker))
            assert worker.pid is not None
            os.kill(parent_of(worker.pid), signal.SIGKILL)
            return await starting

    report = run(work())

    assert (report.kind, report.category.job) == ("worker.crashed", "transient")


@pytest.mark.skipif(sys.platform != "linux", reason="only /proc tells whose a process was")
def test_a_descendant_in_a_session_of_its_own_does_not_survive_a_guardian_that_is_killed() -> None:
    async def work() -> Any:
        async with a_worker() as (worker, told):
            pid = await worker.call("one", action="pid")
            below = await worker.call("two", action="start_descendants")
            assert all(is_alive(one) for one in below)
            os.kill(parent_of(pid), signal.SIGKILL)
            await until(lambda: not any(is_alive(one) for one in (pid, *below)) and told.of(Died))
            return await worker.call("three", {"value": 3})

    assert run(work()) == 3


def test_a_guardian_that_is_stopped_cannot_keep_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("failwell.processes.worker._GUARDIAN_GRACE", 0.3)

    async def work() -> Any:
        async with a_worker() as (worker, _):
            pid = await worker.call("one", action="pid")
            below = await worker.call("two", action="start_descendants")
            os.kill(parent_of(pid), signal.SIGSTOP)
            async with asyncio.timeout(10):
                await worker.stop(grace=0.05)
            await until(lambda: not any(is_alive(one) for one in (pid, *below)))
            return worker.state

    assert run(work()) is WorkerState.COLD


@pytest.mark.parametrize("ending", ["", "\n"], ids=["unfinished line", "whole line"])
def test_the_last_words_of_a_worker_are_read_to_the_end(ending: str) -> None:
    async def work() -> Any:
        care = Supervision(deaths=100, policy=TracebackPolicy.REPR_ONLY)
        async with a_worker("rough:Rough", care=care) as (worker, _):
            words = [f"words {n}" for n in range(30)]
            return words, [
                await reported(worker.call("one", {"text": "\n".join(words) + ending}, action="last_words"))
                for _ in range(4)
            ]

    words, reports = run(work())

    assert {one.details["stderr_tail"] for one in reports} == {"\n".join(words[-12:])}


@pytest.mark.skipif(sys.platform != "linux", reason="only /proc tells that a process is stopped")
def test_a_worker_that_a_signal_has_stopped_is_ended_after_a_while_and_replaced(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_worker(care=Supervision(stopped=0.4)) as (worker, told):
            pid = await worker.call("one", action="pid")
            started = tmp_path / "started"
            arguments = {"seconds": 60, "started": str(started)}
            call = asyncio.ensure_future(reported(worker.call("two", arguments, action="deaf")))
            await until(exists(started))
            os.kill(pid, signal.SIGSTOP)
            async with asyncio.timeout(10):
                report = await call
            return report, await worker.call("three", {"value": 3}), told.of(Died)[0], is_alive(pid)

    report, after, died, alive = run(work())

    assert (report.kind, report.category.job, report.retryable) == ("worker.stalled", "transient", True)
    assert "stopped by a signal" in report.message
    assert after == 3
    assert not died.expected
    assert not alive


@pytest.mark.skipif(sys.platform != "linux", reason="only /proc tells that a process is stopped")
def test_a_worker_that_is_stopped_for_moments_goes_on_however_many_they_are(tmp_path: Path) -> None:
    def state(pid: int) -> str:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]

    async def work() -> Any:
        async with a_worker(care=Supervision(stopped=0.4)) as (worker, _):
            pid = await worker.call("one", action="pid")
            started = tmp_path / "started"
            arguments = {"seconds": 1.0, "started": str(started)}
            call = asyncio.ensure_future(worker.call("two", arguments, action="deaf"))
            await until(exists(started))
            while not call.done():
                os.kill(pid, signal.SIGSTOP)
                await until(lambda: state(pid) == "T")
                os.kill(pid, signal.SIGCONT)
                await until(lambda: state(pid) != "T")
            return await call, pid == await worker.call("three", action="pid")

    assert run(work()) == ("done", True)


def test_a_start_for_which_there_are_no_descriptors_fails_and_leaves_none_open() -> None:
    from resource import RLIMIT_NOFILE, getrlimit, setrlimit

    soft, hard = getrlimit(RLIMIT_NOFILE)

    def held() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    async def work() -> Any:
        async with a_worker() as (worker, _):
            await worker.start()
            await worker.stop()
            before, failures = held(), 0
            for room in range(12):
                setrlimit(RLIMIT_NOFILE, (before + room, hard))
                try:
                    await worker.start()
                except (Fault, OSError):
                    failures += 1
                finally:
                    setrlimit(RLIMIT_NOFILE, (soft, hard))
                await worker.stop()
                assert held() == before
            return failures, await worker.call("one", {"value": 1})

    failures, after = run(work())

    assert failures > 3
    assert after == 1


FIRST_DEATH = """
import asyncio, os, signal, sys
from tests.jobs.workers import a_worker, failure

async def main():
    async with a_worker() as (worker, _):
        call = asyncio.ensure_future(failure(worker.call("one", {"seconds": 600}, action="deaf")))
        while not worker.in_flight:
            await asyncio.sleep(0.01)
        before = set(sys.modules)
        os.kill(worker.pid, signal.SIGKILL)
        await call
        print(sorted(set(sys.modules) - before))

asyncio.run(main())
"""


def test_the_first_death_of_all_has_nothing_to_load_before_it_is_told() -> None:
    root = Path(SAMPLES).parents[2]

    made = subprocess.run(
        [sys.executable, "-c", FIRST_DEATH],
        check=True,
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"},
    )

    assert made.stdout == "[]\n"


def test_one_death_is_described_once_for_its_event_and_for_every_job_that_it_fails(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path) as jobs:
            jobs.register(a_manifest(concurrency=2))
            told: list[Died] = []
            worker = jobs.worker("sample")
            worker.listen(lambda event: told.append(event) if isinstance(event, Died) else None)
            await jobs.call("sample", {"value": 1})
            started = [tmp_path / "one", tmp_path / "two"]
            ones = [
                await jobs.submit(
                    "sample",
                    {"seconds": 60, "started": str(file)},
                    action="deaf",
                    control={"max_attempts": 1},
                )
                for file in started
            ]
            for file in started:
                await until(exists(file))
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGKILL)
            ended = [await jobs.wait(one.id) for one in ones]

            (death,) = told
            assert death.report is not None
            assert [job.error.id for job in ended if job.error is not None] == [death.report.id] * 2
            assert [job.error.scene.job for job in ended if job.error is not None] == [one.id for one in ones]

    run(work())
