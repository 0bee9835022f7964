"""What an unquoted scalar of a workflow file means."""

import pytest

from failwell.files.mistakes import MistakeLog
from failwell.files.yaml_reader import NotJson, scalar_value
from tests.files.reading import load_text
from tests.specimens import each


@each(
    "text",
    ["yes", "no", "on", "off", "Yes", "y", "2026-11-15", "2026-11-15T10:00:00Z", "0x1f", "0o17", "1:30", "1_000",
     "007", "-01", "1.2.3", "1e", ".", "-", "+", "nil", "none", "None", "tRue", "0.5s", "12 apples", "٣"],
)  # fmt: skip
def test_what_is_no_json_value_stays_text(text: str) -> None:
    assert scalar_value(text) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("False", False), ("null", None), ("~", None), ("", None), ("0", 0), ("-3", -3), ("+4", 4),
     ("1.5", 1.5), (".5", 0.5), ("2.", 2.0), ("1e3", 1000.0), ("-0.0", -0.0), ("9223372036854775807", 2**63 - 1),
     (str(2**200), 2**200)],
)  # fmt: skip
def test_words_and_decimal_numbers_are_values(text: str, value: object) -> None:
    found = scalar_value(text)

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", [".inf", "-.Inf", ".nan", "1e999", "9" * 5000])
def test_a_number_that_json_cannot_carry_is_refused(text: str) -> None:
    with pytest.raises(NotJson):
        scalar_value(text)


@pytest.mark.parametrize("pure", [False, True])
def test_both_parsers_read_the_same_values(pure: bool) -> None:
    text = (
        "a: yes\nb: 'true'\nc: 007\nd: [1, 1.5, ~, x]\ne: |\n  two\n  lines\nf: \"q\\n\"\n? g\n: {h: true}\n"
    )
    log = MistakeLog()

    root = load_text(text, "x.yaml", log, {}, pure=pure).root

    assert root is not None
    assert log.mistakes == []
    assert root.plain() == {
        "a": "yes", "b": "true", "c": "007", "d": [1, 1.5, None, "x"], "e": "two\nlines\n", "f": "q\n",
        "g": {"h": True},
    }  # fmt: skip
