"""Starting a worker: no clock but silence, every failure named, and no process left after one."""

import asyncio
import os
import sys
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

import failwell
from failwell.capability import CapabilityConfigError, CapabilityInputError, CapabilityTimeoutError
from failwell.errors.report import TracebackPolicy
from failwell.jobs.faults import WorkerStalled, WorkerStartFailed
from failwell.jobs.manifest import Variable
from failwell.jobs.workers.protocol import Died, OutputLine, Progress, Ready, Started, WorkerState
from tests.jobs.children import children
from tests.jobs.workers import a_worker, failure, is_alive, reported, run


def test_a_worker_starts_when_it_is_first_called_and_tells() -> None:
    async def work() -> Any:
        async with a_worker() as (worker, told):
            before = worker.state, worker.pid
            await worker.call("one", {"value": 1})
            return before, worker.state, worker.pid, told.of(Started)[0], told.of(Ready)[0], worker.about

    before, state, pid, started, ready, about = run(work())

    assert before == (WorkerState.COLD, None)
    assert state is WorkerState.READY
    assert (started.pid, ready.pid) == (pid, pid)
    assert about["version"] == "1.2"
    assert "halfway" in about["actions"]
    assert "initialize" not in about["actions"]


def test_callers_that_come_at_once_share_one_start() -> None:
    async def work() -> Any:
        async with a_worker(concurrency=4) as (worker, told):
            made = await asyncio.gather(*(worker.call(f"{n}", {"value": n}) for n in range(8)))
            return made, len(told.of(Started))

    assert run(work()) == (list(range(8)), 1)


@pytest.mark.slow
@pytest.mark.acceptance("cjm-substrate 25")
def test_an_import_of_eight_seconds_is_waited_for() -> None:
    # By the real clock: a limit on the start that somebody adds one day must not go unseen.
    slow = Variable(name="IMPORT_SECONDS", value="8")

    async def work() -> Any:
        async with a_worker("slow_import:execute", env=(slow,), stall_after=30.0) as (worker, told):
            begun = monotonic()
            await worker.start()
            took = monotonic() - begun
            return took, worker.state, await worker.call("one", {"value": 1}), len(told.of(Started))

    took, state, value, starts = run(work())

    assert 8.0 <= took < 30.0
    assert (state, value, starts) == (WorkerState.READY, 1, 1)


@pytest.mark.acceptance("cjm-substrate 25")
@pytest.mark.parametrize("target", ["missing:Never", "sample:Broken"])
def test_an_import_that_fails_says_why_within_two_seconds_and_leaves_no_process(target: str) -> None:
    async def work() -> Any:
        async with a_worker(target, stall_after=30.0) as (worker, told):
            begun = monotonic()
            fault = await failure(worker.start())
            took = monotonic() - begun
            return fault, took, worker.state, worker.pid, children(), told.of(Started)[0].pid

    fault, took, state, pid, left, started = run(work())

    report = failwell.describe(fault)
    assert isinstance(fault, WorkerStartFailed)
    assert "The Python module `a_module_that_nobody_has` is not installed." in report.message
    assert report.internal is not None
    assert ", line " in (report.internal.traceback or "")
    assert target in report.message
    assert [cause.type for cause in report.causes] == ["ModuleNotFoundError"]
    assert took <= 2.0
    assert (state, pid, left) == (WorkerState.COLD, None, [])
    assert not is_alive(started)


@pytest.mark.parametrize("target", ["sample:NoSuchThing", "no_such_module_at_all:X"])
def test_a_target_that_is_not_there_is_named(target: str) -> None:
    async def work() -> Any:
        async with a_worker(target) as (worker, _):
            return await reported(worker.call("one"))

    report = run(work())

    assert report.kind == "worker.start_failed"
    assert target in report.message


def test_an_interpreter_that_is_not_there_is_named() -> None:
    async def work() -> Any:
        async with a_worker(python="/nowhere/bin/python") as (worker, _):
            return await reported(worker.start())

    report = run(work())

    assert report.kind == "worker.start_failed"
    assert "/nowhere/bin/python" in report.message


