"""Workflows from Python: what the commands do, as functions."""

import asyncio
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from failwell import workflows
from tests.cli.running import failwell

GREET = """\
workflow:
  name: greet
  entry_point: hello
  input:
    who: {type: string, required: true}
agents:
  - name: hello
    type: script
    command: sh
    args: ["-c", "printf '{\\"text\\": \\"hello %s\\"}' \\"$1\\"", sh, "{{ workflow.input.who }}"]
    output: {text: {type: string}}
    routes: [{to: $end}]
output:
  greeting: "{{ hello.output.text }}"
"""

FRAGILE = """\
workflow: {name: fragile, entry_point: step}
agents:
  - name: step
    type: script
    command: sh
    args: ["-c", "test -e READY || { printf '{\\"kind\\": \\"external.not_ready\\", \\"message\\": \\"not ready\\"}' > $FAILWELL_ERROR_OUT; exit 1; }"]
    raises: [external.not_ready]
    routes: [{to: $end}]
output: {done: "yes"}
"""

ASKS = """\
workflow: {name: asks, entry_point: approve}
agents:
  - name: approve
    type: human_gate
    prompt: Go on?
    options:
      - {label: "Yes", value: "yes", route: $end}
      - {label: "No", value: "no", route: $end}
output: {decision: "{{ approve.output.selected }}"}
"""

SLOW = """\
workflow: {name: slow, entry_point: sleep}
agents:
  - name: sleep
    type: script
    command: sleep
    args: ["60"]
    routes: [{to: $end}]
output: {done: "yes"}
"""


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def made(text: str) -> Path:
        path = tmp_path / "flow.yaml"
        path.write_text(text.replace("READY", str(tmp_path / "ready")))
        return path

    return made


def test_a_file_is_loaded_and_run_with_its_inputs(write: Any, tmp_path: Path) -> None:
    workflow = workflows.load(write(GREET))

    events: list[str] = []
    result = workflows.run(
        workflow, {"who": "world"}, store=tmp_path / "state", on_event=lambda event: events.append(event.type)
    )

    assert (workflow.name, dict(workflow.nodes), dict(workflow.inputs)) == (
        "greet",
        {"hello": "script"},
        {"who": True},
    )
    assert workflow.validate() == []
    assert (result.status, result.ok, result.output) == ("completed", True, {"greeting": "hello world"})
    assert result.report is None
    assert events[0] == "run:started"
    assert events[-1] == "run:completed"


def test_every_mistake_of_a_file_is_in_one_error(write: Any) -> None:
    path = write(GREET.replace("entry_point: hello", "entry_point: nobody").replace("$end", "nowhere"))

    with pytest.raises(workflows.WorkflowInvalid) as caught:
        workflows.load(path)

    messages = [problem.message for problem in caught.value.mistakes]
    assert any("nobody" in message for message in messages)
    assert any("nowhere" in message for message in messages)
    assert [problem.message for problem in workflows.validate(path)] == messages


def test_inputs_are_checked_before_anything_runs(write: Any, tmp_path: Path) -> None:
    with pytest.raises(workflows.WorkflowInvalid):
        workflows.run(write(GREET), store=tmp_path / "state")

    assert workflows.list_runs(store=tmp_path / "state") == []


def test_a_failed_run_has_a_report_and_is_resumed_under_a_new_id(write: Any, tmp_path: Path) -> None:
    store = tmp_path / "state"

    failed = workflows.run(write(FRAGILE), store=store, run_id="first")
    (tmp_path / "ready").touch()
    resumed = workflows.resume("first", store=store)

    assert (failed.id, failed.status, failed.is_typed) == ("first", "failed", True)
    assert failed.report is not None
    assert failed.report.kind == "external.not_ready"
    assert failed.errors_file is not None
    assert resumed.ok
    assert resumed.id != "first"
    assert [run.status for run in workflows.list_runs(store=store)] == ["completed", "failed"]
    assert [run.id for run in workflows.list_runs(store=store, statuses=["failed"])] == ["first"]


def test_a_status_that_no_run_can_have_is_refused_with_those_there_are(tmp_path: Path) -> None:
    for store in (tmp_path / "missing", tmp_path):
        with pytest.raises(workflows.UnknownStatus) as caught:
            workflows.list_runs(store=store, statuses=["failed", "bogus"])
        assert "`bogus`" in str(caught.value)
        assert "running, waiting, parked, completed, failed, cancelled, interrupted" in str(caught.value)
        assert failwell("runs", "list", "--status", "bogus", "--store", str(store)).code == 2


