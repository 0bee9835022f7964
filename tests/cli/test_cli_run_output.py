"""JSON that scripts print: what cannot be recorded is a failure that routes take, and never text or a crash."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Done, failwell

LIMIT = 1_048_576


def run(folder: Path, code: str, *, step: dict[str, Any] | None = None, output: Any = None) -> Done:
    """Run one Python script; a route takes every failure and gives its kind and message."""
    (folder / "print.py").write_text(code)
    document = {
        "workflow": {"name": "flow", "entry_point": "a"},
        "agents": [
            {
                "name": "a", "type": "script", "command": sys.executable, "args": [str(folder / "print.py")],
                "routes": [{"to": "$end"}], **(step or {}),
            },
            {"name": "b", "type": "set", "output_type": "string", "value": "{{ a.error.kind }} | {{ a.error.message }}"},
        ],
        "output": output or {"x": "{{ a.output.x | default('') }}", "text": "{{ a.output.stdout }}"},
    }  # fmt: skip
    (folder / "flow.yaml").write_text(json.dumps(document))
    return failwell(
        "run", str(folder / "flow.yaml"), "-q", "--format", "json", "--store", str(folder / "store")
    )


def caught(folder: Path, code: str, **step: Any) -> str:
    """What the route that takes every failure says about it."""
    routes = [{"on_error": True, "to": "b"}, {"to": "$end"}]
    done = run(
        folder, code, step={"routes": routes, **step}, output={"failure": "{{ b.output | default('none') }}"}
    )
    assert done.code == 0, done.err
    return done.data["failure"]


@pytest.mark.parametrize(
    ("printed", "named"),
    [
        ('{"x": NaN}', "NaN"),
        ('{"x": [1, {"y": Infinity}]}', "Infinity"),
        ('{"x": -Infinity}', "-Infinity"),
        ('{"x": 1e999}', "1e999"),
        ('{"x": -2.5E+400}', "-2.5E+400"),
        ('{"x": 1' + "0" * 400 + ".0}", "1000000000"),
        ('{"x": 1' + "0" * 5000 + "}", "4300 digits"),
        ('{"x": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    ],
    ids=["nan", "infinity", "minus", "exponent", "negative", "fraction", "integer", "depth"],
)
def test_json_that_cannot_be_recorded_is_a_failure_that_names_it(
    tmp_path: Path, printed: str, named: str
) -> None:
    (tmp_path / "printed").write_text(printed)
    code = f"print(open({str(tmp_path / 'printed')!r}).read())"

    failure = caught(tmp_path, code)
    done = run(tmp_path, code)

    assert failure.startswith("internal.schema_violation | ")
    assert named in failure
    assert "write" in failure
    error = done.error
    assert (done.code, error["kind"], error["error_type"]) == (
        1,
        "internal.schema_violation",
        "ExecutionError",
    )
    assert named in error["message"]


def test_no_depth_between_what_is_read_and_what_is_written_crashes(tmp_path: Path) -> None:
    for depth in (50, 90, 400, 800, 880, 900, 920, 940, 960, 980, 1_000, 1_200):
        (tmp_path / "printed").write_text('{"x": ' + "[" * depth + "]" * depth + "}")

        done = run(tmp_path, f"print(open({str(tmp_path / 'printed')!r}).read())", output={"done": "1"})

        assert "internal.bug" not in done.err, depth
        assert done.code == 0 or "nested too deeply" in done.err, depth


def test_an_object_beyond_the_limit_is_a_failure_that_says_how_to_raise_it(tmp_path: Path) -> None:
    code = "import json; print(json.dumps({'x': 'y' * 2_000_000}))"

    failure = caught(tmp_path, code)
    raised = run(tmp_path, code, step={"output_limit": 2_000_010}, output={"n": "{{ a.output.x | length }}"})

    assert failure == (
        "internal.schema_violation | script 'a' output failed schema validation: stdout has 2,000,010 bytes, more than"
        f" its limit of {LIMIT:,}; print less, or set `output_limit: 2000010` or more on the step"
    )
    assert (raised.code, raised.data) == (0, {"n": 2_000_000})


def test_a_declared_output_beyond_the_limit_fails_in_the_same_words(tmp_path: Path) -> None:
    schema = {"output": {"x": {"type": "array"}}}

    failure = caught(
        tmp_path, "import json; print(json.dumps({'x': list(range(9))}))", output_limit=10, **schema
    )

    assert "stdout has 35 bytes, more than its limit of 10" in failure


@pytest.mark.parametrize(
    "code",
    [
        "print('{not json' + 'x' * 2_000_000 + '}')",
        "[print('{\"line\": %d}' % n) for n in range(200_000)]",
        "print('x' * 2_000_000)",
        "print('{\"a\": NaN, b}')",
        "print('[NaN]')",
    ],
    ids=["braces", "json lines", "text", "no json", "list"],
)
def test_what_is_not_one_object_stays_text_as_before(tmp_path: Path, code: str) -> None:
    done = run(tmp_path, code, output={"n": "{{ a.output.stdout | length }}"})

    assert (done.code, done.err) == (0, "")
    assert done.data["n"] > 5


def test_a_failure_that_the_script_raised_itself_comes_before_its_output(tmp_path: Path) -> None:
    code = (
        "import os; print('{\"x\": NaN}')\n"
        'open(os.environ[\'FAILWELL_ERROR_OUT\'], \'w\').write(\'{"kind": "external.x", "message": "mine"}\')'
    )

    assert caught(tmp_path, code) == "external.x | mine"


@pytest.mark.parametrize(
    "value", ["1e999", "{{ '1e' ~ '999' }}", '{"a": 1e999}', "[NaN]", "{{ '[-Infinity]' }}"], ids=str
)
@pytest.mark.parametrize("places", [{"value": "VALUE"}, {"values": {"x": "VALUE"}}], ids=["value", "values"])
def test_a_set_step_refuses_numbers_that_cannot_be_recorded_and_routes_take_it(
    tmp_path: Path, value: str, places: dict[str, Any]
) -> None:
    document = {
        "workflow": {"name": "flow", "entry_point": "a"},
        "agents": [
            {
                "name": "a", "type": "set", **json.loads(json.dumps(places).replace('"VALUE"', json.dumps(value))),
                "routes": [{"on_error": True, "to": "b"}, {"to": "$end"}],
            },
            {"name": "b", "type": "set", "output_type": "string", "value": "{{ a.error.kind }} | {{ a.error.message }}"},
        ],
        "output": {"failure": "{{ b.output | default('none') }}"},
    }  # fmt: skip
    (tmp_path / "flow.yaml").write_text(json.dumps(document))

    done = failwell("run", str(tmp_path / "flow.yaml"), "-q", "--store", str(tmp_path / "store"))

    assert done.code == 0, done.err
    assert done.data["failure"].startswith("internal.template_error | ")
    assert "finite number" in done.data["failure"]


def test_no_text_that_becomes_a_value_holds_an_infinite_number(tmp_path: Path) -> None:
    (tmp_path / "inner.yaml").write_text(
        "workflow: {name: inner, entry_point: x, input: {v: {type: string}}}\n"
        "agents: [{name: x, type: set, value: '1'}]\noutput: {v: '{{ workflow.input.v }}'}\n"
    )
    (tmp_path / "flow.yaml").write_text(
        "workflow: {name: flow, entry_point: a, input: {v: {type: string, default: '{\"a\": 1e999}'}}}\n"
        "agents:\n"
        "  - name: a\n"
        "    type: workflow\n"
        "    workflow: inner.yaml\n"
        "    input_mapping: {v: '{{ workflow.input.v }}'}\n"
        "    routes: [{to: $end, output: {o: '{{ workflow.input.v }}', i: '{{ a.output.v }}'}}]\n"
    )
    store = ("--store", str(tmp_path / "store"))

    done = failwell("run", str(tmp_path / "flow.yaml"), "-q", *store)
    asked = failwell("run", str(tmp_path / "flow.yaml"), "-q", "-i", "v=[1e999]", *store)

    assert (done.code, done.data) == (0, {"o": '{"a": 1e999}', "i": '{"a": 1e999}'}), done.err
    assert (asked.code, asked.data) == (0, {"o": "[1e999]", "i": "[1e999]"}), asked.err
