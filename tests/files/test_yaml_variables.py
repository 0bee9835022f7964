"""Environment variables in workflow files."""

import pytest

from failwell.files.env_variables import LONGEST, expand
from failwell.files.mistakes import render
from tests.files.reading import read, the_wrong, wrong


@pytest.mark.parametrize(
    ("text", "expected"),
    [("${A}", "1"), ("x${A}y${B}", "x1ytwo"), ("${N:-d}", "d"), ("${A:-d}", "1"), ("${N:-}", ""), ("${N:-${A}}", "1"),
     ("$A", "$A"), ("${}", "${}"), ("${1}", "${1}"), ("${#x[@]}", "${#x[@]}"), ("${x%%.*}", "${x%%.*}"),
     ("$${A}", "${A}"), ("$${A} ${A}", "${A} 1"), ("${DEEP}", "two")],
)  # fmt: skip
def test_a_variable_is_put_in(text: str, expected: str) -> None:
    environ = {"A": "1", "B": "two", "DEEP": "${DEEPER}", "DEEPER": "${B}"}

    assert expand(text, environ).text == expected


def test_a_variable_may_name_further_ones_ten_deep() -> None:
    chain = {f"V{n}": f"${{V{n + 1}}}" for n in range(1, 10)} | {"V10": "end"}

    assert expand("${V1}", chain).text == "end"
    assert "more than 10 deep" in expand("${V0}", chain | {"V0": "${V1}"}).problem


def test_variables_that_name_each_other_do_not_go_on_for_ever() -> None:
    assert expand("${A}", {"A": "${B}", "B": "${A}"}).problem


def test_variables_that_double_each_other_are_stopped() -> None:
    chain = {f"V{n}": f"${{V{n + 1}}}" * 50 for n in range(9)} | {"V9": "x" * 100}

    done = expand("${V0}", chain)

    assert "mebibyte" in done.problem
    assert len(done.text) <= LONGEST


def test_an_unset_variable_is_a_mistake_that_names_it() -> None:
    mistake = the_wrong("a: [x, 'y ${TOKEN}']")

    assert "`TOKEN` is not set" in mistake.message
    assert mistake.kind == "validation.config_invalid"
    assert mistake.path == "a[1]"
    assert "${TOKEN:-…}" in mistake.hint


def test_every_unset_variable_is_named_once() -> None:
    assert [mistake.message for mistake in wrong("a: ${X} ${Y} ${X}")] == [
        "the environment variable `X` is not set",
        "the environment variable `Y` is not set",
    ]


def test_a_default_counts_as_written_and_a_value_does_not() -> None:
    root = read("a: ${X:-d}\nb: ${Y}\n", Y="v")

    assert (root.value["a"].from_env, root.value["b"].from_env) == (False, True)


def test_the_value_of_a_variable_is_in_no_message() -> None:
    text = "a: !file ${SECRET}\nb: !mine ${SECRET}\n"

    shown = render(wrong(text, SECRET="hunter2-value"))

    assert "a: !file ${SECRET}" in shown
    assert "hunter2" not in shown


def test_keys_are_taken_as_they_are_written() -> None:
    assert read("${X}: 1", X="y").plain() == {"${X}": 1}
