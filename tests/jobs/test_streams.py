"""Streams: items one by one, no faster than they are taken, and stopped when nobody takes them."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

import failwell
from failwell.capability import (
    CapabilityCancelledError,
    CapabilityInputError,
    CapabilityTimeoutError,
    WorkerOOMError,
)
from tests.jobs.queues import a_capability, a_runtime
from tests.jobs.workers import a_worker, failure, run, until


async def drained(stream: Any) -> list[Any]:
    return [item async for item in stream]


@pytest.mark.parametrize("action", ["count", "count_later"])
def test_items_arrive_in_order_and_all_of_them(action: str) -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            return await drained(worker.stream("one", {"to": 1000}, action=action))

    assert run(work()) == list(range(1000))


def test_a_capability_without_a_stream_gives_its_one_result() -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            return await drained(worker.stream("one", {"value": [1, 2]}))

    assert run(work()) == [[1, 2]]


def test_a_stream_is_made_no_faster_than_it_is_taken(tmp_path: Path) -> None:
    made = tmp_path / "made"

    async def work() -> Any:
        async with a_worker() as (worker, _):
            stream = worker.stream("one", {"path": str(made)}, action="made_so_far")
            await anext(stream)
            await until(lambda: int(made.read_text()) >= 17)
            ahead: list[int] = []
            for taken in range(2, 200):
                ahead.append(int(made.read_text()) - taken)
                await anext(stream)
            await stream.aclose()  # type: ignore[attr-defined]
            await until(lambda: worker.in_flight == ())
            return ahead

    # Sixteen may be on their way, and one is in the maker's hands.
    assert max(run(work())) <= 17


def test_leaving_a_stream_early_stops_it_and_keeps_the_worker(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            pid = await worker.call("zero", action="pid")
            stream = worker.stream("one", {"path": str(tmp_path / "made")}, action="made_so_far")
            async for item in stream:
                if item == 40:
                    break
            await stream.aclose()  # type: ignore[attr-defined]
            await until(lambda: worker.in_flight == ())
            return pid == await worker.call("two", action="pid")

    assert run(work())


@pytest.mark.parametrize("how", ["cancel", "timeout", "death"])
def test_a_stream_ends_with_what_ended_it(how: str, tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            limit = 0.2 if how == "timeout" else None
            taken: list[int] = []

            async def take() -> None:
                stream = worker.stream(
                    "one", {"path": str(tmp_path / "made")}, action="made_so_far", timeout=limit
                )
                async for item in stream:
                    taken.append(item)
                    if item == 20 and how == "cancel":
                        stopping.append(asyncio.ensure_future(worker.cancel("one")))
                    if item == 20 and how == "death":
                        os.kill(worker.pid or 0, 9)

            stopping: list[Any] = []
            fault = await failure(take())
            await asyncio.gather(*stopping)
            return fault, taken

    fault, taken = run(work())

    expected = {
        "cancel": CapabilityCancelledError,
        "timeout": CapabilityTimeoutError,
        "death": WorkerOOMError,
    }
    assert isinstance(fault, expected[how])
    assert taken == list(range(1, len(taken) + 1))
    assert failwell.describe(fault).kind in ("cancel.job", "worker.timeout", "worker.oom")


def test_a_stream_is_not_handed_in_again_without_somebody_who_takes_its_items(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            taken = await drained(jobs.stream("worker", {"number": 3}, action="count_to"))
            [job] = jobs.history(limit=1)
            before = jobs.counts()
            fault = await failure(jobs.resubmit(job.id))
            return taken, fault, jobs.counts() == before

    taken, fault, is_unchanged = run(work())

    assert taken == [0, 1, 2]
    assert is_unchanged
    assert isinstance(fault, CapabilityInputError)
    assert fault.fields_invalid == ["stream"]
    assert "`Runtime.stream`" in str(fault)
