"""A program that submits jobs, beside the host that runs them: sync and async, typed, from threads and forks."""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import failwell
from failwell.capability import CapabilityCancelledError, CapabilityInputError
from failwell.jobs import AsyncClient, Client, Job, JobState, Runtime
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.client.waits import ClientClosed
from failwell.jobs.faults import UnknownJob
from failwell.jobs.store.sqlite import JobStore
from failwell.store.event import Event
from failwell.store.faults import StoreUnavailable
from tests.jobs.queues import a_runtime, began
from tests.jobs.samples.tasks import TooDark, count, hold, resize
from tests.jobs.workers import SAMPLES, run


def _add_capabilities(folder: Path) -> None:
    registry = CapabilityRegistry(folder / "registry")
    for name, function in (("resize", "resize"), ("count-words", "count"), ("hold", "hold")):
        values = {"name": name, "object": f"tasks:{function}", "concurrency": 4}
        registry.add_values(values, SAMPLES, source="test")


@asynccontextmanager
async def _a_host(folder: Path) -> AsyncGenerator[Runtime]:
    _add_capabilities(folder)
    async with a_runtime(folder, lanes=8) as jobs:
        yield jobs


def _a_client(folder: Path) -> Client:
    return Client(folder / "state", registry=folder / "registry")


def _an_async_client(folder: Path) -> AsyncClient:
    return AsyncClient(folder / "state", registry=folder / "registry")


def test_a_thread_submits_a_function_and_gets_its_result(tmp_path: Path) -> None:
    def use() -> None:
        with _a_client(tmp_path) as client:
            assert client.submit(resize, "cat.png", width=100).result(60) == {"width": 100, "height": 50}
            assert client.submit(count, text="one two").result(60) == 2
            job = client.submit("resize", image="cat.png")

            assert job.result(60) == {"width": 640, "height": 320}
            assert job.status() is JobState.COMPLETED
            assert [event.type for event in job.events()] == ["submitted", "started", "completed"]
            assert client.job(job.id, resize).result() == {"width": 640, "height": 320}
            assert job.cancel() is False

    async def work() -> None:
        async with _a_host(tmp_path):
            await asyncio.to_thread(use)

    run(work())


