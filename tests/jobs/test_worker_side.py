"""What goes on in a worker's process: its words, its lanes, the memory and the work of all below it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from failwell.jobs.worker_process.peaks import Shares
from failwell.jobs.workers.protocol import OutputLine, Supervision
from failwell.jobs.workers.supervisor import SupervisedWorker
from tests.jobs.workers import a_worker, run, until


def _processes(worker: SupervisedWorker) -> int:
    memory = worker.memory()
    return 0 if memory is None else len(memory.pids)


def _held(worker: SupervisedWorker) -> float:
    memory = worker.memory()
    return 0.0 if memory is None else memory.rss_mb


def test_bytes_that_are_printed_are_heard_as_the_text_they_are() -> None:
    async def work() -> Any:
        async with a_worker("odd:Odd") as (worker, told):
            made = await worker.call("one", action="bytes_out")
            return made, [(one.stream, one.text, one.job) for one in told.of(OutputLine)]

    made, heard = run(work())

    assert made == [1, "<stdout>"]
    assert heard == [("stdout", "grüße", "one"), ("stderr", "to stderr", "one")]


@pytest.mark.parametrize("before", range(4))
def test_cleanup_waits_for_the_calls_of_every_lane(before: int, tmp_path: Path) -> None:
    note, begun = tmp_path / "note", tmp_path / "begun"

    async def work() -> None:
        async with a_worker("odd:Lanes", config={"note": str(note)}, concurrency=2) as (worker, _):
            for number in range(before):
                # Whichever lane took the last one, the other takes the next.
                await worker.call(f"{number}", {"seconds": 0, "path": str(tmp_path / "any")})
            call = asyncio.ensure_future(worker.call("long", {"seconds": 0.5, "path": str(begun)}))
            await until(begun.exists)
            await worker.stop()
            await asyncio.wait([call])
            call.exception()

    run(work())

    assert note.read_text() == "0"


def test_memory_that_processes_share_counts_once(tmp_path: Path) -> None:
    go = tmp_path / "go"

    async def work() -> Any:
        async with a_worker("odd:Odd", care=Supervision(pulse=0.05)) as (worker, _):
            asked = {"mb": 100, "forks": 6, "path": str(go)}
            call = asyncio.ensure_future(worker.call("one", asked, action="share"))
            # The last of them may have come when it was too early to ask the kernel again.
            await until(lambda: _processes(worker) == 7 and _held(worker) > 100)
            seen = worker.memory()
            go.touch()
            await call
            return seen

    seen = run(work())

    # One hundred that are shared, and a little for each; by themselves the seven hold seven times as much.
    assert seen.rss_mb < 220
    assert seen.peak_mb < 220


def test_one_process_is_read_without_asking_for_its_share() -> None:
    shares = Shares()

    held = shares.held_mb([1])

    assert held > 0
    assert shares.held_mb([]) == 0


@pytest.mark.slow
def test_a_start_whose_work_is_done_by_another_process_is_no_stall() -> None:
    async def work() -> Any:
        async with a_worker("odd:Loader", config={"seconds": 2.5}, stall_after=0.8) as (worker, _):
            return await worker.call("one")

    assert run(work()) == "ready"
