"""Jobs that cannot be started at all: each ends or waits with its reason, and nobody else is held up by it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from failwell.errors.faults import CapabilityConfigError
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.job import Job, JobRequest, JobState
from failwell.jobs.runtime import Runtime
from failwell.jobs.store.sqlite import JobStore
from tests.jobs.queues import OutsideWorld, a_capability, a_runtime, types
from tests.jobs.workers import SAMPLES, run, until

_SCHEMA = '[config]\ntype = "object"\n[config.properties.size]\ntype = "integer"\n'
_STRICTER = f'{_SCHEMA}[config.properties.mode]\ntype = "string"\n'.replace(
    'type = "object"\n', 'type = "object"\nrequired = ["mode"]\n', 1
)


def _in_the_registry(folder: Path, name: str, more: str = "", *, replace: bool = False) -> CapabilityRegistry:
    file = folder / f"{name}.toml"
    file.write_text(f'name = "{name}"\nobject = "queueing:Worker"\npath = ["{SAMPLES}"]\n{more}')
    registry = CapabilityRegistry(folder / "registry")
    registry.add(file, replace=replace)
    return registry


def _handed_in(folder: Path, instance: str) -> Job:
    """A job that another process submitted, while nothing was wrong."""
    store = JobStore(folder / "state")
    try:
        return QueueClient(store, CapabilityRegistry(folder / "registry")).submit(
            JobRequest(instance=instance)
        )
    finally:
        store.close()


def _listened_to() -> list[Any]:
    """What the loop complains of from now on."""
    heard: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, what: heard.append(what))
    return heard


def test_a_job_whose_kept_configuration_is_not_valid_any_more_fails_and_names_the_field(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        registry = _in_the_registry(tmp_path, "picky", _SCHEMA)
        registry.set_config("picky", {"size": 3})
        bad = _handed_in(tmp_path, "picky")
        _in_the_registry(tmp_path, "picky", _STRICTER, replace=True)
        heard = _listened_to()
        async with a_runtime(tmp_path, a_capability()) as jobs:
            failed = await jobs.wait(bad.id, timeout=20)
            with pytest.raises(CapabilityConfigError) as refused:
                await jobs.submit("picky")

            assert failed.state is JobState.FAILED
            assert failed.error is not None
            assert failed.error.kind == "validation.config_invalid"
            assert "mode" in (failed.error.fields_invalid or ())
            assert "mode" in (refused.value.fields_invalid or ())
            assert types(jobs, bad) == ["submitted", "failed"]
            assert await jobs.call("worker", {"value": 1}) == 1
            assert heard == []

            await jobs.configure("picky", {"size": 3, "mode": "quick"})
            assert await jobs.call("picky", {"value": 2}) == 2

    run(work())


def test_a_client_refuses_a_job_whose_stored_configuration_does_not_fit_and_stores_nothing(
    tmp_path: Path,
) -> None:
    registry = _in_the_registry(tmp_path, "picky", _SCHEMA)
    registry.set_config("picky", {"size": "large", "colour": "red"})

    with pytest.raises(CapabilityConfigError) as refused:
        _handed_in(tmp_path, "picky")
    store = JobStore(tmp_path / "state")
    try:
        assert store.last_event() == 0
    finally:
        store.close()
    registry.set_config("picky", {"size": 3})

    assert refused.value.fields_invalid == ["colour", "size"]
    assert _handed_in(tmp_path, "picky").state is JobState.PENDING


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("instances.json", "{"),
        ("instances.json", '{"plain": 5}'),
        ("secrets.json", "not json"),
        ("capabilities/plain.toml", "name = "),
        ("capabilities/plain.toml", 'name = "plain"\n'),
    ],
)
def test_a_job_whose_files_cannot_be_read_waits_with_the_reason_and_others_go_on(
    tmp_path: Path, file: str, words: str
) -> None:
    async def work() -> None:
        _in_the_registry(tmp_path, "plain")
        stuck = _handed_in(tmp_path, "plain")
        broken = tmp_path / "registry" / file
        before = broken.read_text() if broken.exists() else "{}"
        heard = _listened_to()
        runtime = Runtime(tmp_path / "state", registry=tmp_path / "registry", probe=OutsideWorld())
        async with runtime as jobs:
            jobs.register(a_capability())
            broken.write_text(words)
            assert await jobs.call("worker", {"value": 1}) == 1
            await until(lambda: jobs.job(stuck.id).block_reason is not None)
            with pytest.raises(CapabilityConfigError):
                await jobs.submit("plain")

            assert jobs.job(stuck.id).state is JobState.PENDING
            assert "cannot be read" in str(jobs.job(stuck.id).block_reason) or file in str(
                jobs.job(stuck.id).block_reason
            )
            assert heard == []

            broken.write_text(before)
            assert (await jobs.wait(stuck.id, timeout=20)).state is JobState.COMPLETED

    run(work())


def test_what_nobody_foresaw_about_one_job_ends_that_job_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        heard = _listened_to()
        async with a_runtime(tmp_path, a_capability(), a_capability("odd")) as jobs:
            odd = jobs.queue.state.find_instance("odd")
            assert odd is not None
            monkeypatch.setattr(type(odd.worker), "begin", _raises_for("odd", type(odd.worker).begin))
            both = [await jobs.submit("odd"), await jobs.submit("worker", {"value": 1})]
            first, second = [await jobs.wait(one.id, timeout=20) for one in both]

            assert (first.state, second.state) == (JobState.FAILED, JobState.COMPLETED)
            assert jobs.queue.state.running == 0
            assert heard == []

    run(work())


def _raises_for(name: str, real: Any) -> Any:
    def begin(worker: Any, *given: Any) -> bool:
        if worker.instance == name:
            raise KeyError(name)
        return real(worker, *given)

    return begin
