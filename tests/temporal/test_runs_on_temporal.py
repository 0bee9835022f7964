"""Workflow runs on a real Temporal server, through the commands as they are shipped."""

import re
from collections.abc import Generator
from pathlib import Path

import pytest

pytest.importorskip("temporalio")

from tests.temporal.project import Project, worker

TWO = """
workflow:
  name: two
  entry_point: first
  input: {who: {type: string, default: world}}
agents:
  - name: first
    type: script
    command: sh
    args: [-c, "echo '{\\"z\\": 1, \\"word\\": \\"hello\\"}'"]
    routes: [{to: second}]
  - name: second
    type: script
    command: sh
    args: [-c, "echo '{{ first.output.word }} {{ workflow.input.who }}'"]
    routes: [{to: $end}]
output:
  text: "{{ second.output.stdout }}"
  order: "{% for name in first.output %}{{ name }} {% endfor %}"
"""


@pytest.fixture
def project(tmp_path: Path) -> Generator[Project]:
    project = Project(tmp_path)
    with worker(project.queue, tmp_path / "worker"):
        yield project


def test_two_scripts_run_on_temporal_and_print_what_a_local_run_prints(project: Project) -> None:
    done = project.run(TWO, "-i", "who=there")
    file = project.folder / "workflow.yaml"
    local = project.type("run", str(file), "-i", "who=there", "--run-id", "here")

    assert done.code == local.code == 0, done.err
    assert (
        done.data
        == local.data
        == {
            "text": "hello there\n",
            "order": "stdout stderr exit_code z word ",
        }
    )
    assert _without_times(done.err) == _without_times(local.err)


def _without_times(text: str) -> str:
    return re.sub(r"run \S+ of|in [\d.]+ m?s|after [\d.]+ m?s", "", text)


GATE = """
workflow: {name: gate, entry_point: ask}
agents:
  - name: ask
    type: human_gate
    prompt: Shall we?
    options:
      - {label: "Yes", value: "yes", route: go}
      - {label: "No", value: "no", route: $end}
  - {name: go, type: set, value: "{{ ask.output.selected }}", routes: [{to: $end}]}
output: {went: "{{ go.output }}"}
"""


def test_a_gate_is_answered_by_the_usual_command_and_a_second_answer_is_refused(project: Project) -> None:
    waiting = project.run(GATE, "--no-input")
    listed = project.type("gates", "list", "last", "--json").data
    wrong = project.type("gates", "answer", "last", "ask", "maybe")
    answered = project.type("gates", "answer", "last", "ask", "yes", "--by", "ann")
    again = project.type("gates", "answer", "last", "ask", "no")
    shown = project.type("runs", "show", "last", "--json").data

    assert waiting.code == 4, waiting.err
    assert [(gate["id"], gate["values"]) for gate in listed] == [("ask", ["yes", "no"])]
    assert wrong.code == 2
    assert "`maybe` is not an answer" in wrong.err
    assert answered.code == 0, answered.err
    assert again.code == 2
    assert shown["status"] == "completed"
    resumed = [event["data"] for event in project.events() if event["type"] == "human_gate:resumed"]
    assert [(data["decision"], data["decided_by"]) for data in resumed] == [("yes", "ann")]


STAGES = """
workflow: {name: stages, entry_point: draft, runtime: {default_model: "scripted:replies.yaml"}}
stages:
  - id: draft
    setup: {topic: rain}
    prompt: "Write about {{ ctx.topic }}."
    assert: [{when: "{{ act.output.result == 'bad' }}", verdict: retry, feedback: too short}]
    retryPolicy: {maxAttempts: 2}
    next: [{parallel: [left, right], join: end}]
  - {id: left, exit: {side: left}}
  - {id: right, exit: {side: right}}
  - {id: end, exit: {sides: "{{ siblings | list }}", topic: "{{ ctx.topic }}"}}
"""


def test_a_state_machine_runs_on_temporal_as_on_one_machine(project: Project) -> None:
    replies = "agents: {draft: [{text: bad}], 'draft#2': [{text: good}]}\nreplies: [{text: done}]\n"
    (project.folder / "replies.yaml").write_text(replies)

    done = project.run(STAGES)
    local = project.type("run", str(project.folder / "workflow.yaml"), "--run-id", "here")

    assert done.code == local.code == 0, done.err
    assert done.data == local.data == {"sides": ["left", "right"], "topic": "rain"}
