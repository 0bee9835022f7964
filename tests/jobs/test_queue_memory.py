# pyright: reportPrivateUsage=false
"""What a queue holds in memory is bounded, whatever its jobs return and whoever stops listening."""

import asyncio
import gc
from pathlib import Path

from failwell.jobs.job import JobState
from failwell.jobs.queue.entry import Entry
from failwell.jobs.queue.order import ROOM
from failwell.jobs.queue.state import Rules
from tests.jobs.queues import a_capability, a_runtime
from tests.jobs.workers import run


def test_large_results_are_read_from_the_store_instead_of_being_held(tmp_path: Path) -> None:
    async def work() -> None:
        text = "x" * (ROOM // 4)
        async with a_runtime(tmp_path, a_capability()) as jobs:
            made = [await jobs.submit("worker", {"value": text}) for _ in range(4)]
            ended = [await jobs.wait(one.id) for one in made]

            held = sum(
                len(one.result or "") + len(one.request_text) for one in jobs.queue.state.recent.values()
            )
            assert held <= ROOM
            assert made[-1].id in jobs.queue.state.recent
            assert made[0].id not in jobs.queue.state.recent
            assert jobs.job(made[0].id) == ended[0]
            assert [one.result for one in ended] == [text] * 4

    run(work())


def test_a_job_that_is_over_and_forgotten_is_gone_at_once(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability(), rules=Rules(history=1)) as jobs:
            gc.collect()
            before = sum(type(one) is Entry for one in gc.get_objects())
            gc.disable()
            try:
                for number in range(5):
                    await jobs.call("worker", {"value": number})
                    await jobs.wait((await jobs.submit("worker", {"value": number})).id)
                held = sum(type(one) is Entry for one in gc.get_objects()) - before
            finally:
                gc.enable()

            # The one that is kept, and what the last turn of the loop still has in its hands.
            assert held <= 2

    run(work())


def test_a_listener_who_leaves_his_loop_is_forgotten(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            for _ in range(5):
                async for _event in jobs.events(after=0):
                    break
            await asyncio.sleep(0)

            assert not jobs.queue.hub.has_subscribers
            assert await jobs.call("worker", {"value": 1}) == 1

    run(work())


def test_changing_priorities_again_and_again_leaves_no_tickets_behind(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            jobs.pause()
            first = await jobs.submit("worker", {"value": 1}, priority=10)
            other = await jobs.submit("worker", {"value": 2})
            for number in range(1000):
                jobs.reorder(other.id, number % 5)
            tickets = sum(map(len, jobs.queue.state.line._of.values()))
            jobs.reorder(other.id, 20)

            assert tickets < 200
            assert [job.id for job in jobs.waiting()] == [other.id, first.id]
            jobs.resume()
            assert (await jobs.wait(other.id)).state is JobState.COMPLETED
            assert (await jobs.wait(first.id)).state is JobState.COMPLETED

    run(work())
