"""Who is next, what is cancelled, and that every job ends exactly once."""

import asyncio
import random
from pathlib import Path

import pytest

from failwell.errors import Certainty
from failwell.jobs.job import JobState
from tests.jobs.queues import a_capability, a_runtime, began, lines, types
from tests.jobs.workers import run


@pytest.mark.acceptance("cjm-substrate 31")
def test_the_higher_priority_goes_first_and_equals_keep_their_order(tmp_path: Path) -> None:
    async def work() -> tuple[list[str], bool, bool]:
        go, log = tmp_path / "go", tmp_path / "log"
        async with a_runtime(tmp_path, measured=False) as jobs:
            jobs.register(a_capability(), config={"log": str(log)})
            busy = await jobs.submit("worker", {"path": str(go)}, action="until")
            await began(go)
            later = [await jobs.submit("worker", {"value": "low"})]
            later += [await jobs.submit("worker", {"value": f"high{n}"}, priority=5) for n in (1, 2)]
            later.append(await jobs.submit("worker", {"value": "moved"}))
            before = [job.request.arguments["value"] for job in jobs.waiting()]
            assert before == ["high1", "high2", "low", "moved"]
            moved = jobs.reorder(later[-1].id, 9)
            refused = jobs.reorder(busy.id, 9)
            after = [job.request.arguments["value"] for job in jobs.waiting()]
            assert after == ["moved", "high1", "high2", "low"]
            go.touch()
            for job in later:
                await jobs.wait(job.id)
        return lines(log), moved, refused

    log, moved, refused = run(work())

    assert log == ["None", "moved", "high1", "high2", "low"]
    assert (moved, refused) == (True, False)


@pytest.mark.acceptance("cjm-substrate 32")
def test_a_waiting_job_that_is_cancelled_never_runs_and_is_listed_once(tmp_path: Path) -> None:
    async def work() -> None:
        go, log = tmp_path / "go", tmp_path / "log"
        async with a_runtime(tmp_path, measured=False) as jobs:
            jobs.register(a_capability(), config={"log": str(log)})
            await jobs.submit("worker", {"path": str(go)}, action="until")
            await began(go)
            waiting = await jobs.submit("worker", {"value": "never"})

            assert jobs.cancel(waiting.id)
            ended = await jobs.wait(waiting.id)
            go.touch()
            await jobs.drained()

            assert ended.state is JobState.CANCELLED
            assert [job.id for job in jobs.history()].count(waiting.id) == 1
            assert types(jobs, waiting) == ["submitted", "cancelled"]
            assert ended.started_at is None
            assert jobs.counts()["cancelled"] == 1
            assert not jobs.cancel(waiting.id)
            assert not jobs.cancel("nobody")
        assert "never" not in lines(log)

    run(work())


@pytest.mark.acceptance("cjm-substrate 35")
def test_a_job_is_cancelled_before_it_runs_or_says_that_it_ran(tmp_path: Path) -> None:
    async def work() -> None:
        log = tmp_path / "log"
        rng = random.Random(7)
        async with a_runtime(tmp_path, measured=False) as jobs:
            jobs.register(a_capability(concurrency=4), config={"log": str(log)})
            await jobs.call("worker", {"value": "first"})

            async def one(number: int) -> tuple[str, JobState]:
                job = await jobs.submit("worker", {"value": number})
                for _ in range(rng.randrange(6)):
                    await asyncio.sleep(0)
                jobs.cancel(job.id)
                return str(number), (await jobs.wait(job.id)).state

            ended: list[tuple[str, JobState]] = []
            for start in range(0, 1000, 50):
                ended += await asyncio.gather(*(one(n) for n in range(start, start + 50)))

            counts = jobs.counts()
            finals = [event for event in jobs.store.events() if event.is_final]
            cancelled = jobs.store.jobs(states=["cancelled"])
        ran = set(lines(log))
        assert len(finals) == len({event.job for event in finals}) == 1001
        assert counts["completed"] + counts["cancelled"] == 1001
        assert {number for number, state in ended if state is JobState.COMPLETED} <= ran
        did = {str(job.request.arguments["value"]): job.error and job.error.certainty for job in cancelled}
        # A cancel that came before the start keeps the job from running. One that came after it says what the job did.
        assert {number for number, certainty in did.items() if certainty is Certainty.NOT_SENT} == set(
            did
        ) - ran
        assert {certainty for number, certainty in did.items() if number in ran} <= {Certainty.DONE_BUT_LOST}
        assert set(did) - ran

    run(work())


def test_waiting_outweighs_priority_in_the_end(tmp_path: Path) -> None:
    from failwell.jobs.job import JobRequest, new_job
    from failwell.jobs.queue.entry import Entry
    from failwell.jobs.queue.order import Line

    line = Line(age=60.0)
    requests = {"old": ("a", 0, 0.0), "fresh": ("b", 1, 59.0), "late": ("c", 1, 61.0)}
    old, fresh, late = (
        Entry.of(new_job(JobRequest(instance=instance, priority=priority), at, name), number)
        for number, (name, (instance, priority, at)) in enumerate(requests.items())
    )
    for entry in (late, old, fresh):
        line.add(entry)

    assert [entry.id for entry in line.firsts()] == ["fresh", "old", "late"]


def test_nothing_starts_while_the_queue_is_paused(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            jobs.pause()
            job = await jobs.submit("worker", {"value": 1})
            await asyncio.sleep(0)
            held = jobs.job(job.id).state
            jobs.resume()
            ended = await jobs.wait(job.id)

            assert held is JobState.PENDING
            assert ended.result == 1

    run(work())


def test_the_same_key_is_the_same_job_also_after_its_end(tmp_path: Path) -> None:
    async def work() -> None:
        log = tmp_path / "log"
        async with a_runtime(tmp_path, measured=False) as jobs:
            jobs.register(a_capability(), config={"log": str(log)})
            first, second = await asyncio.gather(
                jobs.submit("worker", {"value": "a"}, key="k"), jobs.submit("worker", {"value": "b"}, key="k")
            )
            await jobs.wait(first.id)
            third = await jobs.submit("worker", {"value": "c"}, key="k")

            assert first.id == second.id == third.id
            assert third.result == "a"
            assert jobs.counts()["completed"] == 1
        assert lines(log) == ["a"]

    run(work())


def test_a_job_can_be_handed_in_again_from_history(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            first = await jobs.submit("worker", {"value": {"a": [1]}}, key="k", priority=3)
            await jobs.wait(first.id)
            again = await jobs.resubmit(first.id)
            ended = await jobs.wait(again.id)

            assert again.id != first.id
            assert ended.result == {"a": [1]}
            assert (ended.request.priority, ended.request.key) == (3, None)
            assert ended.request.control["resubmitted"] == first.id

    run(work())
