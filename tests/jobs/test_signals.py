# pyright: reportPrivateUsage=false
"""Signals, from whoever sends them: a worker's own, a service manager's, and the host's orders to end."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from failwell.errors.report import TracebackPolicy
from failwell.jobs.workers.protocol import OutputLine
from failwell.jobs.workers.startup import BOOT
from failwell.processes.worker import WorkerProcess
from tests.jobs.workers import a_worker, exists, parent_of, reported, run, until


def test_orders_that_arrive_together_are_all_obeyed() -> None:
    async def work() -> Any:
        greeted = asyncio.get_running_loop().create_future()
        process = WorkerProcess(greeted.set_result, lambda _stream, _line: None)
        await process.start([sys.executable, BOOT], os.environ, "/")
        await greeted
        process.signal(signal.SIGWINCH)
        process.kill("test")
        async with asyncio.timeout(8):
            return await process.gone()

    assert run(work()).code == -signal.SIGKILL


def test_the_exit_code_is_known_if_the_end_of_the_guardian_is_seen_before_its_report() -> None:
    async def work() -> Any:
        greeted = asyncio.get_running_loop().create_future()
        process = WorkerProcess(greeted.set_result, lambda _stream, _line: None)
        await process.start([sys.executable, BOOT], os.environ, "/")
        await greeted
        await until(lambda: process.pid is not None)
        transport = process._leash._transport
        assert transport is not None
        transport.pause_reading()
        process.kill("test")
        async with asyncio.timeout(8):
            return await process.gone()

    assert run(work()).code == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_the_guardian_leaves_its_worker_alone(number: signal.Signals, tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            pid = await worker.call("first", action="pid")
            started = tmp_path / "started"
            arguments = {"seconds": 0.3, "started": str(started)}
            call = asyncio.ensure_future(worker.call("job", arguments, action="deaf"))
            await until(exists(started))
            os.kill(parent_of(pid), number)
            return await call, pid == await worker.call("next", action="pid")

    assert run(work()) == ("done", True)


def test_a_worker_itself_heeds_the_signals_that_its_guardian_does_not() -> None:
    async def work() -> Any:
        async with a_worker("rough:Rough") as (worker, _):
            return await worker.call("one", action="what_signals_do")

    assert run(work()) == ["default_int_handler", "0", "0"]


def test_a_signal_handler_may_print_while_something_is_being_printed() -> None:
    async def work() -> Any:
        async with a_worker("rough:Rough") as (worker, told):
            lines, rung = await worker.call("one", {"seconds": 0.7}, action="print_from_alarms", timeout=30)
        texts = [one.text for one in told.of(OutputLine) if one.job == "one"]
        return lines, rung, texts

    lines, rung, texts = run(work())

    assert rung > 10
    assert sum(text == "x" * 500 for text in texts) >= lines - rung
    assert len([text for text in texts if text.startswith("rung ")]) >= rung // 2


def test_a_signal_handler_may_raise_out_of_an_item_that_is_half_written() -> None:
    async def work() -> Any:
        async with a_worker("rough:Rough", traceback=TracebackPolicy.FULL) as (worker, _):
            before = (await worker.call("first", action="pids"))[0]
            reports: list[Any] = []
            for number in range(20):

                async def streamed(job: str = f"job-{number}") -> None:
                    async for _ in worker.stream(job, {"megabytes": 8}, action="broken_off"):
                        pass

                reports.append(await reported(streamed()))
            return reports, before == (await worker.call("last", action="pids"))[0]

    reports, same = run(work())

    assert {(one.error_type, one.message) for one in reports} == {("RuntimeError", "rung")}
    assert same