@pytest.mark.parametrize("location", ["argument", "environment"])
def test_a_client_keeps_its_store_when_its_process_changes_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    _add_capabilities(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAILWELL_STORE", "state")

    with Client("state" if location == "argument" else None, registry="registry") as client:
        monkeypatch.chdir(tmp_path / "elsewhere")
        monkeypatch.delenv("FAILWELL_STORE")
        job = client.submit("resize", image="cat.png")
        if (child := os.fork()) == 0:
            os.chdir("/")
            os._exit(0 if client.submit("resize", image="dog.png").id != job.id else 1)
        assert os.waitpid(child, 0)[1] == 0

    with _a_client(tmp_path) as client:
        assert client.job(job.id).status() is JobState.PENDING
    assert len(JobStore(tmp_path / "state").jobs()) == 2
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_client_in_a_deleted_folder_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    with pytest.raises(StoreUnavailable, match="state"):
        Client("state")


def test_an_event_loop_submits_functions_and_awaits_their_results(tmp_path: Path) -> None:
    async def work() -> None:
        async with _a_host(tmp_path), _an_async_client(tmp_path) as client:
            jobs = [await client.submit(resize, image="cat.png", width=width) for width in range(50)]
            results = await asyncio.gather(*(job.result(60) for job in jobs))

            assert [result["width"] for result in results] == list(range(50))
            assert await (await client.submit(count, text="one")).result(60) == 1
            assert [event.type async for event in jobs[0].events()] == ["submitted", "started", "completed"]
            assert await client.job(jobs[0].id).status() is JobState.COMPLETED

    run(work())


def test_a_failed_job_raises_the_class_that_the_capability_raised(tmp_path: Path) -> None:
    async def work() -> None:
        async with _a_host(tmp_path) as jobs, _an_async_client(tmp_path) as client:
            dark = await client.submit(resize, image="dark")
            with pytest.raises(TooDark) as caught:
                await dark.result(60)
            assert caught.value.fields_invalid == ["image"]
            assert failwell.describe(caught.value) == (await dark.record()).error

            broken = await client.submit(resize, image="broken")
            with pytest.raises(CapabilityInputError) as refused:
                await broken.result(60)
            assert failwell.describe(refused.value).error_type == "ValueError"

            with pytest.raises(TooDark):
                await jobs.call("resize", {"image": "dark"})

    run(work())


def test_a_wait_that_is_cut_short_leaves_the_job_alone(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with _a_host(tmp_path), _an_async_client(tmp_path) as client:
            job = await client.submit(hold, go=str(go))
            await began(go)
            with pytest.raises(TimeoutError, match=rf"job {job.id} did not end within 0\.01 s; it continues"):
                await job.result(0.01)
            waiting = asyncio.create_task(job.result())
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            with _a_client(tmp_path) as other, pytest.raises(TimeoutError):
                await asyncio.to_thread(other.job(job.id).result, 0.01)

            assert await job.status() is JobState.RUNNING
            go.touch()
            assert await job.result(60) == str(go)

    run(work())


def test_a_job_is_cancelled_on_request_and_its_result_says_so(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with _a_host(tmp_path), _an_async_client(tmp_path) as client:
            job = await client.submit(hold, go=str(go))
            await began(go)
            events = asyncio.create_task(_types(job.events()))

            assert await job.cancel()
            with pytest.raises(CapabilityCancelledError) as caught:
                await job.result(60)
            assert caught.value.certainty == "partial"
            assert (await events)[-1] == "cancelled"

    run(work())


def test_following_a_job_reads_the_store_only_after_commits(tmp_path: Path) -> None:
    class CountedStore(JobStore):
        reads = 0

        def events(self, after: int = 0, *, job: str | None = None, limit: int | None = None) -> list[Event]:
            self.reads += 1
            return super().events(after, job=job, limit=limit)

    async def work() -> None:
        go = tmp_path / "go"
        store = CountedStore(tmp_path / "state")
        async with _a_host(tmp_path), AsyncClient(store, registry=tmp_path / "registry") as client:
            job = await client.submit(hold, go=str(go))
            events = asyncio.create_task(_types(job.events()))
            await began(go)
            await asyncio.sleep(0.3)
            # A follower that does not wait reads hundreds of times.
            assert store.reads < 30
            go.touch()
            assert await events == ["submitted", "started", "completed"]
        store.close()

    run(work())


async def _types(events: AsyncGenerator[Event]) -> list[str]:
    return [event.type async for event in events]


def test_options_apply_to_the_jobs_of_their_client_only(tmp_path: Path) -> None:
    _add_capabilities(tmp_path)
    with _a_client(tmp_path) as client:
        urgent = client.with_options(priority=9, timeout=30, key="k", max_attempts=1, actor="web")
        first = urgent.submit(resize, image="a")
        plain = client.submit(resize, image="a")

        request = first.record().request
        assert (request.priority, request.timeout, request.key, request.actor) == (9, 30, "k", "web")
        assert request.control == {"max_attempts": 1}
        assert urgent.submit(resize, image="b").id == first.id
        assert plain.record().request.priority == 0
        CapabilityRegistry(tmp_path / "registry").set_config("second", {}, capability="resize")
        second = client.with_options(instance="second").submit(resize, image="a")
        assert second.record().request.instance == "second"


def test_a_job_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with _a_client(tmp_path) as client:
        for ask in (client.job("nope").result, client.job("nope").status, client.job("nope").cancel):
            with pytest.raises(UnknownJob, match="nope"):
                ask()


def test_closing_ends_the_waits_and_a_closed_client_says_so(tmp_path: Path) -> None:
    _add_capabilities(tmp_path)
    client = _a_client(tmp_path)
    job = client.submit(resize, image="a")
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            job.result()
        except ClientClosed as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    while not _is_waiting():
        pass
    client.close()
    thread.join()

    assert [str(error) for error in errors] == ["this client is closed; create another one"]
    with pytest.raises(ClientClosed):
        client.submit(resize, image="a")


def _is_waiting() -> bool:
    return any(thread.name == "failwell-jobs-client" for thread in threading.enumerate())


def test_a_client_that_was_used_before_a_fork_works_in_both_processes(tmp_path: Path) -> None:
    _add_capabilities(tmp_path)
    with _a_client(tmp_path) as client:
        before = client.submit(resize, image="a")
        with pytest.raises(TimeoutError):
            before.result(0.001)

        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                with pytest.raises(TimeoutError):
                    client.submit(resize, image="child").result(0.001)
                os.write(writer, before.status().value.encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(writer)
        assert os.read(reader, 100) == b"pending"
        os.close(reader)
        with pytest.raises(TimeoutError):
            client.submit(resize, image="parent").result(0.001)

        images = [entry.request.arguments["image"] for entry in _jobs(client)]
        assert sorted(images) == ["a", "child", "parent"]


def _jobs(client: Client) -> list[Job]:
    return client._connection.queue.store.jobs()  # pyright: ignore[reportPrivateUsage]
