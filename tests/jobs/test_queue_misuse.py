# pyright: reportArgumentType=false
"""What cannot be meant is refused where it is said, with the argument's name, and leaves nothing on record."""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.errors.fault import Fault
from failwell.errors.faults import CapabilityInputError
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.faults import EnteredTwice, NotEntered, OtherLoop
from failwell.jobs.host import open_store
from failwell.jobs.job import JobRequest
from failwell.jobs.runtime import Runtime
from failwell.jobs.workers.protocol import FileHandle
from tests.jobs.queues import OutsideWorld, a_capability, a_runtime
from tests.jobs.workers import SAMPLES, a_manifest, failure, is_alive, run

WRONG: list[tuple[dict[str, Any], list[str]]] = [
    ({"instance": 5}, ["instance"]),
    ({"instance": ["worker"]}, ["instance"]),
    ({"arguments": [1]}, ["arguments"]),
    ({"arguments": None}, ["arguments"]),
    ({"arguments": {1: 2}}, ["arguments"]),
    ({"action": None}, ["action"]),
    ({"priority": "high"}, ["priority"]),
    ({"timeout": "x"}, ["timeout"]),
    ({"timeout": True}, ["timeout"]),
    ({"timeout": 0}, ["timeout"]),
    ({"timeout": float("nan")}, ["timeout"]),
    ({"timeout": 10**400}, ["timeout"]),
    ({"deadline": 5}, ["deadline"]),
    ({"deadline": datetime(2030, 1, 1)}, ["deadline"]),  # noqa: DTZ001  (that is what is wrong with it)
    ({"key": 5}, ["key"]),
    ({"key": "\ud800"}, ["key"]),
    ({"run": 5}, ["run"]),
    ({"actor": b"me"}, ["actor"]),
    ({"control": {"zzz": 1}}, ["control.zzz"]),
    ({"control": None}, ["control"]),
    ({"control": {"max_attempts": "two"}}, ["control.max_attempts"]),
    ({"key": 5, "timeout": "x"}, ["key", "timeout"]),
]


@pytest.mark.parametrize(("asked", "named"), WRONG, ids=",".join)
def test_a_request_that_cannot_be_meant_names_every_argument_that_is_wrong(
    asked: dict[str, Any], named: list[str], tmp_path: Path
) -> None:
    async def work() -> tuple[Fault, int]:
        async with a_runtime(tmp_path, a_capability(), measured=False) as jobs:
            fault = await failure(jobs.submit(**{"instance": "worker", **asked}))
            return fault, sum(jobs.counts().values())

    fault, kept = run(work())

    assert isinstance(fault, CapabilityInputError)
    assert fault.fields_invalid == named
    assert describe(fault).kind == "validation.input_invalid"
    assert kept == 0


UNSAYABLE: list[tuple[Any, list[str]]] = [
    (float("nan"), ["arguments.value"]),
    ([1, {"x": 1e999}], ["arguments.value[1].x"]),
    ({"a": object(), "b": [b"x"]}, ["arguments.value.a", "arguments.value.b[0]"]),
    ("\ud800", ["arguments.value"]),
    ({"\udfff": 1}, ["arguments.value"]),
    ({("a", "b"): 1}, ["arguments.value"]),
]


@pytest.mark.parametrize(("value", "places"), UNSAYABLE, ids=range(len(UNSAYABLE)))
def test_what_json_cannot_say_is_refused_at_the_door_and_its_place_is_named(
    value: Any, places: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "m.toml"
    file.write_text(f'name = "worker"\nobject = "queueing:Worker"\npath = ["{SAMPLES}"]\n')
    registry = CapabilityRegistry(tmp_path / "registry")
    registry.add(file)

    async def work() -> tuple[Fault, int]:
        async with a_runtime(tmp_path, measured=False) as jobs:
            fault = await failure(jobs.call("worker", {"value": value}))
            return fault, sum(jobs.counts().values())

    inside, kept = run(work())
    store = open_store(tmp_path / "state")
    with pytest.raises(CapabilityInputError) as outside:
        QueueClient(store, registry).submit(JobRequest(instance="worker", arguments={"value": value}))
    store.close()

    for fault in (inside, outside.value):
        assert describe(fault).kind == "validation.input_invalid"
        assert fault.fields_invalid == places
    assert kept == 0


def test_emoji_and_other_whole_characters_arrive(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            return await jobs.call("worker", {"value": "😀 ü \0"})

    assert run(work()) == "😀 ü \0"


def test_registering_what_is_no_capability_names_the_argument(tmp_path: Path) -> None:
    runtime = Runtime(tmp_path / "state", registry=tmp_path / "registry")

    for given, name in (
        ({"what": 5}, "what"),
        ({"what": a_capability(), "instance": 5}, "instance"),
        ({"what": a_capability(), "instance": ""}, "instance"),
        ({"what": a_capability(), "config": [1]}, "config"),
    ):
        with pytest.raises(CapabilityInputError) as refused:
            runtime.register(**given)
        assert refused.value.fields_invalid == [name]
    assert runtime.instances == []


def test_a_runtime_says_that_it_is_used_within_async_with(tmp_path: Path) -> None:
    async def work() -> None:
        runtime = Runtime(tmp_path / "state", registry=tmp_path / "registry", probe=OutsideWorld())
        asking = (runtime.counts, runtime.stats, runtime.history, runtime.waiting, runtime.pause)
        for ask in asking:
            with pytest.raises(NotEntered):
                ask()
        async with runtime:
            with pytest.raises(EnteredTwice):
                await runtime.__aenter__()
            assert sum(runtime.counts().values()) == 0
        for ask in asking:
            with pytest.raises(NotEntered):
                ask()

    run(work())


def test_a_job_from_another_loop_is_refused_and_not_recorded(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability(), measured=False) as jobs:
            with pytest.raises(OtherLoop):
                await asyncio.to_thread(asyncio.run, jobs.submit("worker"))
            await asyncio.sleep(0)

            assert sum(jobs.counts().values()) == 0

    run(work())


def test_what_is_registered_before_the_start_works_and_works_again_after_it(tmp_path: Path) -> None:
    async def work() -> None:
        runtime = Runtime(tmp_path / "state", registry=tmp_path / "registry", probe=OutsideWorld())
        runtime.register(a_manifest())
        seen = list[int]()
        for _ in range(2):
            async with runtime as jobs:
                made = await jobs.call("sample", action="binary")
                assert isinstance(made["audio"], FileHandle)
                assert made["audio"].size == 3000
                pid = jobs.worker("sample").pid
                assert pid is not None
                seen.append(pid)
                assert sum(event.type == "worker:started" for event in jobs.store.events()) == len(seen)
            assert not is_alive(pid)

        assert len(set(seen)) == 2

    run(work())
