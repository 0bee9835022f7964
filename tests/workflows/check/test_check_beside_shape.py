"""A file with mistakes in its shape gets the checks of the whole file in the same pass, and no follow-up mistakes."""

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import pytest

from failwell.files.mistakes import Mistake
from failwell.workflows.check.rules import check
from failwell.workflows.check.workflow_tree import check_file
from failwell.workflows.compile.compiler import Compiled
from tests.workflows.compile.writing import compile_text

BROKEN = """\
workflow:
  name: x
  entry_point: strat
agents:
  - name: start
    type: script
    comand: echo
    routes:
      - {to: nowhere}
      - {to: gate}
      - {to: $end}
  - name: gate
    type: human_gate
    prompt: go?
    options: [{label: a, value: a, route: missing}]
"""

SOUND: dict[str, Any] = {
    "workflow": {
        "name": "x",
        "entry_point": "start",
        "input": {
            "who": {"type": "string"},
            "token": {"type": "string", "secret": True},
            "files": {"type": "array"},
        },
        "context": {"mode": "accumulate"},
        "limits": {"max_iterations": 50, "timeout_seconds": 1000},
        "hooks": {"on_start": "hello {{ workflow.input.who }}"},
    },
    "kinds": {"external.git.failed": {"category": "transient"}},
    "agents": [
        {
            "name": "start",
            "type": "script",
            "command": "echo",
            "args": ["{{ workflow.input.who }}", "b"],
            "timeout": 5,
            "env_from": {"TOKEN": "workflow.input.token"},
            "raises": ["external.git.failed"],
            "retry": {"max_attempts": 2},
            "output": {"v": {"type": "string"}},
            "routes": [
                {"on_error": "external.git.failed", "to": "fix"},
                {"to": "gate", "when": "{{ output.v == '1' }}"},
                {"to": "pick"},
            ],
        },
        {"name": "fix", "type": "set", "value": "{{ start.error.message }}", "routes": [{"to": "ask"}]},
        {"name": "pick", "type": "set", "values": {"a": "{{ start.output.v }}"}, "routes": [{"to": "both"}]},
        {
            "name": "gate",
            "type": "human_gate",
            "prompt": "go on with {{ start.output.v }}?",
            "timeout_seconds": 5,
            "timeout_option": "yes",
            "options": [
                {"label": "Yes", "value": "yes", "route": "both"},
                {"label": "No", "value": "no", "route": "stop"},
            ],
            "on_reject": "fail",
        },
        {"name": "stop", "type": "terminate", "status": "failed", "reason": "no: {{ gate.output.choice }}"},
        {
            "name": "ask",
            "type": "questions",
            "questions": [{"text": "what?", "id": "a"}],
            "allow_abort": True,
            "abort_route": "nap",
            "routes": [{"to": "both"}],
        },
        {"name": "nap", "type": "wait", "duration": "5s", "routes": [{"to": "both"}]},
        {"name": "one", "type": "script", "command": "a", "args": ["{{ workflow.input.who }}"]},
        {"name": "two", "type": "job", "job": "cap", "arguments": {"x": "{{ workflow.input.who }}"}},
        {"name": "last", "type": "set", "value": "{{ both.outputs.one }}", "routes": [{"to": "$end"}]},
    ],
    "parallel": [{"name": "both", "agents": ["one", {"name": "two"}], "routes": [{"to": "each"}]}],
    "for_each": [
        {
            "name": "each",
            "source": "workflow.input.files",
            "as": "item",
            "agent": {"name": "body", "type": "script", "command": "cat", "args": ["{{ item }}"]},
            "max_concurrent": 2,
            "routes": [{"to": "last"}],
        }
    ],
    "output": {"r": "{{ each.count }}"},
}
"""A workflow in which nothing is wrong."""


def checked(text: str) -> tuple[Compiled, list[Mistake]]:
    compiled = compile_text(text)
    if compiled.plan is not None:
        return compiled, check(compiled.plan)
    partial = compiled.partial
    return compiled, [] if partial is None else check(partial.plan, partial=partial)


def messages(document: Any) -> tuple[list[str], list[str]]:
    compiled, more = checked(json.dumps(document))
    assert compiled.plan is None
    return [mistake.message for mistake in compiled.mistakes], [mistake.message for mistake in more]


def test_targets_that_do_not_exist_are_named_beside_mistakes_of_shape(tmp_path: Path) -> None:
    file = tmp_path / "flow.yaml"
    file.write_text(BROKEN)

    found = check_file(str(file), environ={})

    by_path = {mistake.path: mistake for mistake in found.mistakes}
    assert found.plan is None
    assert "agents[0].comand" in by_path
    assert by_path["workflow.entry_point"].hint == "did you mean `start`?"
    assert by_path["start.routes[0].to"].message.endswith("leads to `nowhere`, and no step has that name")
    assert by_path["start.routes[0].to"].line.strip() == "- {to: nowhere}"
    assert by_path["gate.options[0].route"].place is not None
    assert "start.routes[1].to" not in by_path


