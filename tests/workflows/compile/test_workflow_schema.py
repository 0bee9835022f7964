"""The schema for editors agrees with the checker, because both are made from the same tables."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from failwell.errors.explanations import explanation
from failwell.errors.kind_registry import kinds
from failwell.files.item_tree import is_list, is_map
from failwell.files.mistakes import MistakeLog
from failwell.workflows.compile.json_schema import workflow_schema
from tests.files.reading import load_text
from tests.specimens import each
from tests.workflows.compile.test_compile_whole_files import EVERYTHING
from tests.workflows.compile.writing import HEAD, compiled

VALIDATOR = jsonschema_rs.validator_for(workflow_schema())
OURS = """
workflow: {name: ours, entry_point: a, limits: {on_exceed: pause_for_approval, max_parallel: 3, park_after_seconds: 9}, input: {t: {type: string, secret: true}}}
kinds: {x.y: {category: transient, summary: s}}
agents:
  - {name: a, type: script, command: c, raises: [x.y], env_from: {T: workflow.input.t}, timeout: 5m, retry: {max_attempts: 2, retry_on: [x.y, transient]}, routes: [{on_error: x.y, retry: {max: 2, jitter: 0}}, {on_error: [x.y, internal.script_error], to: b}, {on_error: {category: [transient], prefix: x}, halt: {message: m}}, {on_error: true, propagate: true}, {to: b}]}
  - {name: b, type: human_gate, prompt: p, options: [{label: l, value: v, route: $end, prompt_for: w, multiline: true}], on_reject: fail, reject_values: [v], timeout_seconds: 5, timeout_option: v}
  - {name: c, type: job, job: j, arguments: {a: [1]}, idempotent: true, estimate_usd: 0.1}
  - {name: d, type: tool, tool: t}
  - {name: e, type: questions, questions: [{text: t, choices: [a], default: a}], allow_abort: true, abort_route: a}
  - {name: f, type: set, value: null}
  - {name: g, type: terminate, status: success, reason: r}
  - {name: h, type: workflow, workflow: w, input_mapping: {a: 1}}
  - {name: i, type: notification, emit: x}
  - {name: j, type: mcp, server: s, tool: t}
  - {name: k, type: wait, duration: 1h}
parallel: [{name: p, agents: [a, {name: b, when: "{{ x }}"}], max_concurrent: 3, raises: [x.y]}]
for_each: [{name: q, type: for_each, source: a.b.c, as: x, agent: {name: r, type: for_each, source: x.y.z, as: y, agent: a}}]
"""


def plain(text: str) -> Any:
    root = load_text(text, "x.yaml", MistakeLog(), {}).root
    assert root is not None
    return root.plain()


def accepts(value: Any) -> bool:
    return VALIDATOR.is_valid(value)


def compiles(value: Any) -> bool:
    return compiled(json.dumps(value)).plan is not None


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if is_map(value):
        for key, one in value.items():
            yield from places(one, (*path, key))
    elif is_list(value):
        for index, one in enumerate(value):
            yield from places(one, (*path, index))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


@pytest.mark.parametrize("text", [EVERYTHING, OURS])
def test_the_schema_accepts_what_the_checker_accepts(text: str) -> None:
    value = plain(text)

    assert [error.message for error in VALIDATOR.iter_errors(value)] == []
    assert compiles(value)


def examples() -> list[str]:
    """The examples in YAML of the kinds' explanations."""
    words = [explanation(kind.name) for kind in kinds()]
    return [one.example for one in words if one is not None and one.language == "yaml"]


@each("example", examples())
def test_every_yaml_example_of_the_kinds_has_the_shape_of_a_workflow(example: str) -> None:
    value = {"workflow": {"name": "x", "entry_point": "y"}, **plain(example)}

    assert [(error.message, error.instance_path) for error in VALIDATOR.iter_errors(value)] == []
    assert [mistake.message for mistake in compiled(json.dumps(value)).mistakes] == []


@pytest.mark.parametrize("text", [EVERYTHING, OURS])
def test_both_refuse_an_unknown_key_in_every_closed_block(text: str) -> None:
    value = plain(text)
    open_blocks = {
        "metadata",
        "nested",
        "arguments",
        "payload",
        "input_mapping",
        "values",
        "output",
        "env",
        "headers",
    }
    tried = 0

    for path in places(value):
        if not isinstance(at(value, path), dict) or open_blocks & set(path):
            continue
        if path and path[-1] in (
            "input",
            "kinds",
            "mcp_servers",
            "plugin_sources",
            "pricing",
            "env_from",
            "types",
        ):
            continue
        changed = copy.deepcopy(value)
        at(changed, path)["no_such_key"] = 1
        tried += 1
        assert not accepts(changed), path
        assert not compiles(changed), path

    assert tried > 20


INSTEAD: list[Any] = [None, True, 3, -1, "", "text", [], {}, [[]], {"a": {}}]


@pytest.mark.parametrize("turn", range(3))
@pytest.mark.parametrize("text", [EVERYTHING, OURS])
def test_what_the_schema_refuses_the_checker_refuses_too(text: str, turn: int) -> None:
    value = plain(text)

    for number, path in enumerate(places(value)):
        if not path:
            continue
        instead = INSTEAD[(number * 3 + turn) % len(INSTEAD)]
        changed = copy.deepcopy(value)
        at(changed, path[:-1])[path[-1]] = instead
        if not accepts(changed):
            assert not compiles(changed), (path, instead)


@pytest.mark.parametrize("text", [EVERYTHING, OURS])
def test_what_is_left_out_is_missed_by_both_or_by_neither(text: str) -> None:
    value = plain(text)

    for path in places(value):
        if not path or isinstance(path[-1], int):
            continue
        changed = copy.deepcopy(value)
        del at(changed, path[:-1])[path[-1]]
        if not accepts(changed):
            assert not compiles(changed), path


def test_the_schema_says_what_keys_are_for() -> None:
    schema = workflow_schema()

    assert schema["properties"]["agents"]["description"]
    assert "raises" in schema["$defs"]["step_script"]["properties"]
    assert len(json.dumps(schema)) < 150_000


def test_a_variable_may_stand_for_a_number() -> None:
    value = plain(HEAD + "agents: [{name: work, estimate_usd: '$${X}'}]")

    assert accepts(value)
