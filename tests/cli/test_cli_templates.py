"""Templates through the command: comparisons, steps that never ran, methods, large numbers, and messages that name the culprit."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Done, failwell, failwell_process


def a_file(folder: Path, text: str) -> str:
    path = folder / "flow.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def run(folder: Path, text: str, *arguments: str) -> Done:
    return failwell("run", a_file(folder, text), "-q", "--store", str(folder / "store"), *arguments)


def result(folder: Path, text: str, *arguments: str) -> Any:
    done = run(folder, text, *arguments)
    assert done.code == 0, done.err
    return done.data


ROUTED = """
workflow: {{name: routed, entry_point: a}}
agents:
  - name: a
    type: set
    values: {{score: "'5'", nothing: null, items: [1], rows: [{{n: 1}}, {{n: "'x'"}}]}}
    routes:
      - {{to: wrong, when: {when}}}
      - {{to: wrong}}
      - {{on_error: internal.template_error, to: $end, output: {{why: "{{{{ error.message }}}}"}}}}
  - {{name: wrong, type: set, value: wrong}}
"""


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ("score >= 90", "`>=` between text and number, in `score >= 90`"),
        ("'{{ output.score >= 90 }}'", "`>=` between text and number, in `output.score >= 90`"),
        ("nothing < 1", "`<` between null and number, in `nothing < 1`"),
        ("items > 5", "`>` between list and number, in `items > 5`"),
        ("true and (score > 1 or true)", "`>` between text and number, in `true and (score > 1 or true)`"),
        ("rows | selectattr('n', 'gt', 0) | list", "`>` between text and number"),
        ("rows | map(attribute='n') | max", "`>` between text and number"),
        ("rows | sort(attribute='n')", "`<` between text and number"),
        (
            "'{% if output.score < 1 %}1{% endif %}{{ 0 }}'",
            "`<` between text and number",
        ),
        ("90 in score", "`in` between number and text, in `90 in score`"),
    ],
)
def test_a_comparison_of_different_types_fails_with_both_types_and_chooses_no_route(
    tmp_path: Path, when: str, words: str
) -> None:
    text = when if when.startswith("'{") else f'"{when}"'

    why = result(tmp_path, ROUTED.format(when=text))["why"]

    assert "comparison of different types" in why
    assert words in why


def test_a_comparison_of_different_types_fails_a_member_and_a_retry_route_too(tmp_path: Path) -> None:
    member = """
workflow: {name: member, entry_point: both}
parallel:
  - {name: both, agents: [{name: x, when: "'5' > 3"}, y]}
agents:
  - {name: x, type: set, value: 1}
  - {name: y, type: set, value: 1}
"""
    retried = """
workflow: {name: retried, entry_point: a}
agents:
  - name: a
    type: script
    command: "false"
    routes:
      - {to: $end}
      - {on_error: true, when: "error.message > 3", retry: {max: 2, initial_seconds: 0.01}}
"""

    for text in (member, retried):
        done = run(tmp_path, text)
        assert done.code != 0
        assert "comparison of different types: `>` between text and number" in done.err


def test_values_that_python_orders_are_ordered(tmp_path: Path) -> None:
    text = """
workflow: {name: ordered, entry_point: a}
agents:
  - {name: a, type: set, value: 1}
output:
  truths: "{{ [true > 0, 1 < 2 < 3, 'a' < 'b', [1, 2] < [1, 3], 1 <= 1.0, 2 in [1, 2], 'x' not in 'abc'] | tojson }}"
"""

    assert result(tmp_path, text) == {"truths": [True] * 7}


BRANCHES = """
workflow: {{name: branches, entry_point: a, input: {{go: {{type: string, default: c}}}}}}
agents:
  - name: a
    type: set
    value: 1
    routes: [{{to: b, when: "{{{{ workflow.input.go == 'b' }}}}"}}, {{to: c}}]
  - {{name: b, type: set, values: {{x: from b}}, routes: [{{to: join}}]}}
  - {{name: c, type: set, values: {{x: from c}}, routes: [{{to: join}}]}}
  - {{name: join, type: set, value: "{template}"}}