def test_an_interpreter_that_is_too_old_is_told_in_one_sentence(tmp_path: Path) -> None:
    old = tmp_path / "python"
    # The real file, read by an interpreter that believes to be an old one.
    old.write_text(
        f'#!/bin/sh\nexec {sys.executable} -c "import sys, runpy; sys.version_info = (3, 8, 1);'
        ' sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name=\'__main__\')" "$@"\n'
    )
    old.chmod(0o755)

    async def work() -> Any:
        async with a_worker(python=str(old)) as (worker, _):
            return await reported(worker.start())

    report = run(work())

    assert report.kind == "worker.start_failed"
    assert "needs Python 3.11 or newer" in report.message
    assert report.details["exit_code"] == 78


def test_a_program_that_is_no_python_at_all_is_told_with_its_last_words(tmp_path: Path) -> None:
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\necho 'this is not python' >&2\nexit 7\n")
    other.chmod(0o755)

    async def work() -> Any:
        async with a_worker(python=str(other), traceback=TracebackPolicy.FULL) as (worker, _):
            return await reported(worker.start())

    report = run(work())

    assert (report.kind, report.details["exit_code"]) == ("worker.start_failed", 7)
    assert report.details["stderr_tail"] == "this is not python"


def test_what_initialize_raises_arrives_as_it_was_raised() -> None:
    async def work() -> Any:
        async with a_worker(config={"raise_input": True}) as (worker, _):
            fault = await failure(worker.start())
            return fault, children(), worker.state

    fault, left, state = run(work())

    assert isinstance(fault, CapabilityInputError)
    assert fault.fields_invalid == ["model"] or failwell.describe(fault).fields_invalid == ("model",)
    assert (left, state) == ([], WorkerState.COLD)


def test_a_process_that_exits_while_it_is_initialised_is_a_failed_start() -> None:
    async def work() -> Any:
        async with a_worker(config={"exit": 5}) as (worker, told):
            return await reported(worker.call("one")), told.of(Died)

    report, died = run(work())

    assert (report.kind, report.details["exit_code"]) == ("worker.start_failed", 5)
    assert len(died) == 1


@pytest.mark.slow
@pytest.mark.acceptance("cjm-substrate 28")
def test_an_initialize_that_shows_progress_may_take_twice_the_silence_that_is_allowed() -> None:
    async def work() -> Any:
        async with a_worker(config={"beating": 2.0}, stall_after=1.0) as (worker, told):
            begun = monotonic()
            await worker.start()
            took = monotonic() - begun
            value = await worker.call("one", {"value": 1})
            return took, value, [one for one in told.of(Progress) if one.job is None], told.of(Died)

    took, value, beats, died = run(work())

    assert took >= 2.0
    assert (value, died) == (1, [])
    assert len(beats) > 5
    assert beats[0].message.startswith("loading")


@pytest.mark.slow
def test_an_initialize_that_lets_no_other_thread_run_is_seen_to_work() -> None:
    async def work() -> Any:
        async with a_worker(config={"holding": 100_000_000}, stall_after=1.0) as (worker, _):
            return await worker.call("one", {"value": 1})

    assert run(work()) == 1


@pytest.mark.acceptance("cjm-substrate 28")
def test_an_initialize_that_is_silent_for_too_long_is_ended_with_all_below_it(tmp_path: Path) -> None:
    threshold, below = 1.0, tmp_path / "below"

    async def work() -> Any:
        config = {"below": str(below), "silent": 60}
        async with a_worker(config=config, stall_after=threshold) as (worker, told):
            begun = monotonic()
            fault = await failure(worker.start())
            took = monotonic() - begun
            return fault, took, worker.state, children(), told.of(Started)[0].pid

    fault, took, state, left, pid = run(work())

    assert isinstance(fault, WorkerStalled)
    assert isinstance(fault, CapabilityTimeoutError)
    assert fault.timeout_seconds >= threshold
    report = failwell.describe(fault)
    assert (report.kind, report.category.job) == ("worker.stalled", "transient")
    assert report.details["doing"] == "being initialised"
    assert threshold <= took <= threshold + 5.0
    subtree = [pid, *map(int, below.read_text().split())]
    assert len(subtree) == 4
    assert [one for one in subtree if is_alive(one)] == []
    assert (state, left) == (WorkerState.COLD, [])