def test_a_suggested_command_names_the_store_unless_it_is_the_default_one(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "my state"
    workflows.run(write(FRAGILE), store=store, run_id="r")
    write(FRAGILE + "\n# changed")

    details: list[str] = []
    for default in (tmp_path / "other", store):
        monkeypatch.setenv("FAILWELL_STORE", str(default))
        with pytest.raises(workflows.FileChanged) as caught:
            workflows.resume("r", store=store)
        action = caught.value.user_action
        details.append(action.detail if action is not None else "")

    assert f"`failwell resume r --accept-changes --store '{store}'`" in details[0]
    assert "`failwell resume r --accept-changes`" in details[1]


def test_the_commands_and_the_functions_see_the_same_runs(write: Any, tmp_path: Path) -> None:
    store = tmp_path / "state"
    path = write(GREET)

    result = workflows.run(path, {"who": "a"}, store=store)
    failwell("run", str(path), "-i", "who=b", "--run-id", "two", "--store", str(store), "-q")

    shown = failwell("runs", "show", result.id, "--store", str(store), "--json").data
    assert shown["outputs"] == result.output
    assert workflows.get_run("two", store=store).status == "completed"
    assert workflows.read_events("two", store=store)[-1].type == "run:completed"


def test_a_gate_is_listed_answered_and_the_run_resumed(write: Any, tmp_path: Path) -> None:
    store = tmp_path / "state"
    waiting = workflows.run(write(ASKS), store=store, run_id="r")

    [gate] = workflows.list_gates("r", store=store)
    with pytest.raises(workflows.GateRefused, match="maybe"):
        workflows.answer_gate("r", gate.id, "maybe", by="me", store=store)
    is_live = workflows.answer_gate("r", gate.id, "yes", by="me", store=store)
    done = workflows.resume("r", store=store)

    assert (waiting.status, waiting.gates) == ("waiting", (gate.id,))
    assert (gate.prompt, gate.values) == ("Go on?", ("yes", "no"))
    assert is_live is False
    assert done.output == {"decision": "yes"}


def test_a_gate_is_answered_by_a_function(write: Any, tmp_path: Path) -> None:
    async def scenario() -> None:
        async def approve(gate: str, question: Mapping[str, Any]) -> workflows.GateAnswer:
            assert question["prompt"] == "Go on?"
            return workflows.GateAnswer(decision="no", by=gate)

        result = await workflows.arun(write(ASKS), store=tmp_path / "state", on_gate=approve)

        assert result.output == {"decision": "no"}

    asyncio.run(scenario())


def test_a_run_is_stopped_from_elsewhere(write: Any, tmp_path: Path) -> None:
    async def scenario() -> None:
        store = tmp_path / "state"
        started = asyncio.Event()

        def seen(event: workflows.Event) -> None:
            if event.type == "node:started":
                started.set()

        running = asyncio.ensure_future(workflows.arun(write(SLOW), store=store, run_id="s", on_event=seen))
        await started.wait()
        status = await asyncio.to_thread(workflows.cancel_run, "s", by="me", store=store)

        assert status == "cancelled"
        assert (await running).status == "cancelled"
        with pytest.raises(workflows.NotRunning):
            workflows.cancel_run("s", store=store)

    asyncio.run(scenario())


def test_runs_in_two_threads_do_not_disturb_each_other(write: Any, tmp_path: Path) -> None:
    path, store = write(GREET), tmp_path / "state"
    outputs: dict[str, Any] = {}

    def work(who: str) -> None:
        outputs[who] = workflows.run(path, {"who": who}, store=store).output

    threads = [threading.Thread(target=work, args=(who,)) for who in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert outputs == {who: {"greeting": f"hello {who}"} for who in ("a", "b")}


def test_the_blocking_form_inside_an_event_loop_names_the_other(write: Any) -> None:
    async def scenario() -> None:
        with pytest.raises(RuntimeError, match=r"await workflows\.arun"):
            workflows.run(write(GREET), {"who": "x"})

    asyncio.run(scenario())


@pytest.mark.parametrize("call", [workflows.get_run, workflows.list_gates, workflows.read_events])
def test_a_run_that_is_not_recorded_is_a_typed_error(call: Any, tmp_path: Path) -> None:
    with pytest.raises(workflows.UnknownRun):
        call("nobody", store=tmp_path)

    assert workflows.list_runs(store=tmp_path) == []


def test_a_job_node_runs_without_the_command_line(tmp_path: Path) -> None:
    store = tmp_path / "state"
    (tmp_path / "double.py").write_text(
        "class Double:\n    def execute(self, n):\n        return {'n': n * 2}\n"
    )
    manifest = tmp_path / "double.toml"
    manifest.write_text(f'name = "double"\nobject = "double:Double"\npath = {json.dumps([str(tmp_path)])}\n')
    added = failwell("capabilities", "add", str(manifest), "--store", str(store))
    path = tmp_path / "flow.yaml"
    path.write_text(
        "workflow: {name: j, entry_point: twice}\nagents:\n"
        "  - {name: twice, type: job, job: double, arguments: {n: 21}, routes: [{to: $end}]}\n"
        'output: {n: "{{ twice.output.n }}"}\n'
    )

    result = workflows.run(path, store=store)

    assert added.code == 0, added.err
    assert result.ok, result.report
    assert result.output == {"n": 42}