output: {{r: "{{{{ join.output }}}}"}}
"""


@pytest.mark.parametrize(
    ("template", "without", "with_b"),
    [
        ("{{ b.output | default('none') }}", "none", "{'x': 'from b'}"),
        ("{{ b.output.x | default('none') }}", "none", "from b"),
        ("{{ b | default('none') }}", "none", "{'output': {'x': 'from b'}}"),
        ("{{ b.error.kind | default('none') }}", "none", "none"),
        ("{{ b.output.x | default(c.output.x) }}", "from c", "from b"),
        ("{{ b.output.x if b is defined else c.output.x }}", "from c", "from b"),
        ("{% if b %}{{ b.output.x }}{% else %}{{ c.output.x }}{% endif %}", "from c", "from b"),
        ("{{ b.output.x is defined }}", False, True),
        ("{{ b.output.get('x') | default('none') }}", "none", "from b"),
        ("{{ 'yes' if b and b.output.x == 'from b' else 'no' }}", "no", "yes"),
    ],
)
def test_a_default_and_a_guard_work_for_a_step_that_never_ran_and_validate_agrees(
    tmp_path: Path, template: str, without: Any, with_b: Any
) -> None:
    text = BRANCHES.format(template=template)

    checked = failwell("validate", a_file(tmp_path, text))

    assert (checked.code, checked.out.count("warning")) == (0, 0), checked.out + checked.err
    value = result(tmp_path, text)["r"]
    assert value == without
    assert result(tmp_path, text, "-i", "go=b")["r"] == with_b


def test_without_a_guard_validate_warns_and_the_run_names_the_step(tmp_path: Path) -> None:
    text = BRANCHES.format(template="{{ b.output.x }}")

    checked = failwell("validate", a_file(tmp_path, text))
    done = run(tmp_path, text)

    assert "`b.output` may not exist here" in checked.out + checked.err
    assert done.code == 1
    assert "undefined value: `b.output.x`, because the step `b` has not run" in done.err


def test_a_misspelt_step_is_an_error_also_with_a_default(tmp_path: Path) -> None:
    text = BRANCHES.format(template="{{ joim.output | default('') }}")

    done = run(tmp_path, text)

    assert done.code == 2
    assert "no step is called `joim`" in done.err
    assert "did you mean `join`?" in done.err


LARGE = 2**130 + 1


def test_large_integers_stay_exact_numbers_everywhere(tmp_path: Path) -> None:
    text = f"""
workflow: {{name: large, entry_point: script}}
agents:
  - {{name: script, type: script, command: echo, args: ['{{"n": {LARGE}}}'], routes: [{{to: set}}]}}
  - name: set
    type: set
    values: {{n: "{{{{ script.output.n }}}}", next: "{{{{ script.output.n + 1 }}}}", literal: {LARGE}, list: "{{{{ [script.output.n] | tojson }}}}"}}
    routes:
      - {{to: last, when: "output.n == {LARGE} and output.next > {LARGE} and output.n > 5"}}
  - {{name: last, type: set, value: "{{{{ (set.output.list | first) * 2 }}}}"}}
output:
  n: "{{{{ set.output.n }}}}"
  next: "{{{{ set.output.next }}}}"
  literal: "{{{{ set.output.literal }}}}"
  double: "{{{{ last.output }}}}"
  json: "{{{{ set.output | tojson }}}}"
  small: "{{{{ {2**63} - 1 }}}}"
"""

    value = result(tmp_path, text)

    assert value == {
        "n": LARGE, "next": LARGE + 1, "literal": LARGE, "double": LARGE * 2, "small": 2**63 - 1,
        "json": {"n": LARGE, "next": LARGE + 1, "literal": LARGE, "list": [LARGE]},
    }  # fmt: skip
    stored = failwell("runs", "export", "last", "--store", str(tmp_path / "store")).out
    assert str(LARGE) in stored


METHODS = {
    "'7'.zfill(3)": "007!", "'a'.ljust(3, '.')": "a..!", "'a'.rjust(3, '.')": "..a!", "'v1.2'.removeprefix('v')": "1.2!",
    "'a.txt'.removesuffix('.txt')": "a!", "'k=v'.partition('=') | join(',')": "k,=,v!", "'a-b-c'.rsplit('-', 1) | last": "c!",
    "'%s-%03d' % ('a', 7)": "a-007!", "'{:>4}'.format('x')": "   x!", "'Ab'.swapcase()": "aB!", "'STRASSE'.casefold()": "strasse!",
    "[3, 1].index(1)": "1!", "'x y'.split()[1].upper()": "Y!", "'ab'.startswith(('a', 'b'))": "True!",
}  # fmt: skip


def test_python_methods_that_templates_use_exist(tmp_path: Path) -> None:
    outputs = "\n".join(f'  o{index}: "{{{{ {text} }}}}!"' for index, text in enumerate(METHODS))

    values = result(
        tmp_path,
        f"workflow: {{name: methods, entry_point: a}}\nagents:\n  - {{name: a, type: set, value: 1}}\noutput:\n{outputs}\n",
    )

    assert list(values.values()) == list(METHODS.values())


ONE = """workflow: {{name: one, entry_point: a, input: {{name: {{type: string, default: SECRETVALUE}}}}}}
agents:
  - name: a
    type: script
    command: echo
    args:
      - |
        first line
        {template}
