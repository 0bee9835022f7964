"""What stops a template that runs away. Several of these end the process if the engine is given them bare."""

import subprocess
import sys
from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.errors.fault import Fault
from failwell.workflows.plan import Template
from failwell.workflows.template.render import SandboxLimit, SandboxTimeout, TemplateFailed, holds, render
from tests.workflows.template.rendering import NamesFrom

NAMES = NamesFrom({"big": "x" * 1_000_000, "rows": list(range(1000))})
DOUBLING = "{% for i in range(60) %}{% set ns.x = OP %}{% endfor %}{{ ns.x | length }}"

MEMORY = {
    "a text that doubles": "{% set ns = namespace(x='aa') %}" + DOUBLING.replace("OP", "ns.x ~ ns.x"),
    "a text that doubles by adding": "{% set ns = namespace(x='aa') %}"
    + DOUBLING.replace("OP", "ns.x + ns.x"),
    "a nest of lists": "{% set ns = namespace(x=[1]) %}"
    + DOUBLING.replace("OP", "[ns.x, ns.x]").replace(" | length", ""),
    "a line of doublings": "{% set x = 'aa' %}" + "{% set x = x ~ x %}" * 60 + "{{ x }}",
    "a macro that doubles": "{% macro m(x) %}{{ m(x ~ x) }}{% endmacro %}{{ m('aa') }}",
    "a block that doubles": "{% set ns = namespace(x='aa') %}"
    "{% for i in range(60) %}{% set ns.x %}{{ ns.x }}{{ ns.x }}{% endset %}{% endfor %}",
    "a large output": "{% for i in range(99999) %}{{ big }}{% endfor %}",
    "an indent": "{{ 'a\nb' | indent(2000000000) }}",
    "a width": "{{ '%2000000000d' | format(1) }}",
    "a batch": "{{ [1] | batch(1000000000, 'x') | list }}",
    "a repeat": "{{ 'a' * 1000000000 }}",
    "a replacement": "{{ big | replace('x', big) }}",
}
DEPTH = {
    "signs": "{{ " + "- " * 50_000 + "1 }}",
    "negations": "{{ " + "not " * 50_000 + "1 }}",
    "a sum": "{{ 1" + "+1" * 30_000 + " }}",
    "brackets": "{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}",
    "branches": "{% if 0 %}" + "{% elif 0 %}" * 20_000 + "{% endif %}",
    "blocks": "{% if 1 %}" * 5_000 + "{% endif %}" * 5_000,
    "a macro that calls itself": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
}


@pytest.mark.acceptance("relavium 67")
@pytest.mark.parametrize("text", [*MEMORY.values(), *DEPTH.values()], ids=[*MEMORY, *DEPTH])
def test_runaway_memory_and_depth_are_fatal(text: str) -> None:
    with pytest.raises(SandboxLimit) as caught:
        render(Template(text=text), NAMES)

    report = describe(caught.value)
    assert (report.kind, report.category, report.retryable) == ("internal.sandbox_error", "fatal", False)


@pytest.mark.acceptance("relavium 67")
def test_an_endless_loop_is_a_timeout_that_is_not_repeated() -> None:
    text = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"

    with pytest.raises(SandboxTimeout) as caught:
        render(Template(text=text), NAMES)

    report = describe(caught.value)
    assert (report.kind, report.category, report.retryable) == ("internal.sandbox_timeout", "fatal", False)


@pytest.mark.acceptance("relavium 67")
@pytest.mark.parametrize(
    "text", ["1 +", "absent > 1", "'a' + 1"], ids=["syntax", "undefined name", "operation"]
)
def test_an_expression_that_cannot_be_evaluated_is_never_repeated(text: str) -> None:
    with pytest.raises(TemplateFailed) as caught:
        holds(Template(text=text), NAMES)

    assert describe(caught.value).retryable is False


@pytest.mark.acceptance("relavium 67")
def test_a_result_that_is_no_json_value_is_fatal() -> None:
    with pytest.raises(SandboxLimit) as caught:
        holds(Template(text="range"), NAMES)

    assert caught.value.kind == "internal.sandbox_error"


@pytest.mark.acceptance("relavium 67")
@pytest.mark.parametrize(
    "text",
    ["{{ range }}", "{{ [len] }}", "{{ {'a': range} | tojson }}", "x {{ dict ~ 'x' }}", "{{ int | string }}",
     "{{ range if dict else 'x' }}", "{% if 1 %}{{ range }}{% endif %}"],
)  # fmt: skip
def test_a_function_that_is_not_called_is_no_value_to_write(text: str) -> None:
    with pytest.raises(SandboxLimit) as caught:
        render(Template(text=text), NAMES)

    assert "is a function" in str(caught.value)


def test_a_value_with_the_name_of_a_function_and_a_test_of_a_function_are_values() -> None:
    names = NamesFrom({"range": "short", "dict": {"a": 1}})

    texts = {
        "{{ range }}": "short",
        "{{ dict.a }} {{ [dict] }}": "1 [{'a': 1}]",
        "{{ len is defined }}": "True",
        "{% set len = 3 %}{{ len }}": "3",
        "{% raw %}{{ len }}{% endraw %}": "{{ len }}",
        "a str and an int, {{ len('abc') }}": "a str and an int, 3",
    }

    assert {text: render(Template(text=text), names) for text in texts} == texts


@pytest.mark.acceptance("relavium 67")
@pytest.mark.parametrize(
    "word", ["interrupted", "engine ran out of fuel", "OutOfFuel", "recursion limit exceeded"]
)
def test_words_in_data_and_source_do_not_decide_the_sort(word: str) -> None:
    names = NamesFrom({"d": {word: word}})

    with pytest.raises(TemplateFailed) as caught:
        render(Template(text="{{ d['" + word + "'] + 1 }}"), names)

    assert describe(caught.value).retryable is False
    assert word not in str(caught.value)


def test_an_expression_longer_than_its_limit_is_refused() -> None:
    with pytest.raises(SandboxLimit):
        holds(Template(text="'" + "a" * 100_000 + "' == big"), NAMES)


def test_the_same_template_over_the_same_data_ends_in_the_same_way() -> None:
    texts = (
        "{% for i in range(99999) %}{{ i }}{% for j in range(99) %}{% endfor %}{% endfor %}",
        MEMORY["a batch"],
    )

    def ending(text: str) -> Any:
        try:
            return render(Template(text=text), NAMES)
        except Fault as fault:
            return type(fault), str(fault)

    assert [ending(text) for text in texts] == [ending(text) for text in texts]


@pytest.mark.slow
def test_the_process_outlives_every_hostile_template() -> None:
    program = (
        "import sys, json\n"
        "from failwell.errors.fault import Fault\n"
        "from tests.workflows.template.rendering import NamesFrom\n"
        "from failwell.workflows.plan import Template\n"
        "from failwell.workflows.template.render import render\n"
        "ended = 0\n"
        "for text in json.load(sys.stdin):\n"
        "    try: render(Template(text=text), NamesFrom({'big': 'x' * 1000000}))\n"
        "    except Fault: ended += 1\n"
        "print(ended)\n"
    )
    import json

    texts = [*MEMORY.values(), *DEPTH.values()]
    done = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(texts), capture_output=True, text=True, check=False,
        env={"PYTHONPATH": "src"}, timeout=50,
    )  # fmt: skip

    assert (done.returncode, done.stdout.strip()) == (0, str(len(texts))), done.stderr[-500:]
