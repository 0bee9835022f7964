"""The host is killed with jobs waiting and running: none is lost, none runs twice without a record of it."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from failwell.jobs.job import JobState
from failwell.jobs.store.sqlite import JobStore
from failwell.processes.tree import descendants
from tests.jobs.queues import a_capability, a_runtime, change_stored, types
from tests.jobs.workers import is_alive, run

ROOT = Path(__file__).resolve().parents[2]


def a_host(folder: Path, number: int, running: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.jobs.hosting", str(folder), str(number), str(running)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
    )


def says(host: "subprocess.Popen[str]", word: str) -> None:
    assert host.stdout is not None
    for line in host.stdout:
        if line.strip() == word:
            return
    raise AssertionError(f"the host ended before it said {word!r}")


def kill_hosts(folder: Path, times: int, number: int = 12, running: int = 4) -> None:
    """Kill a host `times` times with jobs waiting and running, then let one finish, and compare."""
    for _ in range(times):
        host = a_host(folder, number, running)
        says(host, f"running {running}")
        below = descendants(host.pid)
        host.send_signal(signal.SIGKILL)
        host.wait()
        assert host.stdout is not None
        host.stdout.close()
        end = time.monotonic() + 5
        while any(is_alive(pid) for pid in below):
            assert time.monotonic() < end, "a worker outlived its host"
            time.sleep(0.01)
        # A few end in between, so that each death finds others running.
        _let_go(folder, 1)
    _let_go(folder, number)
    host = a_host(folder, number, running)
    says(host, "empty")
    host.wait()
    assert host.stdout is not None
    host.stdout.close()
    _compare(folder, number, times)


def _let_go(folder: Path, many: int) -> None:
    left = [path for path in (folder / f"go-{n}" for n in range(10_000)) if not path.exists()][:many]
    for path in left:
        path.touch()


def _compare(folder: Path, number: int, times: int) -> None:
    store = JobStore(folder / "state")
    try:
        jobs = {job.request.key: job for job in store.jobs() if job.request.key is not None}
        events = store.events()
        counts = store.counts()
    finally:
        store.close()
    assert sorted(jobs) == sorted(f"job-{value}" for value in range(number))
    assert {job.state for job in jobs.values()} <= {JobState.COMPLETED, JobState.FAILED}
    assert counts["completed"] + counts["failed"] == number + 1
    assert counts["pending"] == counts["running"] == counts["waiting"] == 0
    started, requeued = Counter[str](), Counter[str]()
    for event in events:
        started[event.job] += event.type == "started"
        requeued[event.job] += event.type == "requeued"
    for job in jobs.values():
        ends = [event.type for event in events if event.job == job.id and event.is_final]
        assert len(ends) == 1
        # Every start beyond the first has the record of why before it; the last loss may end the job instead.
        assert started[job.id] == job.attempt
        assert started[job.id] - 1 <= requeued[job.id] <= started[job.id]
    assert sum(requeued.values()) > 0 or times == 0
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


@pytest.mark.slow
def test_a_killed_host_loses_nothing_and_repeats_nothing_in_silence(tmp_path: Path) -> None:
    kill_hosts(tmp_path, int(os.environ.get("FAILWELL_KILLS", "2")))


def test_a_job_under_which_the_host_keeps_dying_is_not_started_for_ever(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability("other")) as jobs:
            jobs.pause()
            job = await jobs.submit("other", {"value": 1})
        store = JobStore(tmp_path / "state")
        change_stored(store, state=JobState.RUNNING, attempt=5, losses=4)
        store.close()
        async with a_runtime(tmp_path) as jobs:
            ended = await jobs.wait(job.id)

            assert ended.error is not None
            assert (ended.state, ended.error.kind) == (JobState.FAILED, "worker.crashed")
            assert "the host died 5 times" in ended.error.message
            assert types(jobs, job) == ["submitted", "failed"]

    run(work())


@pytest.mark.parametrize("state", ["pending", "waiting"])
def test_what_waited_goes_on_waiting(tmp_path: Path, state: str) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            jobs.pause()
            job = await jobs.submit("worker", {"value": 1})
        store = JobStore(tmp_path / "state")
        far = float(int(time.time()) + 3600)
        change_stored(store, state=JobState(state), due=far if state == "waiting" else None)
        store.close()
        async with a_runtime(tmp_path) as jobs:
            held = jobs.job(job.id)
            if state == "waiting":
                assert held.not_before is not None
                assert held.not_before.timestamp() == far
                assert jobs.cancel(job.id)
                assert (await jobs.wait(job.id)).state is JobState.CANCELLED
            else:
                assert held.state is JobState.PENDING
                jobs.register(a_capability())
                assert (await jobs.wait(job.id)).result == 1

    run(work())
