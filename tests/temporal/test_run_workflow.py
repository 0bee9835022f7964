"""What a run shows and accepts on its server: queries, search attributes, updates, ids, cancellation, limits."""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio")

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from failwell import workflows
from failwell.store.faults import RunExists
from failwell.temporal.plugin import recover
from failwell.temporal.runs.plan_json import pack_plans, unpack_plans
from failwell.temporal.runs.remote_driver import RunTooLarge
from failwell.workflows.check.workflow_tree import check_file
from tests.temporal.engines import temporal_engine
from tests.temporal_server import TemporalServer

GATE = """
workflow: {name: gate, entry_point: fail}
kinds: {external.shop.closed: {category: user_input, summary: The shop is closed.}}
agents:
  - name: fail
    type: script
    raises: [external.shop.closed]
    command: sh
    args: [-c, 'echo "{\\"kind\\": \\"external.shop.closed\\", \\"message\\": \\"closed\\"}" > $FAILWELL_ERROR_OUT; exit 1']
    routes: [{on_error: external.shop.closed, to: ask}, {to: $end}]
  - name: ask
    type: human_gate
    prompt: Shall we?
    options:
      - {label: "Yes", value: "yes", route: $end}
      - {label: "No", value: "no", route: refuse}
  - {name: refuse, type: terminate, status: failed, reason: "nobody wants it"}
output: {answer: "{{ ask.output.selected }}"}
"""


def _file(folder: Path, text: str = GATE) -> Path:
    file = folder / "workflow.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_waiting_run_is_queried_found_by_its_kind_and_answered_once(tmp_path: Path) -> None:
    async def work() -> tuple[Any, ...]:
        async with temporal_engine(tmp_path / "worker") as engine:
            waiting = await workflows.arun(_file(tmp_path), store=tmp_path / "store", engine=engine)
            client = await engine.connection.connect()
            handle: Any = client.get_workflow_handle(waiting.id)
            state = await handle.query("state")
            kind = await _kind(client, waiting.id)
            refused = [
                await _refusal(handle, reply)
                for reply in (
                    {"gate": "ask", "decision": "maybe", "by": "ann"},
                    {"gate": "other", "decision": "yes", "by": "ann"},
                )
            ]
            answers = [
                handle.execute_update("answer", {"gate": "ask", "decision": "yes", "by": by})
                for by in ("ann", "ben")
            ]
            both = await asyncio.gather(*answers, return_exceptions=True)
            done = await workflows.aresume(waiting.id, store=tmp_path / "store", engine=engine)
            return waiting, state, kind, refused, both, done, await _kind(client, waiting.id)

    waiting, state, kind, refused, both, done, last_kind = asyncio.run(work())

    assert waiting.status == "waiting"
    assert waiting.gates == ("ask",)
    assert (state["status"], state["gates"]) == ("paused", {"ask": "Shall we?"})
    assert kind == ("external.shop.closed", "user_input")
    assert "`maybe` is not an answer" in refused[0]
    assert "no gate `other` is open" in refused[1]
    accepted: list[Any] = [result for result in both if not isinstance(result, BaseException)]
    assert len(accepted) == 1, "the second answer is refused"
    assert done.output == {"answer": "yes"}
    assert last_kind is None, "a run that has completed is not found by a failure"


async def _refusal(handle: Any, reply: Mapping[str, Any]) -> str:
    with pytest.raises(WorkflowUpdateFailedError) as raised:
        await handle.execute_update("answer", dict(reply))
    assert isinstance(raised.value.cause, ApplicationError)
    return raised.value.cause.message


async def _kind(client: Client, run: str) -> tuple[str, str] | None:
    description = await client.get_workflow_handle(run).describe()
    pairs: Any = description.typed_search_attributes
    found: dict[str, Any] = {pair.key.name: pair.value for pair in pairs}
    return (found["FailwellKind"], found["FailwellCategory"]) if "FailwellKind" in found else None


def test_a_failed_run_fails_its_workflow_with_the_report(tmp_path: Path) -> None:
    text = GATE.replace(", to: ask}", ", halt: {message: no shop}}")

    async def work() -> tuple[workflows.RunResult, WorkflowFailureError]:
        async with temporal_engine(tmp_path / "worker") as engine:
            done = await workflows.arun(_file(tmp_path, text), store=tmp_path / "store", engine=engine)
            client = await engine.connection.connect()
            with pytest.raises(WorkflowFailureError) as raised:
                await client.get_workflow_handle(done.id).result()
            return done, raised.value

    done, raised = asyncio.run(work())

    assert done.report is not None
    assert recover(raised).kind == done.report.kind
    assert recover(raised).message == done.report.message