"""


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (
            "{{ a.append(1) }}",
            "`append` would change data, which are read-only in a template; write `LIST + [ITEM]`",
        ),
        ("{{ {}.update(x=1) }}", "`update` would change data"),
        ("{{ 'x'.zfil(3) }}", "unknown function or method: `zfil`; did you mean `zfill`?"),
        ("{{ 'x' | uper }}", "unknown filter: `uper`; did you mean `upper`?"),
        ("{{ [1] | random }}", "unknown filter: `random`; a run must give the same result again"),
        ("{{ 1 is strng }}", "unknown test: `strng`; did you mean `string`?"),
        ("{{ lenn([1]) }}", "unknown function or method: `lenn`; did you mean `len`?"),
        ("{{ workflow.inptu.name }}", "`workflow` has no `inptu`"),
        ("{{ workflow.input.nmae }}", "the workflow has no input `nmae`"),
        ("echo ${#files[@]}", "`{#` begins a comment that is never closed"),
        ("{% if true %}", "`if` is never closed by `endif`"),
        ("{{ 1 + }}", "the end of the tag is not expected"),
    ],
)
def test_validate_names_the_culprit_at_the_line_of_the_file(
    tmp_path: Path, template: str, words: str
) -> None:
    done = failwell("validate", a_file(tmp_path, ONE.format(template=template)))

    assert done.code == 2
    assert words in done.out + done.err
    assert "flow.yaml:9:" in done.out + done.err


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ workflow.input.name + 1 }}", "`+` between text and number, in `workflow.input.name + 1`"),
        (
            "{{ workflow.input.name.first }}",
            "undefined value: `workflow.input.name.first`, as `workflow.input.name` is text",
        ),
        ("{{ 5 | length }}", "of number, in `5 | length`"),
        ("{{ workflow.input.name.foo }}", "undefined value: `workflow.input.name.foo`"),
        ("{{ 1 // 0 }}", "division by zero"),
    ],
)
def test_a_run_names_the_culprit_at_the_line_of_the_file_and_no_value(
    tmp_path: Path, template: str, words: str
) -> None:
    done = run(tmp_path, ONE.format(template=template))

    assert done.code == 1
    assert words in done.err
    assert "flow.yaml:9 failed" in done.err
    assert "SECRETVALUE" not in done.err


def test_a_mistake_in_an_included_file_is_at_its_line_there(tmp_path: Path) -> None:
    (tmp_path / "prompt.md").write_text("one\ntwo\n{{ workflow.name | uper }}\n", encoding="utf-8")
    text = """
workflow: {name: included, entry_point: a}
agents:
  - {name: a, type: script, command: echo, args: [!file prompt.md]}
"""

    done = failwell("validate", a_file(tmp_path, text))

    assert done.code == 2
    assert "prompt.md:3:" in done.err
    assert "unknown filter: `uper`; did you mean `upper`?" in done.err


def test_a_step_that_the_context_mode_hides_is_not_suggested_for_itself(tmp_path: Path) -> None:
    text = """
workflow: {name: hidden, entry_point: a, context: {mode: explicit}}
agents:
  - {name: a, type: set, value: 1, routes: [{to: b}]}
  - {name: b, type: set, value: "{{ a.output }}"}
