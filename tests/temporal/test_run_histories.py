"""Histories of runs and jobs replay, in the sandbox.

`FAILWELL_RECORD=first python -m pytest --basetemp=/tmp/recorded tests/temporal/test_run_histories.py` records those in
`histories` again: a run, the last part of one that was continued as new, and a job.
"""

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio")

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from failwell import workflows
from failwell.temporal import AsyncClient, ConnectionOptions
from failwell.temporal.jobs.job_workflow import JobWorkflow
from failwell.temporal.queues import JOB_PREFIX
from failwell.temporal.runs.run_workflow import RunWorkflow
from failwell.temporal.runs.step_activities import workflow_runner
from failwell.workflows.running.settings import GateAnswer
from tests.temporal.engines import sequences, temporal_engine
from tests.temporal.worker_process import worker_process
from tests.temporal_server import server, task_queue

HISTORIES = Path(__file__).parent / "histories"

EVERYTHING = """
workflow:
  name: everything
  entry_point: first
  limits: {max_iterations: 200}
kinds: {external.busy: {category: transient, summary: Busy.}}
agents:
  - name: first
    type: script
    raises: [external.busy]
    command: sh
    args: [-c, "test $FAILWELL_RETRY_ATTEMPT -gt 0 && { echo '{\\"items\\": [1, 2, 3]}'; exit 0; }; echo '{\\"kind\\": \\"external.busy\\", \\"message\\": \\"busy\\"}' > $FAILWELL_ERROR_OUT; exit 1"]
    routes:
      - {on_error: external.busy, retry: {max: 2, backoff: fixed, initial_seconds: 0.01}}
      - {to: each}
  - {name: pause, type: wait, duration: 10ms, routes: [{to: ask}]}
  - name: ask
    type: human_gate
    prompt: Shall we?
    options:
      - {label: "Yes", value: "yes", route: child}
  - {name: child, type: workflow, workflow: child.yaml, input_mapping: {n: "{{ each.count }}"}, routes: [{to: $end}]}
for_each:
  - name: each
    source: first.output.items
    as: item
    max_concurrent: 2
    agent: {name: one, type: script, command: sh, args: [-c, "echo {{ item }}"]}
    routes: [{to: pause}]
output: {doubled: "{{ child.output.doubled }}", count: "{{ each.count }}"}
"""
CHILD = """
workflow:
  name: child
  entry_point: double
  input: {n: {type: number}}
agents:
  - {name: double, type: set, value: "{{ workflow.input.n * 2 }}", routes: [{to: $end}]}
output: {doubled: "{{ double.output }}"}
"""


def _write(folder: Path) -> Path:
    (folder / "child.yaml").write_text(CHILD, encoding="utf-8")
    file = folder / "workflow.yaml"
    file.write_text(EVERYTHING, encoding="utf-8")
    return file


async def _yes(_gate: str, _question: Any) -> GateAnswer:
    return GateAnswer(decision="yes", by="ann")


async def _histories(folder: Path, **options: Any) -> tuple[workflows.RunResult, list[WorkflowHistory]]:
    """Run everything on the server; the result, and the history of each execution."""
    async with temporal_engine(folder / "worker", **options) as engine:
        done = await workflows.arun(_write(folder), store=folder / "store", on_gate=_yes, engine=engine)
        client = await engine.connection.connect()
        histories: list[WorkflowHistory] = []
        async for execution in client.list_workflows(f"WorkflowId = '{done.id}'"):
            handle = client.get_workflow_handle(done.id, run_id=execution.run_id)
            histories.append(await handle.fetch_history())
    return done, histories


async def _replay(*histories: WorkflowHistory, runner: SandboxedWorkflowRunner | None = None) -> None:
    replayer = Replayer(
        workflows=[RunWorkflow, JobWorkflow], workflow_runner=runner or workflow_runner(), debug_mode=True
    )
    for history in histories:
        result = await replayer.replay_workflow(history, raise_on_replay_failure=True)
        assert result.replay_failure is None