def test_the_id_of_a_run_that_the_server_has_is_refused(tmp_path: Path) -> None:
    async def work() -> None:
        async with temporal_engine(tmp_path / "worker") as engine:
            first = await workflows.arun(_file(tmp_path), store=tmp_path / "one", engine=engine)
            with pytest.raises(RunExists):
                await workflows.arun(_file(tmp_path), store=tmp_path / "two", run_id=first.id, engine=engine)

    asyncio.run(work())


def test_a_run_that_was_terminated_is_started_where_it_stopped(tmp_path: Path) -> None:
    async def work() -> tuple[WorkflowExecutionStatus | None, workflows.RunResult, list[str]]:
        async with temporal_engine(tmp_path / "worker") as engine:
            waiting = await workflows.arun(_file(tmp_path), store=tmp_path / "store", engine=engine)
            client = await engine.connection.connect()
            handle: Any = client.get_workflow_handle(waiting.id)
            await handle.terminate("by an operator")
            status = (await handle.describe()).status
            again = await workflows.aresume(waiting.id, store=tmp_path / "store", engine=engine)
            await handle.execute_update("answer", {"gate": "ask", "decision": "yes", "by": "ann"})
            done = await workflows.aresume(waiting.id, store=tmp_path / "store", engine=engine)
            assert again.status == "waiting"
            events = workflows.read_events(waiting.id, store=tmp_path / "store")
            return status, done, [event.data["path"] for event in events if event.type == "node:started"]

    status, done, started = asyncio.run(work())

    assert status == WorkflowExecutionStatus.TERMINATED
    assert done.output == {"answer": "yes"}
    assert started == ["fail", "ask"], "no step ran twice"


LARGE = """
workflow: {name: large, entry_point: big}
agents:
  - name: big
    type: script
    command: python3
    args: [-c, "import os, sys; sys.stdout.write(TEXT)"]
    output_limit: 20000000
    routes: [{to: $end}]
output: {size: "{{ big.output.stdout | length }}"}
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_output_that_does_not_fit_into_a_payload_fails_its_step_and_not_the_server(tmp_path: Path) -> None:
    async def work(text: str) -> workflows.RunResult:
        async with temporal_engine(tmp_path / "worker") as engine:
            file = _file(tmp_path, LARGE.replace("TEXT", text))
            return await workflows.arun(file, store=tmp_path / "store", engine=engine)

    fits = asyncio.run(work("os.urandom(500_000).hex()"))
    too_large = asyncio.run(work("os.urandom(3_000_000).hex()"))
    # It would fit, but a workflow that takes two seconds to read it is failed again and again.
    too_long = asyncio.run(work("'x' * 15_000_000"))

    assert fits.output == {"size": 1_000_000}
    for failed in (too_large, too_long):
        assert failed.report is not None
        assert "too large for Temporal" in failed.report.message
        assert "`big`" in failed.report.message


def test_a_run_that_is_too_large_to_submit_says_so(tmp_path: Path) -> None:
    text = GATE.replace("entry_point: fail", "entry_point: fail, input: {text: {type: string}}")

    async def work() -> workflows.RunResult:
        async with temporal_engine(tmp_path / "worker") as engine:
            inputs = {"text": "x" * 2_000_000}
            return await workflows.arun(
                _file(tmp_path, text), inputs, store=tmp_path / "store", engine=engine
            )

    with pytest.raises(RunTooLarge, match="pass large data as names of files"):
        asyncio.run(work())


def test_every_plan_of_the_examples_travels_unchanged() -> None:
    files = sorted(Path("examples/workflows").glob("*/*.yaml"))
    plans = [
        checked.plans
        for file in files
        if (checked := check_file(str(file.absolute()), environ={}, as_root=False)).plan is not None
    ]

    assert len(plans) > 10
    for by_file in plans:
        assert unpack_plans(pack_plans(by_file)) == by_file


@pytest.mark.slow
def test_a_namespace_without_room_for_search_attributes_runs_without_them_and_a_hint_says_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A library that configures logging in the same process may have switched it off.
    monkeypatch.setattr(logging.getLogger("failwell.temporal"), "disabled", False)
    caplog.set_level(logging.WARNING, logger="failwell.temporal")
    # A namespace takes a limited number of attributes of one type, and this one has them all.
    taken = tuple(part for number in range(10) for part in ("--search-attribute", f"Taken{number}=Keyword"))

    async def work(address: str) -> tuple[workflows.RunResult, tuple[str, str] | None]:
        async with temporal_engine(tmp_path / "worker", address=address) as engine:
            waiting = await workflows.arun(_file(tmp_path), store=tmp_path / "store", engine=engine)
            return waiting, await _kind(await engine.connection.connect(), waiting.id)

    with TemporalServer(options=taken) as own:
        waiting, kind = asyncio.run(work(own.address))

    assert waiting.status == "waiting"
    assert kind is None
    assert "temporal operator search-attribute create --namespace default" in caplog.text