def test_what_is_printed_while_starting_is_told() -> None:
    async def work() -> Any:
        async with a_worker(config={"say": ["loading the model"]}) as (worker, told):
            await worker.start()
        return [(one.stream, one.text, one.job) for one in told.of(OutputLine)]

    assert run(work()) == [("stdout", "loading the model", None)]


# ------------------------------------------------------------------ environment


def test_a_worker_sees_what_programs_need_and_what_its_manifest_names_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-host-only")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("HF_HOME", "/models")
    names = ["OPENAI_API_KEY", "PYTHONPATH", "HF_HOME", "PATH", "MODE", "TOKEN"]
    env = (Variable(name="MODE", value="fast"), Variable(name="TOKEN", secret=True))

    async def work() -> Any:
        async with a_worker(env=env, inherit=("HF_*",), secrets={"TOKEN": "s3cret-of-theirs"}) as (worker, _):
            return await worker.call("one", {"names": names}, action="environment")

    seen = run(work())

    assert seen == {
        "OPENAI_API_KEY": None,
        "PYTHONPATH": None,
        "HF_HOME": "/models",
        "PATH": os.environ["PATH"],
        "MODE": "fast",
        "TOKEN": "s3cret-of-theirs",
    }


def test_a_secret_is_masked_in_whatever_the_worker_reports() -> None:
    env = (Variable(name="TOKEN", secret=True),)

    async def work() -> Any:
        async with a_worker(env=env, secrets={"TOKEN": "hunter2-hunter2"}) as (worker, _):
            call = worker.call(
                "one", {"name": "ValueError", "text": "bad key hunter2-hunter2"}, action="bare"
            )
            return await reported(call)

    assert "hunter2" not in run(work()).to_json()


def test_a_required_variable_without_a_value_is_named_before_anything_starts() -> None:
    env = (Variable(name="TOKEN", secret=True, required=True), Variable(name="OTHER", required=True))

    async def work() -> Any:
        async with a_worker(env=env) as (worker, told):
            return await failure(worker.start()), told

    fault, told = run(work())

    assert isinstance(fault, CapabilityConfigError)
    assert fault.fields_invalid == ["TOKEN", "OTHER"]
    assert "failwell capabilities secret sample TOKEN" in str(fault)
    assert told == []


def test_the_workers_own_files_are_not_on_the_capabilitys_module_path(tmp_path: Path) -> None:
    (tmp_path / "nosy.py").write_text(
        "import sys\n\ndef look():\n    return [sys.path, sys.argv[1:], sorted(m for m in sys.modules if m == 'wire')]\n"
    )

    async def work() -> Any:
        async with a_worker("nosy:look", path=(str(tmp_path),)) as (worker, _):
            return await worker.call("one")

    path, argv, modules = run(work())

    assert not any(entry.endswith("child") for entry in path)
    assert (argv, modules) == ([], [])


def test_the_protocols_descriptors_are_not_handed_to_what_the_capability_runs(tmp_path: Path) -> None:
    (tmp_path / "curious.py").write_text(
        "import subprocess\n\ndef look():\n"
        "    return subprocess.run(['ls', '-l', '/proc/self/fd'], capture_output=True, text=True, close_fds=False).stdout\n"
    )

    async def work() -> Any:
        async with a_worker("curious:look", path=(str(tmp_path),)) as (worker, _):
            return await worker.call("one")

    assert "socket:" not in run(work())