def test_unknown_names_in_templates_are_told_beside_a_mistake_in_the_same_step() -> None:
    document = deepcopy(SOUND)
    document["agents"][0] |= {
        "timeout": "soon",
        "args": ["{{ ghost.output.x }}", 5, "{{ workflow.input.ghost }}"],
    }

    shape, rest = messages(document)

    assert shape == ["`args` must be text, not a number", "`timeout` must be a duration, not text"]
    assert rest == ["no step is called `ghost`", "the workflow has no input `ghost`"]


def test_a_template_that_cannot_be_parsed_is_told_beside_a_mistake_of_shape() -> None:
    document = deepcopy(SOUND)
    document["agents"][0] |= {"timeout": "soon", "args": ["{{ workflow.input. }}"]}

    assert messages(document)[1] == [
        "`start.args[0]` cannot be read: syntax error on line 1: expected name or number"
    ]


def test_steps_that_nothing_leads_to_are_told_when_no_route_is_in_doubt() -> None:
    document = deepcopy(SOUND)
    document["agents"].append({"name": "island", "type": "set", "value": 1, "outptu": {}})

    assert messages(document)[1] == ["nothing leads to `island`"]


def test_kinds_that_nothing_raises_are_told_beside_a_mistake_in_another_step() -> None:
    document = deepcopy(SOUND)
    document["agents"][0]["routes"][0]["on_error"] = "external.git.faild"
    document["agents"][6]["duration"] = "soon"

    found = messages(document)[1]

    assert "`start` has a route for `external.git.faild`, but raises `external.git.failed`" in found


def test_mistakes_of_a_sub_workflow_are_told_beside_those_of_the_file_that_runs_it(tmp_path: Path) -> None:
    (tmp_path / "child.yaml").write_text(BROKEN)
    (tmp_path / "flow.yaml").write_text(
        "workflow: {name: x, entry_point: a}\n"
        "agents:\n"
        "  - {name: a, type: workflow, workflow: child.yaml, max_depth: 99}\n"
    )

    found = check_file(str(tmp_path / "flow.yaml"), environ={}).mistakes

    assert {Path(mistake.place.file).name for mistake in found if mistake.place} == {
        "child.yaml",
        "flow.yaml",
    }
    assert any("leads to `nowhere`" in mistake.message for mistake in found)


def test_a_missing_include_is_one_mistake(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(
        "workflow: {name: x, entry_point: a}\nagents: !file gone.yaml\noutput: {a: '{{ a.output }}'}\n"
    )

    found = check_file(str(tmp_path / "flow.yaml"), environ={}).mistakes

    assert [mistake.message for mistake in found] == ["`!file`: `gone.yaml` does not exist"]


def test_the_source_of_a_loop_cannot_be_optional() -> None:
    document = deepcopy(SOUND)
    document["for_each"][0]["source"] = "workflow.input.files?"

    shape, rest = messages(document)

    assert [message.partition(",")[0] for message in shape] == [
        "`source` must be a dotted reference to a list"
    ]
    assert rest == []


def _paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    steps: list[Any] = []
    if isinstance(value, dict):
        steps = list(cast("dict[str, Any]", value))
    elif isinstance(value, list):
        steps = list(range(len(cast("list[Any]", value))))
    for step in steps:
        yield (*at, step)
        yield from _paths(value[step], (*at, step))


def _broken(path: tuple[Any, ...], how: str) -> Any:
    document = deepcopy(SOUND)
    holder: Any = document
    for step in path[:-1]:
        holder = holder[step]
    key = path[-1]
    if how == "rename":
        entries = [(f"{name}zz" if name == key else name, value) for name, value in holder.items()]
        holder.clear()
        holder.update(entries)
    elif how == "drop":
        del holder[key]
    else:
        holder[key] = {"null": None, "number": 17, "list": [[1]], "mapping": {"q": {"q": 1}}, "text": "@ @"}[
            how
        ]
    return document


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_one_mistake_of_shape_anywhere_causes_no_further_mistakes(every: int) -> None:
    """Every value is replaced by others, every key renamed or dropped; what is told beyond that would be false."""
    assert checked(json.dumps(SOUND)) == (checked(json.dumps(SOUND))[0], [])
    changes: list[tuple[tuple[Any, ...], str]] = []
    for path in _paths(SOUND):
        ways = ["null", "number", "list", "mapping", "text"]
        # An entry that is taken out of a list is no mistake of shape: what led through it is missing indeed.
        ways += ["rename", "drop"] if isinstance(path[-1], str) else []
        changes += [(path, how) for how in ways]
    broken = 0
    for path, how in changes[::every]:
        compiled, more = checked(json.dumps(_broken(path, how)))
        if compiled.plan is None:
            broken += 1
            assert [mistake.message for mistake in more] == [], (path, how)
    assert broken > 700 // every
