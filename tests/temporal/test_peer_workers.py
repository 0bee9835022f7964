"""Workers of other versions, broken ones and hostile ones: whatever they return, a run ends and says why."""

import asyncio
import base64
import json
import zlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio")

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from failwell import workflows
from failwell.errors.axes import Certainty
from failwell.store.output_log import OutputReader
from failwell.temporal.connection import ConnectionOptions
from failwell.temporal.runs.payloads import failure_payload, fit
from failwell.temporal.runs.plan_json import pack, unpack
from failwell.temporal.runs.remote_driver import TemporalEngine
from failwell.temporal.runs.run_workflow import NODE_ACTIVITY, RunWorkflow
from failwell.temporal.runs.step_activities import workflow_runner
from failwell.workflows.failure import Failure
from tests.specimens import each
from tests.temporal_server import server, task_queue

STEP = """
workflow: {name: step, entry_point: step}
agents:
  - {name: step, type: script, command: "true", routes: [{to: $end}]}
output: {answer: "{{ step.output }}"}
"""


def bomb() -> str:
    """A gigabyte of spaces, packed. All of its blocks are alike, so one of them is compressed."""
    packer, spaces = zlib.compressobj(9), b" " * 1_000_000
    first, block = (packer.compress(spaces) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return base64.b64encode(first + block * 999).decode()


BOMB = bomb()
UNREADABLE: dict[str, Any] = {
    "nothing": None,
    "a text": "done",
    "a list": [1],
    "no payload": {},
    "a payload that is no JSON": {"json": "{"},
    "a payload that is a list": {"json": "[]"},
    "no output": {"json": "{}"},
    "text that is not compressed": {"packed": "aGVsbG8="},
    "a compressed payload that is cut": {"packed": pack({"output": 1})[:-8]},
    "a compressed payload of 1 GB": {"packed": BOMB},
}


@asynccontextmanager
async def peer_worker(answer: Callable[[], Any]) -> AsyncGenerator[TemporalEngine]:
    """An engine whose worker advances runs as ours does, and answers for steps with whatever `answer` returns."""

    @activity.defn(name=NODE_ACTIVITY)
    async def run_step(_payload: Any) -> Any:
        return answer()

    connection = ConnectionOptions(address=server().address, task_queue=task_queue())
    worker = Worker(
        await connection.connect(),
        task_queue=connection.task_queue,
        workflows=[RunWorkflow],
        activities=[run_step],
        workflow_runner=workflow_runner(),
    )
    async with worker:
        yield TemporalEngine(connection=connection)


def runs(folder: Path, answer: Callable[[], Any], text: str = STEP) -> workflows.RunResult:
    file = folder / "workflow.yaml"
    file.write_text(text, encoding="utf-8")

    async def work() -> workflows.RunResult:
        async with peer_worker(answer) as engine:
            return await workflows.arun(file, store=folder / "store", engine=engine)

    return asyncio.run(work())


@pytest.mark.slow
@pytest.mark.timeout(60)
@each("name", UNREADABLE)
def test_a_result_that_cannot_be_read_fails_its_step(name: str, tmp_path: Path) -> None:
    done = runs(tmp_path, lambda: UNREADABLE[name])

    assert done.report is not None
    assert done.report.kind == "validation.contract_version_mismatch"
    assert done.report.certainty is Certainty.UNKNOWN
    assert "`step`" in done.report.message


@pytest.mark.slow
@pytest.mark.timeout(60)
@each("name", UNREADABLE)
def test_a_failure_that_cannot_be_read_fails_its_step(name: str, tmp_path: Path) -> None:
    def fail() -> None:
        raise ApplicationError("no", UNREADABLE[name], non_retryable=True)

    done = runs(tmp_path, fail)

    assert done.status == "failed"
    assert done.report is not None
    assert not done.report.retryable


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_peer_cannot_pass_its_failure_off_as_a_cancelled_run_or_flood_the_journal(tmp_path: Path) -> None:
    report = Failure.of("cancel.run", "x" * 500_000).report
    forged = {
        **failure_payload(Failure(report=report), []),
        "lines": [1, {"text": "no time"}, {"at": 1.0, "path": "step", "text": "printed"}],
        "unknown": {"of": "a newer version"},
    }

    def fail() -> None:
        raise ApplicationError("no", fit(forged), non_retryable=True)

    done = runs(tmp_path, fail)
    events = workflows.read_events(done.id, store=tmp_path / "store")

    assert done.status == "failed"
    assert [entry.text for entry in OutputReader(tmp_path / "store" / "runs" / done.id).read()] == ["printed"]
    assert len(json.dumps([dict(event.data) for event in events])) < 200_000


def test_compressed_text_fills_no_more_memory_than_anything_that_was_packed() -> None:
    assert unpack(pack({"a": ["ä", 1]})) == {"a": ["ä", 1]}
    for text in (BOMB, "", "aGVsbG8=", pack([1])[:-4]):
        with pytest.raises(ValueError, match=r"compressed|more than 32,000,000 bytes"):
            unpack(text)
