"""Handing in the same thing twice: one job, whoever asks, whoever goes; and another thing is refused."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from failwell.errors.faults import CapabilityInputError
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.faults import KeyTaken, NotOver
from failwell.jobs.job import Job, JobRequest, JobState, result_of
from failwell.jobs.store.sqlite import JobStore
from tests.jobs.queues import a_capability, a_runtime, began, lines
from tests.jobs.workers import SAMPLES, run, until


@contextmanager
def _another_process(folder: Path) -> Generator[QueueClient]:
    """What another process has: the same store and the same registry, with `worker` on it."""
    file = folder / "worker.toml"
    file.write_text(f'name = "worker"\nobject = "queueing:Worker"\npath = ["{SAMPLES}"]\n')
    registry = CapabilityRegistry(folder / "registry")
    registry.add(file, replace=True)
    store = JobStore(folder / "state")
    try:
        yield QueueClient(store, registry)
    finally:
        store.close()


def test_calling_for_what_another_process_has_just_handed_in_waits_for_its_end(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, a_capability()) as jobs:
            with _another_process(tmp_path) as client:
                asked = {"path": str(go), "value": "theirs"}
                theirs = client.submit(
                    JobRequest(instance="worker", arguments=asked, action="until", key="k")
                )
                calling = asyncio.create_task(jobs.call("worker", {**asked}, action="until", key="k"))
                await began(go)
                with pytest.raises(NotOver):
                    result_of(jobs.job(theirs.id))
                go.touch()

                assert await calling == "theirs"
                assert client.find(theirs.id).result == "theirs"

    run(work())


class _Overtaken(JobStore):
    """A store in which something happens right after a key was looked up."""

    then: Callable[[], object] | None = None

    def find_by_key(self, key: str) -> Job | None:
        found = super().find_by_key(key)
        if self.then is not None:
            then, self.then = self.then, None
            then()
        return found


def test_a_key_that_another_process_takes_between_the_look_and_the_commit_runs_one_job(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        done, store = tmp_path / "done", _Overtaken(tmp_path / "state")
        request = JobRequest(
            instance="worker", arguments={"value": 1, "path": str(done)}, action="effects", key="k"
        )
        async with a_runtime(tmp_path, a_capability(), store=store) as jobs:
            with _another_process(tmp_path) as client:
                store.then = lambda: client.submit(request)
                mine = await jobs.submit_request(request)
                await jobs.wait(mine.id)
                await jobs.queue.drained()

                assert lines(done) == ["began", "1", "finished", "1"]
                assert [job.id for job in jobs.store.jobs() if job.request.action == "effects"] == [mine.id]
        store.close()

    run(work())


def test_who_goes_while_a_job_is_taken_in_does_not_take_it_from_the_next_who_asks(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            first = asyncio.create_task(jobs.submit("worker", {"value": 1}, key="k"))
            await asyncio.sleep(0)
            first.cancel()
            second = await jobs.submit("worker", {"value": 2}, key="k")

            assert (await jobs.wait(second.id)).result == 1
            assert jobs.counts()["completed"] == 2

    run(work())


def test_a_key_that_belongs_to_something_else_is_refused_and_both_are_named(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability(), a_capability("other")) as jobs:
            await jobs.call("worker", {"value": "theirs"}, key="over")
            jobs.pause()
            await jobs.submit("worker", {"value": 1}, key="waiting")
            with _another_process(tmp_path) as client:
                for key in ("over", "waiting"):
                    with pytest.raises(KeyTaken, match=r"`execute` of `worker`.*`pid` of `other`"):
                        await jobs.call("other", action="pid", key=key)
                    with pytest.raises(KeyTaken, match=r"`execute` of `worker`.*`pid` of `worker`"):
                        await jobs.submit("worker", action="pid", key=key)
                    with pytest.raises(KeyTaken):
                        client.submit(JobRequest(instance="worker", action="pid", key=key))
            jobs.resume()

            assert await jobs.call("worker", {"value": "another"}, key="over") == "theirs"
            assert sum(jobs.counts().values()) == 4

    run(work())


def test_a_stream_takes_no_key_and_cannot_be_handed_in_without_a_taker(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            with pytest.raises(CapabilityInputError) as refused:
                await anext(jobs.stream("worker", {"number": 3}, action="count_to", key="k"))
            assert refused.value.fields_invalid == ["key"]
            taken = [one async for one in jobs.stream("worker", {"number": 3}, action="count_to")]
            with pytest.raises(CapabilityInputError) as again:
                await jobs.resubmit(jobs.history(limit=1)[0].id)

            assert taken == [0, 1, 2]
            assert again.value.fields_invalid == ["stream"]

    run(work())


def test_a_call_that_is_given_up_takes_its_job_along(tmp_path: Path) -> None:
    async def work() -> None:
        go, log = tmp_path / "go", tmp_path / "log"
        async with a_runtime(tmp_path, measured=False) as jobs:
            jobs.register(a_capability(concurrency=2), config={"log": str(log)})
            await jobs.call("worker", action="pid")
            jobs.pause()
            at_once = asyncio.create_task(jobs.call("worker", {"value": "never"}))
            await asyncio.sleep(0)
            at_once.cancel()
            await asyncio.wait([at_once])
            jobs.resume()
            calling = asyncio.create_task(jobs.call("worker", {"path": str(go)}, action="until"))
            await began(go)
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            await jobs.drained()

            assert jobs.counts()["cancelled"] == 2
            assert "never" not in lines(log)

    run(work())


@pytest.mark.parametrize("how", ["call", "submit"])
def test_a_call_that_is_given_up_leaves_its_job_to_others_who_asked_for_it(tmp_path: Path, how: str) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        asked = {"path": str(go), "value": "done"}
        async with a_runtime(tmp_path, a_capability()) as jobs:
            calling = asyncio.create_task(jobs.call("worker", asked, action="until", key="k"))
            await began(go)
            other = asyncio.create_task(getattr(jobs, how)("worker", asked, action="until", key="k"))
            await until(lambda: next(iter(jobs.queue.state.live.values())).wanted == 2)
            calling.cancel()
            await asyncio.wait([calling])
            go.touch()
            await other
            await jobs.drained()

            assert jobs.history(limit=1)[0].state is JobState.COMPLETED

    run(work())


def test_waiting_for_a_job_and_giving_up_leaves_nothing_behind(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            jobs.pause()
            job = await jobs.submit("worker", {"value": 1})
            for _ in range(5):
                with pytest.raises(TimeoutError):
                    await jobs.wait(job.id, timeout=0.001)

            assert not jobs.queue.state.live[job.id].waiters
            jobs.resume()
            assert (await jobs.wait(job.id)).state is JobState.COMPLETED

    run(work())
