"""A defect of the machine itself, at every place where one can be: the run is closed, recorded and resumable."""

import json
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from inspect import CO_GENERATOR
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import failwell.workflows.machine as machine_package
from failwell.workflows.machine.advance import Machine
from tests.cli.running import Done, failwell

MACHINE = str(Path(machine_package.__file__).parent)
FLOW = """
workflow: {name: flow, entry_point: first, input: {items: {type: array, default: [1, 2]}}}
agents:
  - {name: first, type: set, value: "1", routes: [{to: flaky, when: "first.output == 1"}]}
  - name: flaky
    type: script
    command: sh
    args: ["-c", "test $FAILWELL_RETRY_ATTEMPT = 1"]
    raises: [external.x]
    routes:
      - {on_error: internal.script_error, retry: {max: 2, initial_seconds: 0.001, jitter: 0}}
      - {on_error: true, to: wrong}
      - {to: group}
  - {name: left, type: set, value: a}
  - {name: right, type: set, value: b}
  - {name: pause, type: wait, duration: 1ms, routes: [{to: inner}, {on_error: true, to: wrong}]}
  - {name: inner, type: workflow, workflow: inner.yaml, routes: [{to: ask}, {on_error: true, to: wrong}]}
  - name: ask
    type: human_gate
    prompt: Go on?
    options: [{label: "yes", value: "yes", route: failing}]
  - name: failing
    type: set
    value: "{{ 1 // 0 }}"
    routes: [{on_error: true, to: last}]
  - {name: last, type: set, value: "{{ failing.error.kind }}", routes: [{to: $end}, {on_error: true, to: wrong}]}
  - {name: wrong, type: set, value: wrong, routes: [{to: $end}]}
parallel:
  - {name: group, agents: [left, right], routes: [{to: loop}, {on_error: true, to: wrong}]}
for_each:
  - name: loop
    type: for_each
    source: workflow.input.items
    as: item
    agent: {name: body, type: set, value: "{{ item }}"}
    routes: [{to: pause}, {on_error: true, to: wrong}]
output:
  kind: "{{ last.output }}"
  items: "{{ loop.outputs }}"
  inner: "{{ inner.output.x }}"
"""
INNER = """
workflow: {name: inner, entry_point: x}
agents: [{name: x, type: set, value: "7"}]
output: {x: "{{ x.output }}"}
"""
RESULT = {"kind": "internal.template_error", "items": [1, 2], "inner": 7}


class Defect(Exception):
    """Nothing that the machine expects."""


class Injector:
    """Counts the functions of the machine that `advance` enters; raises when one is entered for the n-th time."""

    def __init__(self, function: CodeType | None = None, number: int = 0) -> None:
        self.entered: Counter[CodeType] = Counter()
        self.has_raised = False
        self._function, self._number = function, number
        self._depth = 0

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if code is Machine.advance.__code__:
            self._depth += {"call": 1, "return": -1}.get(event, 0)
        if event != "call" or not self._depth or not code.co_filename.startswith(MACHINE):
            return
        if code.co_flags & CO_GENERATOR:
            # What a generator raises while it is closed is lost.
            return
        self.entered[code] += 1
        if code is self._function and self.entered[code] == self._number:
            self._depth = 0
            self.has_raised = True
            raise Defect


@contextmanager
def injected(injector: Injector) -> Generator[None]:
    before = sys.getprofile()
    sys.setprofile(injector)
    try:
        yield
    finally:
        sys.setprofile(before)


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "inner.yaml").write_text(INNER)
    path = tmp_path / "flow.yaml"
    path.write_text(FLOW)
    return str(path)


def the_end(done: Done, store: Path, run: str) -> tuple[int, dict[str, Any], list[Any]]:
    """The exit code, the recorded run, and what its errors file holds."""
    shown = failwell("runs", "show", run, "--format", "json", "--store", str(store)).data
    errors = store / "runs" / run / "errors.jsonl"
    lines = [json.loads(line) for line in errors.read_text().splitlines()] if errors.exists() else []
    return done.code, shown, lines


@pytest.mark.timeout(600)
@pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
def test_a_defect_at_any_transition_leaves_a_closed_recorded_and_resumable_run(
    tmp_path: Path, file: str, step: int
) -> None:
    store = tmp_path / "store"
    arguments = ("--skip-gates", "-q", "--store", str(store))
    counting = Injector()
    with injected(counting):
        assert failwell("run", file, "--run-id", "whole", *arguments).data == RESULT
    points = [
        (function, number)
        for function, count in counting.entered.items()
        for number in sorted({1, count // 2 + 1, count})
    ]
    assert len(counting.entered) > 90

    for index, (function, number) in enumerate(points[::step]):
        place = f"{function.co_qualname}, entry {number}"
        run = f"r{index}"
        injector = Injector(function, number)
        with injected(injector):
            done = failwell("run", file, "--run-id", run, *arguments)
        if not injector.has_raised:
            # A batch of events may be handled in another number of turns.
            assert done.code == 0, place
            continue

        code, shown, lines = the_end(done, store, run)
        assert (code, shown["status"]) == (1, "failed"), (place, done.err)
        assert shown["failure"]["kind"] == "internal.bug", place
        assert "wrong" not in json.dumps(shown.get("outputs", "")), place
        (line,) = lines
        assert line["envelope"]["kind"] == "internal.bug", place
        assert line["report"]["causes"][0]["type"] == "Defect", (place, line)
        assert "resume:" in done.err, place
        again = failwell("resume", run, *arguments)
        assert (again.code, again.out and again.data) == (0, RESULT), (place, again.err)
