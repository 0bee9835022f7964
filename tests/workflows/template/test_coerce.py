"""Texts that become values."""

from typing import Any

import pytest

from failwell.workflows.template.values import (
    CoercionFailed,
    as_input,
    as_mapped,
    as_output,
    as_set_value,
    duration,
)
from tests.specimens import each


@each(
    ("text", "expected"),
    [
        ("007", 7), ("010", 10), ("yes", "yes"), ("2024-01-01", "2024-01-01"), ("", ""), ("  ", ""), ("true", True),
        ("None", None), ("~", None), ("1.5", 1.5), ("[1, 2]", [1, 2]), ("['a', 'b']", ["a", "b"]), ("{a: 1}", {"a": 1}),
        ("- a\n- b", ["a", "b"]), ("{'a': True}", {"a": True}), ('"q"', "q"), ("a\nb", "a\nb"), ("12345e6", "12345e6"), ("1e-05", 1e-05), ("['nan']", ["nan"]),
        ("when: 2024-01-01", {"when": "2024-01-01"}), ("- !!python/name:os.system x", "- !!python/name:os.system x"),
        ("a: &x 1\nb: *x", "a: &x 1\nb: *x"), ("[1, 2", "[1, 2"),
    ],
)  # fmt: skip
def test_a_set_value_is_read_as_yaml_without_its_surprises(text: str, expected: Any) -> None:
    value = as_set_value(text)

    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [("7", "string", "7"), ("7", "number", 7), ("7.0", "integer", 7), ("yes", "boolean", True), ("0", "boolean", False),
     ("[1]", "list", [1]), ("{a: 1}", "dict", {"a": 1})],
)  # fmt: skip
def test_a_set_value_is_held_to_its_type(text: str, kind: Any, expected: Any) -> None:
    assert as_set_value(text, kind) == expected


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("x", "number"),
        ("true", "number"),
        ("1.5", "integer"),
        ("maybe", "boolean"),
        ("a", "list"),
        ("[1]", "dict"),
    ],
)
def test_a_set_value_of_another_type_is_refused_without_being_quoted(text: str, kind: Any) -> None:
    with pytest.raises(CoercionFailed) as caught:
        as_set_value(f"CANARY {text}" if kind != "number" or text == "x" else text, kind)

    assert "CANARY" not in str(caught.value)


@each(
    ("text", "expected"),
    [("True", True), ("False", False), ("None", None), ("007", "007"), ("+5", "+5"), ("-5", -5), ("1.50", 1.5),
     ('{"a": [1]}', {"a": [1]}), ("[]", []), ('"7"', "7"), ("NaN", "NaN"), ("1e999", "1e999"), ("[NaN]", "[NaN]"), ("12345e6", "12345e6"), ("[1e999]", "[1e999]"),
     ("1e-05", 1e-05), ("1e+16", 1e16), ("1_000", "1_000"), (str(2**200), 2**200),
     (" text ", " text "), ("['a']", "['a']"), ("9" * 5000, "9" * 5000)],
)  # fmt: skip
def test_an_output_is_read_as_json_writes_it(text: str, expected: Any) -> None:
    value = as_output(text)

    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    "text",
    ["nan", "inf", "-inf", "NaN", "Infinity", "-Infinity", ".nan", "-.inf", "1.0e999", "[1, NaN]", "[inf]",
     '{"a": -Infinity}', "{'a': nan}", "[1e999]"],
)  # fmt: skip
def test_a_set_value_that_is_not_finite_is_refused(text: str) -> None:
    with pytest.raises(CoercionFailed, match="not a finite number"):
        as_set_value(text)

    assert as_set_value(text, "string") == text


def test_digits_e_digits_is_a_number_only_where_one_is_declared() -> None:
    assert [as_set_value("12345e6"), as_output("12345e6"), as_input("12345e6"), as_mapped("12345e6")] == [
        "12345e6"
    ] * 4
    assert (as_set_value("12345e6", "number"), as_input("12345e6", "number")) == (12345e6, 12345e6)


def test_an_input_follows_its_declared_type() -> None:
    free = [as_input(text) for text in ("5", "true", "null", '["a"]', "x", "007")]
    declared = [
        as_input("5", "string"),
        as_input("true", "string"),
        as_input("5", "boolean"),
        as_input("x", "number"),
    ]

    assert free == [5, True, None, ["a"], "x", "007"]
    assert declared == ["5", "true", "5", "x"]


def test_a_mapped_value_is_json_where_it_is_json() -> None:
    assert [as_mapped(text) for text in ('{"a": 1}', "3", "True", "x", '"q"', "NaN")] == [
        {"a": 1}, 3, True, "x", "q", "NaN",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        (5, 5.0),
        (0.5, 0.5),
        ("500ms", 0.5),
        ("60s", 60.0),
        ("2.5m", 150.0),
        ("1h", 3600.0),
        ("60", 60.0),
        ("24h", 86400.0),
    ],
)
def test_a_duration_is_seconds(told: object, seconds: float) -> None:
    assert duration(told) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "told", [True, False, None, 0, -1, "0s", "25h", "5 days", "", "1e3", float("nan"), float("inf"), [1]]
)
def test_what_is_no_duration_is_refused(told: object) -> None:
    with pytest.raises(CoercionFailed):
        duration(told)
