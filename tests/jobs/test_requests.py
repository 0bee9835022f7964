"""What cannot be sent to any worker is refused when it is submitted, before anything is on record."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from failwell.capability import CapabilityInputError
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.host import open_store
from failwell.jobs.job import MOST_BYTES, JobRequest
from tests.jobs.queues import a_capability, a_runtime
from tests.jobs.workers import SAMPLES, failure, run


def _nested(levels: int) -> Any:
    made: Any = 1
    for _ in range(levels):
        made = [made]
    return made


TOO_MUCH: list[tuple[Mapping[str, Any], str]] = [
    ({"value": "x" * MOST_BYTES}, f"bytes as JSON, and a job takes at most {MOST_BYTES:,}"),
    ({"value": "ü" * (MOST_BYTES // 2)}, f"bytes as JSON, and a job takes at most {MOST_BYTES:,}"),
    ({"value": _nested(201)}, "more than 200 levels"),
    ({"value": _nested(5000)}, "more than 200 levels"),
]


@pytest.mark.parametrize(
    ("arguments", "words"), TOO_MUCH, ids=["bytes", "characters", "levels", "many levels"]
)
def test_arguments_that_no_worker_could_be_sent_are_not_recorded(
    arguments: Mapping[str, Any], words: str, tmp_path: Path
) -> None:
    async def work() -> Any:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            fault = await failure(jobs.submit("worker", arguments))
            return fault, len(jobs.history()), jobs.waiting()

    fault, ended, waiting = run(work())

    assert isinstance(fault, CapabilityInputError)
    assert fault.fields_invalid == ["arguments"]
    assert words in str(fault)
    # The measurement run alone.
    assert (ended, waiting) == (1, [])
    assert sum(file.stat().st_size for file in tmp_path.rglob("journal.db*")) < 10_000_000


def test_they_are_refused_from_another_process_too(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(f'name = "worker"\nobject = "queueing:Worker"\npath = ["{SAMPLES}"]\n')
    registry = CapabilityRegistry(tmp_path / "registry")
    registry.add(tmp_path / "m.toml")
    store = open_store(tmp_path / "state")
    try:
        with pytest.raises(CapabilityInputError, match="pass the path of a file"):
            QueueClient(store, registry).submit(
                JobRequest(instance="worker", arguments={"value": "x" * MOST_BYTES})
            )

        assert sum(store.counts().values()) == 0
    finally:
        store.close()


@pytest.mark.slow
def test_as_much_as_is_allowed_arrives(tmp_path: Path) -> None:
    text = "x" * (MOST_BYTES - 100)

    async def work() -> Any:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            deep = await jobs.call("worker", {"value": _nested(199)})
            long = await jobs.call("worker", {"value": text}, control={"max_attempts": 1})
            return deep, long

    deep, long = run(work())

    assert deep == _nested(199)
    assert long == text