"""

    done = run(tmp_path, text)

    assert done.code == 1
    assert "undefined value: `a`, which the context mode hides here" in done.err


REFUSED, FATAL = (2, "validation.config_invalid"), (1, "internal.sandbox_error")
MISTAKE, ENDLESS = (1, "internal.template_error"), (1, "internal.sandbox_timeout")
LOOPS = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
DEEP = "(" * 5_000 + "VALUE" + ")" * 5_000
TEMPLATES = {
    "a syntax error": ("{{ VALUE + }}", REFUSED),
    "an undefined name": ("{{ VALUE + absent }}", MISTAKE),
    "runaway memory": ("{{ VALUE * 1000000000 }}", FATAL),
    "deep recursion": ("{% macro m() %}{{ VALUE }}{{ m() }}{% endmacro %}{{ m() }}", FATAL),
    "deep brackets": (f"{{{{ {DEEP} }}}}", REFUSED),
    "a result that is no JSON": ("{{ [range, VALUE] }}", FATAL),
    "an endless loop": (LOOPS + "{{ VALUE }}", ENDLESS),
    "a text that says interrupted": ("{{ {'interrupted': VALUE}['interrupted'] + 1 }}", MISTAKE),
    "a name that says interrupted": ("{{ VALUE[interrupted] }}", MISTAKE),
}
CONDITIONS = {
    "a syntax error": ("VALUE +", REFUSED),
    "an undefined name": ("VALUE == absent", MISTAKE),
    "runaway memory": ("VALUE * 1000000000 == 1", FATAL),
    "deep brackets": (DEEP, REFUSED),
    "a result that is no JSON": ("range", FATAL),
    "a rendered result that is no JSON": ("{{ range }}", FATAL),
    "an endless loop": (LOOPS + "{{ VALUE }}", ENDLESS),
    "a text that says interrupted": ("VALUE + 'interrupted' > 1", MISTAKE),
}
SLOW = {"deep recursion", "a result that is no JSON", "a rendered result that is no JSON"}
"""What starts a process of its own, beside others that do."""
SECRET_STEP = """
workflow: {{name: w, entry_point: a}}
agents:
  - {{name: a, type: set, values: {{v: "'k4n4ry'"}}, routes: [{{to: b}}]}}
  - {{name: b, type: set, {keys}, retry: {{max_attempts: 3, delay_seconds: 0}}}}
"""


def cases(table: dict[str, tuple[str, tuple[int, str]]]) -> list[Any]:
    return [
        pytest.param(*row, id=name, marks=[pytest.mark.slow] if name in SLOW else [])
        for name, row in table.items()
    ]


@pytest.mark.acceptance("relavium 67")
@pytest.mark.parametrize(("template", "end"), cases(TEMPLATES))
def test_a_template_that_cannot_be_evaluated_ends_the_run_for_good_and_shows_no_value(
    tmp_path: Path, template: str, end: tuple[int, str]
) -> None:
    _ends_for_good(tmp_path, f"values: {{x: {json.dumps(template)}}}", end)


@pytest.mark.acceptance("relavium 67")
@pytest.mark.parametrize(("condition", "end"), cases(CONDITIONS))
def test_a_condition_that_cannot_be_evaluated_ends_the_run_for_good_and_chooses_no_route(
    tmp_path: Path, condition: str, end: tuple[int, str]
) -> None:
    route = f"{{to: $end, when: {json.dumps(condition)}, output: {{x: chosen}}}}"

    done = _ends_for_good(tmp_path, f"value: 1, routes: [{route}, {{to: $end}}]", end)

    assert "chosen" not in done.out


def _ends_for_good(folder: Path, keys: str, end: tuple[int, str]) -> Done:
    """Run a step with these keys, and see that it ends so, once, and without a value."""
    file = a_file(folder, SECRET_STEP.format(keys=keys.replace("VALUE", "a.output.v")))
    store = ("--store", str(folder / "store"))

    # What may take the process along has one of its own.
    command = failwell_process if end in (FATAL, ENDLESS) else failwell
    done = command("run", file, "-q", "--error-format", "json", "--run-id", "r", *store)

    assert (done.code, done.error["kind"]) == end, done.err
    assert done.error.get("retryable", False) is False
    assert "k4n4ry" not in done.out + done.err
    exported = failwell("runs", "export", "r", *store).out.splitlines()
    events = [json.loads(line) for line in exported]
    if end != REFUSED:
        assert [event["type"] for event in events if event["type"] in ("node:retrying", "run:failed")] == [
            "run:failed"
        ]
        failure = events[-1]["data"]["failure"]
        assert failure["report"]["retryable"] is False
        assert "k4n4ry" not in json.dumps(failure)
    else:
        assert events == []
    return done
