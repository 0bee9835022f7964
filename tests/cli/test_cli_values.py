"""Values in workflows, through the command: keys of items, iterations, retry counters, numbers, text outputs."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Done, failwell


def run(folder: Path, text: str, *arguments: str) -> Done:
    path = folder / "flow.yaml"
    path.write_text(text, encoding="utf-8")
    return failwell("run", str(path), "-q", "--store", str(folder / "store"), *arguments)


def result(folder: Path, text: str, *arguments: str) -> Any:
    done = run(folder, text, *arguments)
    assert done.code == 0, done.err
    return done.data


KEYED = """
workflow: {{name: keyed, entry_point: list}}
agents:
  - name: list
    type: set
    values: {{items: {items}}}
    routes: [{{to: fan}}]
for_each:
  - name: fan
    type: for_each
    source: list.output.items
    as: it
    key_by: {key}
    agent: {{name: item, type: set, value: "{{{{ _key }}}}!"}}
output: {{keys: "{{{{ fan.outputs | tojson }}}}"}}
"""


@pytest.mark.parametrize("key", ["id", "it.id"])
def test_a_key_is_named_with_or_without_the_loop_variable(tmp_path: Path, key: str) -> None:
    keys = result(tmp_path, KEYED.format(items="[{id: a}, {id: b}]", key=key))

    assert keys == {"keys": {"a": "a!", "b": "b!"}}


def test_an_item_without_the_key_has_its_position(tmp_path: Path) -> None:
    keys = result(tmp_path, KEYED.format(items="[{id: a}, {other: b}]", key="it.id"))

    assert keys == {"keys": {"a": "a!", "1": "1!"}}


def test_a_key_that_no_item_has_is_an_error_that_names_it(tmp_path: Path) -> None:
    done = run(tmp_path, KEYED.format(items="[{ident: a}, {ident: b}]", key="it.idnt"))

    assert done.code == 1
    assert "no item of `fan` has `idnt`, which its `key_by` names; did you mean `ident`?" in done.err


def test_the_iteration_is_the_number_of_steps_that_have_ended(tmp_path: Path) -> None:
    loop = """
workflow: {name: loop, entry_point: first}
agents:
  - {name: first, type: set, value: "{{ context.iteration }}", routes: [{to: again}]}
  - name: again
    type: set
    values: {i: "{{ context.iteration }}", h: "{{ context.history | join(' ') }}"}
    routes:
      - {to: again, when: "{{ context.iteration < 4 }}"}
      - {to: $end, output: {first: "{{ first.output }}", i: "{{ output.i }}", h: "{{ output.h }}", n: "{{ context.iteration }}"}}
"""

    assert result(tmp_path, loop) == {"first": 0, "i": 3, "h": "first again again", "n": 4}


def test_each_retry_route_has_its_own_counter(tmp_path: Path) -> None:
    script = tmp_path / "fails.sh"
    script.write_text(
        "n=$FAILWELL_RETRY_ATTEMPT; kind=x.first\n"
        '[ "$n" -lt 2 ] || kind=x.second\n'
        '[ "$n" -lt 4 ] || exit 0\n'
        """printf '{"kind": "%s", "message": "no"}' $kind > $FAILWELL_ERROR_OUT\n""",
        encoding="utf-8",
    )
    flow = f"""
workflow: {{name: counters, entry_point: a}}
agents:
  - name: a
    type: script
    command: sh
    args: [{script}]
    raises: [x.first, x.second]
    routes:
      - {{to: $end}}
      - {{on_error: x.first, retry: {{max: 2, initial_seconds: 0.01, jitter: 0}}}}
      - {{on_error: x.second, retry: {{max: 2, initial_seconds: 0.01, jitter: 0}}}}
output: {{code: "{{{{ a.output.exit_code }}}}"}}
"""

    assert result(tmp_path, flow) == {"code": 0}


@pytest.mark.parametrize("value", ['"{{ 1e308 * 10 }}"', '"NaN"', '"{{ [1e308 * 10] }}"'])
def test_a_set_value_that_is_not_finite_is_a_typed_error_that_a_route_takes(
    tmp_path: Path, value: str
) -> None:
    flow = f"""
workflow: {{name: finite, entry_point: a}}
agents:
  - name: a
    type: set
    value: {value}
    routes:
      - {{to: $end}}
      - {{on_error: internal.template_error, to: $end, output: {{why: "{{{{ error.message }}}}"}}}}
"""

    assert "not a finite number" in result(tmp_path, flow)["why"]


NUMBERS = {
    "12345e6": "12345e6", "1.5e3": 1500.0, "1e-05": 1e-05, "0123": "0123", "1_000": "1_000", "NaN": "NaN", "true": True,
    "True": True, "yes": "yes", "null": None, "None": None, "5": 5, "-5": -5, "+5": "+5", "5.0": 5.0, ".5": ".5",
    str(2**64 + 1): 2**64 + 1, str(2**130 + 1): 2**130 + 1, '"5"': "5", "[1, 2]": [1, 2], "2024-01-02": "2024-01-02",
}  # fmt: skip


def test_the_text_of_a_script_becomes_a_value_by_the_table_of_the_guide(tmp_path: Path) -> None:
    for index, text in enumerate(NUMBERS):
        (tmp_path / f"{index}.txt").write_text(text, encoding="utf-8")
    steps = "\n".join(
        f"  - {{name: s{index}, type: script, command: cat, args: [{tmp_path}/{index}.txt], routes: [{{to: s{index + 1}}}]}}"
        for index in range(len(NUMBERS))
    )
    outputs = "\n".join(f'  s{index}: "{{{{ s{index}.output.stdout }}}}"' for index in range(len(NUMBERS)))

    values = result(
        tmp_path,
        "workflow: {name: numbers, entry_point: s0}\nagents:\n"
        f"{steps}\n  - {{name: s{len(NUMBERS)}, type: set, value: 1}}\noutput:\n{outputs}\n",
    )

    assert json.dumps(list(values.values())) == json.dumps(list(NUMBERS.values()))


def test_without_an_output_block_the_result_is_the_output_of_the_last_step(tmp_path: Path) -> None:
    text = "workflow: {name: bare, entry_point: a}\nagents:\n  - {name: a, type: set, value: %s}\n"

    assert result(tmp_path, text % '"12345e6"') == {"result": "12345e6"}
    assert result(tmp_path, text % "{b: 1}") == {"b": 1}


def test_a_template_that_takes_too_many_steps_is_not_retried(tmp_path: Path) -> None:
    flow = """
workflow: {name: steps, entry_point: a}
agents:
  - name: a
    type: script
    command: echo
    args: ["{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"]
    retry: {max_attempts: 3, delay_seconds: 0.01, retry_on: [transient]}
"""
    done = run(tmp_path, flow, "--error-format", "json")

    assert done.code == 1
    assert done.error["kind"] == "internal.sandbox_timeout"
    assert "fatal" in json.dumps(done.error)
    events = failwell("runs", "export", "last", "--store", str(tmp_path / "store")).out
    assert "node:retrying" not in events
