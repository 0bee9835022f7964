"""Instances: refused at the door when off or unknown, apart from each other, and stopped without a trace."""

import asyncio
import re
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from failwell.errors.fault import Fault
from failwell.errors.faults import (
    CapabilityConfigError,
    CapabilityDisabledError,
    CapabilityInputError,
    CapabilityNotLoadedError,
)
from failwell.jobs import UnknownConfigWarning
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.faults import QueueClosed, QueueStopped, UnknownJob
from failwell.jobs.host import open_store
from failwell.jobs.job import JobRequest, JobState
from failwell.jobs.workers.protocol import WorkerState
from tests.jobs.queues import a_capability, a_runtime, began, lines, types
from tests.jobs.samples.queueing import echo
from tests.jobs.workers import SAMPLES, is_alive, run, until


@pytest.mark.acceptance("cjm-substrate 39")
def test_a_disabled_or_unknown_instance_is_refused_when_work_is_handed_in(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            jobs.add_instance("worker", "named")
            for instance in ("worker", "named"):
                await jobs.disable(instance)
                with pytest.raises(CapabilityDisabledError):
                    await jobs.submit(instance)
                with pytest.raises(CapabilityDisabledError):
                    await anext(jobs.stream(instance))
            with pytest.raises(CapabilityNotLoadedError):
                await jobs.submit("nobody")
            with pytest.raises(CapabilityNotLoadedError):
                await anext(jobs.stream("nobody"))
            with pytest.raises(UnknownJob):
                await jobs.wait("nothing")

            assert jobs.counts()["completed"] == 1
            assert sum(jobs.counts().values()) == 1

    run(work())


@pytest.mark.acceptance("cjm-substrate 40")
def test_disabling_lets_the_job_finish_then_tells_the_capability_once_and_is_kept(tmp_path: Path) -> None:
    async def work() -> None:
        go, log = tmp_path / "go", tmp_path / "log"
        async with a_runtime(tmp_path, measured=False) as jobs:
            jobs.register(a_capability(), config={"log": str(log)})
            job = await jobs.submit("worker", {"path": str(go), "value": "ran"}, action="until")
            await began(go)

            assert await jobs.disable("worker")
            assert not await jobs.disable("worker")
            with pytest.raises(CapabilityDisabledError):
                await jobs.submit("worker")
            assert "disabled" not in lines(log)
            go.touch()

            assert (await jobs.wait(job.id)).state is JobState.COMPLETED
            await until(lambda: "disabled" in lines(log))
        async with a_runtime(tmp_path, measured=False) as jobs:
            jobs.register(a_capability(), config={"log": str(log)})
            with pytest.raises(CapabilityDisabledError):
                await jobs.submit("worker")
            assert await jobs.enable("worker")
            await jobs.call("worker", {"value": "again"})
        assert lines(log) == ["ran", "disabled", "again"]

    run(work())


@pytest.mark.acceptance("cjm-substrate 41")
def test_stopping_leaves_nobody_waiting_and_every_job_on_record(tmp_path: Path) -> None:
    drain, slack = 0.5, 1.0

    async def work() -> None:
        deaf, go, slow = tmp_path / "deaf", tmp_path / "go", tmp_path / "slow"
        told: dict[str, float] = {}
        waiters: dict[str, asyncio.Task[Any]] = {}
        async with a_runtime(
            tmp_path, a_capability("a", cancel_grace=0.1, stop_grace=0.2), a_capability("b"), drain=drain
        ) as jobs:
            jobs.register(a_capability("slow", "SlowStart"), config={"slow_if": str(slow)})
            await jobs.call("slow", action="pid")
            await jobs.worker("slow").stop()
            slow.touch()
            made = {
                "running": await jobs.submit("a", {"path": str(deaf)}, action="deaf"),
                "ending": await jobs.submit("b", {"path": str(go)}, action="until"),
            }
            await began(deaf)
            await began(go)
            made["pending"] = await jobs.submit("a", {"value": 1})
            made["starting"] = await jobs.submit("slow")
            waiters = {name: asyncio.create_task(jobs.wait(job.id)) for name, job in made.items()}
            again = {"times": 9, "path": str(tmp_path / "count"), "after": 50.0}
            made["waiting"] = await jobs.submit("b", again, action="fail_first")
            waiters["waiting"] = asyncio.create_task(jobs.wait(made["waiting"].id))
            await asyncio.sleep(0)
            go.touch()
            await until(lambda: jobs.job(made["waiting"].id).state is JobState.WAITING)
            await until(lambda: jobs.worker("slow").state is WorkerState.STARTING)
            begun = monotonic()
            for name, waiter in waiters.items():
                waiter.add_done_callback(lambda _, name=name: told.setdefault(name, monotonic() - begun))
            inside = jobs
        ends = dict(
            zip(waiters, await asyncio.gather(*waiters.values(), return_exceptions=True), strict=True)
        )

        assert max(told.values()) <= drain + slack
        ended = ends.pop("ending")
        assert not isinstance(ended, BaseException)
        assert ended.state is JobState.COMPLETED
        for name, one in ends.items():
            assert isinstance(one, QueueStopped)
            assert f"job `{made[name].id}` was" in str(one)
            assert "continues when a queue is started on the same store" in str(one)
        with pytest.raises(RuntimeError):
            await inside.submit("a")
        async with a_runtime(tmp_path, measured=False) as jobs:
            assert types(jobs, made["running"])[-1] == "requeued"
            standing = {name: jobs.job(job.id).state.value for name, job in made.items()}
            assert standing == {
                "running": "pending",
                "ending": "completed",
                "pending": "pending",
                "starting": "pending",
                "waiting": "waiting",
            }
            jobs.cancel(made["running"].id)
            jobs.register(a_capability("a"))
            assert (await jobs.wait(made["pending"].id)).result == 1

    run(work())


def test_a_queue_that_stops_takes_nothing_more(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, a_capability()) as jobs:
            await jobs.submit("worker", {"path": str(go)}, action="until")
            await began(go)
            stopping = asyncio.create_task(jobs.queue.stop(20.0))
            await asyncio.sleep(0)
            with pytest.raises(QueueClosed):
                await jobs.submit("worker")
            go.touch()
            await stopping

    run(work())


@pytest.mark.acceptance("cjm-substrate 56")
def test_instances_of_one_capability_are_apart(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, measured=False) as jobs:
            jobs.register(a_capability(), config={"model": "small"})
            jobs.add_instance("worker", "large", {"model": "large"})
            seen = [await jobs.call(name, action="seen_config") for name in ("worker", "large")]
            pids = {await jobs.call(name, action="pid") for name in ("worker", "large")}
            kept = jobs.worker("worker").pid
            await jobs.unload("large")

            assert seen == [{"model": "small"}, {"model": "large"}]
            assert len(pids) == 2
            assert await jobs.call("worker", action="pid") == kept
            assert [pid for pid in pids if is_alive(pid)] == [kept]
            with pytest.raises(CapabilityNotLoadedError):
                await jobs.submit("large")
            profiles = jobs.store.profiles()
            assert {(one.instance, one.samples) for one in profiles} == {("worker", 3), ("large", 2)}
            assert len({one.config for one in profiles}) == 2

    run(work())


@pytest.mark.acceptance("cjm-substrate 57")
def test_ids_are_checked_and_made_up_ones_are_not_kept(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            for bad in ("a b", "x" * 65):
                with pytest.raises(CapabilityInputError):
                    jobs.add_instance("worker", bad)
            made = jobs.new_instance("worker", {"a": 1})
            await jobs.configure(made, {"a": 2})
            await jobs.disable(made)
            jobs.add_instance("worker", "chosen")
            await jobs.configure("chosen", {"a": 3})

            assert re.fullmatch("worker-[0-9a-f]{6}", made)
            assert jobs.registry.config(made) == {}
            assert jobs.registry.is_enabled(made)
            assert jobs.registry.config("chosen") == {"a": 3}
            with pytest.raises(CapabilityInputError):
                jobs.add_instance("worker", "chosen")
            await jobs.enable(made)
            await jobs.worker(made).restart()
            assert await jobs.call(made, action="seen_config") == {"a": 2}
        for file in (tmp_path / "registry").rglob("*"):
            assert made not in f"{file}{file.read_text() if file.is_file() else ''}"
        async with a_runtime(tmp_path, a_capability()) as jobs:
            with pytest.raises(CapabilityNotLoadedError):
                await jobs.submit(made)

    run(work())


def test_a_function_is_a_capability_and_a_stream_is_a_job(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            assert jobs.register(echo, concurrency=2) == "echo"
            assert await jobs.call("echo", {"value": [1, None]}) == [1, None]
            items = [one async for one in jobs.stream("worker", {"number": 40}, action="count_to")]

            assert items == list(range(40))
            assert jobs.history(limit=1)[0].state is JobState.COMPLETED

    run(work())


def test_a_failed_job_raises_what_happened_to_it(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            with pytest.raises(Fault) as caught:
                await jobs.call(
                    "worker",
                    {"times": 1, "path": str(tmp_path / "times")},
                    action="fail_first",
                    control={"max_attempts": 1},
                )

            import failwell

            assert failwell.describe(caught.value).scene.instance == "worker"

    run(work())


def test_a_lambda_is_refused_because_no_worker_could_import_it(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path) as jobs:
            with pytest.raises(CapabilityInputError, match="top of a module"):
                jobs.register(lambda: 1)

    run(work())


def test_a_bad_configuration_is_refused_before_a_process_is_started(tmp_path: Path) -> None:
    async def work() -> None:
        schema = {"properties": {"model": {"enum": ["small"]}}, "additionalProperties": False}
        async with a_runtime(tmp_path) as jobs:
            with pytest.raises(CapabilityConfigError) as caught:
                jobs.register(a_capability(config=schema), config={"model": "huge", "x": 1})

            assert caught.value.fields_invalid == ["model", "x"]
            assert jobs.instances == []

    run(work())


@pytest.mark.acceptance("cjm-substrate 53")
def test_a_lenient_runtime_warns_of_what_it_leaves_out_and_keeps_the_rest(tmp_path: Path) -> None:
    async def work() -> None:
        schema = {"properties": {"model": {"enum": ["small", "large"]}}}
        manifest = a_capability(config=schema, config_strict=False)
        async with a_runtime(tmp_path) as jobs:
            with pytest.warns(UnknownConfigWarning, match="`colour`") as registering:
                jobs.register(manifest, config={"model": "small", "colour": "red"})
            first = await jobs.call("worker", action="seen_config")
            with pytest.warns(UnknownConfigWarning, match="`hue`, `tone`") as configuring:
                await jobs.configure("worker", {"model": "large", "hue": 1, "tone": 2})
            second = await jobs.call("worker", action="seen_config")
            with pytest.raises(CapabilityConfigError) as refused:
                await jobs.configure("worker", {"model": "huge", "hue": 1})

            assert (len(registering), len(configuring)) == (1, 1)
            assert registering[0].filename == __file__
            assert (first, second) == ({"model": "small"}, {"model": "large"})
            assert jobs.registry.config("worker") == {"model": "large"}
            assert refused.value.fields_invalid == ["model"]

    run(work())


@pytest.mark.acceptance("cjm-substrate 53")
@pytest.mark.parametrize("declared", [True, False], ids=["in the manifest", "by the capability"])
def test_a_kept_configuration_that_is_not_allowed_any_more_fails_the_job_and_not_the_queue(
    tmp_path: Path, declared: bool
) -> None:
    async def work() -> None:
        schema = '[config.properties.beam]\ntype = "integer"\n' if declared else ""
        file = tmp_path / "sample.toml"
        file.write_text(f'name = "sample"\nobject = "sample:Configured"\npath = ["{SAMPLES}"]\n{schema}')
        registry = CapabilityRegistry(tmp_path / "registry")
        registry.add(file)
        store = open_store(tmp_path / "state")
        job = QueueClient(store, registry).submit(JobRequest(instance="sample"))
        store.close()
        registry.set_config("sample", {"beam": 3, "colour": "red", "size": 1})
        async with a_runtime(tmp_path, a_capability()) as jobs:
            ended = await jobs.wait(job.id)

            assert ended.state is JobState.FAILED
            assert ended.error is not None
            assert ended.error.fields_invalid == ("colour", "size")
            assert jobs.worker("sample").pid is None
            assert await jobs.call("worker", {"value": 1}) == 1

    run(work())


def test_a_stream_goes_no_faster_than_its_items_are_taken(tmp_path: Path) -> None:
    async def work() -> None:
        made = tmp_path / "made"
        async with a_runtime(tmp_path, a_capability()) as jobs:
            stream = jobs.stream("worker", {"path": str(made)}, action="make_for_ever")
            taken = [await anext(stream) for _ in range(3)]
            await until(lambda: len(lines(made)) >= 30)
            await asyncio.sleep(0.05)
            ahead = len(lines(made))
            await stream.aclose()
            await jobs.drained()

            assert taken == [0, 1, 2]
            assert ahead < 3 + 2 * 16 + 16
            assert jobs.history(limit=1)[0].state is JobState.CANCELLED

    run(work())


def test_a_job_whose_instance_is_unloaded_waits_until_it_is_known_again(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, a_capability()) as jobs:
            job = await jobs.submit("worker", {"path": str(go), "value": 5}, action="until")
            await began(go)
            await jobs.unload("worker")
            await until(lambda: jobs.job(job.id).block_reason is not None)
            held = jobs.job(job.id)
            go.touch()
            jobs.register(a_capability())
            ended = await jobs.wait(job.id)

            assert held.block_reason == "`worker` is not loaded here"
            assert (ended.state, ended.result, ended.attempt) == (JobState.COMPLETED, 5, 2)

    run(work())


@pytest.mark.parametrize(
    ("wishes", "field"),
    [
        ({"priority": 10**9}, "priority"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"key": ""}, "key"),
        ({"key": "\ud800"}, "key"),
        ({"deadline": datetime(2030, 1, 1)}, "deadline"),  # noqa: DTZ001  (that it has no zone is the point)
        ({"control": {"max_attempts": 0}}, "control.max_attempts"),
        ({"control": {"idempotent": "yes"}}, "control.idempotent"),
    ],
)
def test_a_request_that_cannot_be_kept_is_refused_and_its_field_named(
    tmp_path: Path, wishes: dict[str, Any], field: str
) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability(), measured=False) as jobs:
            with pytest.raises(CapabilityInputError) as refused:
                await jobs.submit("worker", **wishes)

            assert refused.value.fields_invalid == [field]
            assert sum(jobs.counts().values()) == 0

    run(work())