@pytest.mark.slow
def test_a_run_with_every_sort_of_step_replays(tmp_path: Path) -> None:
    async def work() -> tuple[workflows.RunResult, list[WorkflowHistory]]:
        done, histories = await _histories(tmp_path)
        await _replay(*histories)
        return done, histories

    done, histories = asyncio.run(work())
    local = workflows.run(_write(tmp_path), store=tmp_path / "local", on_gate=_yes)

    assert done.output == local.output == {"doubled": 6, "count": 3}
    events = [
        workflows.read_events(run.id, store=tmp_path / name)
        for run, name in ((done, "store"), (local, "local"))
    ]
    assert sequences(events[0]) == sequences(events[1])
    _keep(histories[0], "")


def _keep(history: WorkflowHistory, suffix: str) -> None:
    """Write a history beside the others, if that is asked for."""
    if name := os.environ.get("FAILWELL_RECORD"):
        text = json.dumps(history.to_json_dict(), indent=1)
        text = re.sub(r'"(identity|stackTrace)": "(?:[^"\\]|\\.)*"', r'"\1": ""', text)
        (HISTORIES / f"{name}{suffix}.json").write_text(f"{text}\n", encoding="utf-8")


@pytest.mark.slow
def test_a_long_run_is_continued_as_new_and_loses_nothing(tmp_path: Path) -> None:
    async def work() -> tuple[workflows.RunResult, list[WorkflowHistory]]:
        done, histories = await _histories(tmp_path, max_history_events=12)
        await _replay(*histories)
        return done, histories

    done, histories = asyncio.run(work())
    local = workflows.run(_write(tmp_path), store=tmp_path / "local", on_gate=_yes)

    assert len(histories) > 2
    assert done.output == local.output
    events = [
        workflows.read_events(run.id, store=tmp_path / name)
        for run, name in ((done, "store"), (local, "local"))
    ]
    assert [event.seq for event in events[0]] == list(range(len(events[0])))
    assert sequences(events[0]) == sequences(events[1])
    _keep(histories[0], "-continued")


@pytest.mark.slow
def test_the_workflow_of_a_job_replays(tmp_path: Path) -> None:
    queue = task_queue()

    async def work() -> WorkflowHistory:
        options = ConnectionOptions(address=server().address, task_queue=queue)
        async with AsyncClient(options) as client:
            job = await client.submit("double", number=21)
            assert await job.result(60) == 42
        connected = await options.connect()
        history = await connected.get_workflow_handle(f"{JOB_PREFIX}{job.id}").fetch_history()
        await _replay(history)
        return history

    with worker_process(server().address, queue, tmp_path / "store"):
        history = asyncio.run(work())

    assert history.events
    _keep(history, "-job")


@pytest.mark.parametrize("file", sorted(HISTORIES.glob("*.json")), ids=lambda file: file.stem)
def test_a_history_that_was_recorded_earlier_replays(file: Path) -> None:
    history = WorkflowHistory.from_json("recorded", json.loads(file.read_text(encoding="utf-8")))

    asyncio.run(_replay(history))


@pytest.mark.slow
def test_the_machine_does_nothing_in_a_workflow_that_the_sandbox_forbids() -> None:
    file = HISTORIES / "first.json"
    history = WorkflowHistory.from_json("recorded", json.loads(file.read_text(encoding="utf-8")))
    # Our own modules are loaded inside the sandbox, which refuses clocks, random numbers, files and processes.
    strict = SandboxedWorkflowRunner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules(
            "jinja2", "jsonschema_rs", "markupsafe", "yaml"
        )
    )

    asyncio.run(_replay(history, runner=strict))


def test_a_history_that_took_another_way_is_refused() -> None:
    file = HISTORIES / "first.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    for event in data["events"]:
        attributes = event.get("activityTaskScheduledEventAttributes")
        if attributes is not None:
            attributes["activityType"]["name"] = "failwell.other"

    with pytest.raises(Exception, match=r"[Nn]ondeterminism"):
        asyncio.run(_replay(WorkflowHistory.from_json("recorded", data)))
