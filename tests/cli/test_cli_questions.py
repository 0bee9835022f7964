"""`questions` steps through the command: listed, answered from elsewhere, and answered at a terminal."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Done, failwell, failwell_at_terminal

COMPUTED = """
workflow: {name: flow, entry_point: plan}
agents:
  - name: plan
    type: set
    values: {open: '["Why?", {"question": "Which?", "choices": ["A", "B"]}, {"id": "when", "text": "When?", "required": true}]'}
    routes: [{to: ask}]
  - {name: ask, type: questions, source: plan.output.open, prompt: Some questions}
output: {ask: "{{ ask.output | tojson }}"}
"""


class Place:
    """A folder with one workflow and a store."""

    def __init__(self, folder: Path, text: str) -> None:
        self.file = folder / "flow.yaml"
        self.file.write_text(text, encoding="utf-8")
        self.store = str(folder / "store")

    def run(self, *arguments: str) -> Done:
        return failwell("run", str(self.file), "--store", self.store, "--run-id", "r", "-q", *arguments)

    def answer(self, value: str, **answers: Any) -> Done:
        payload = json.dumps(answers)
        return failwell("gates", "answer", "r", "ask", value, "--payload", payload, "--store", self.store)

    def result(self) -> Any:
        return failwell("resume", "r", "--store", self.store, "-q").data["ask"]


def with_questions(step: str) -> str:
    return (
        "workflow: {name: flow, entry_point: ask}\n"
        f"agents: [{{name: ask, type: questions, {step}}}]\n"
        'output: {ask: "{{ ask.output | tojson }}"}\n'
    )


def test_computed_questions_are_listed_and_answered(tmp_path: Path) -> None:
    place = Place(tmp_path, COMPUTED)
    waiting = place.run()
    listed = failwell("gates", "list", "--store", place.store)

    place.answer("answered", q1="because", q2="B", when="now")

    assert waiting.code == 4
    assert listed.out.splitlines() == [
        "r  ask  Some questions  [answered | skipped]",
        "  q1: Why?",
        "  q2: Which?  [A | B]",
        "  when: When?  (required)",
    ]
    output = place.result()
    assert output["answers"] == {"q1": "because", "q2": "B", "when": "now"}
    assert [item["source"] for item in output["items"]] == ["free_text", "choice", "free_text"]
    assert (output["outcome"], output["answered_any"], output["skipped_count"]) == ("completed", True, 0)
    assert output["transcript"] == "Q1. Why?\nA: because\n\nQ2. Which?\nA: B\n\nQ3. When?\nA: now"


def test_a_required_question_cannot_be_skipped(tmp_path: Path) -> None:
    place = Place(tmp_path, COMPUTED)
    place.run()

    alone = place.answer("answered", q1="because", when="  ")
    rest = place.answer("skipped", q1="because")
    place.answer("skipped", when="now")

    assert (alone.code, rest.code) == (2, 2)
    assert "`when` must be answered" in alone.err
    assert "`when` must be answered" in rest.err
    output = place.result()
    assert (output["outcome"], output["answered_count"], output["skipped_count"]) == (
        "skipped_remaining",
        1,
        2,
    )


def test_an_answer_to_no_question_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path, COMPUTED)
    place.run()

    refused = place.answer("answered", q1="because", whne="now")

    assert refused.code == 2
    assert "there is no question `whne`; the questions are q1, q2, when" in refused.err


@pytest.mark.parametrize(
    ("step", "value", "message"),
    [
        ("allow_skip: false, questions: [{text: A?}]", "answered", "`q1` must be answered"),
        ("allow_skip_all: false, questions: [{text: A?}]", "skipped", "`skipped` is not an answer"),
        ("questions: [{text: A?}]", "aborted", "`aborted` is not an answer"),
    ],
)
def test_what_a_step_does_not_allow_is_refused(tmp_path: Path, step: str, value: str, message: str) -> None:
    place = Place(tmp_path, with_questions(step))
    place.run()

    refused = place.answer(value)

    assert refused.code == 2
    assert message in refused.err


def test_an_odd_computed_question_is_a_failure_that_names_it(tmp_path: Path) -> None:
    place = Place(tmp_path, COMPUTED.replace('"Why?"', '{"choices": "A"}'))

    done = place.run()

    assert done.code == 1
    assert "question 1 of `ask` needs" in done.err


def at_a_terminal(place: Place, *lines: str) -> tuple[int, Any, str]:
    """Run the workflow at a terminal, type these lines, and return the exit code, the result and the screen."""
    typed = "".join(f"{line}\n" for line in lines)
    done = failwell_at_terminal(
        "run", str(place.file), "--store", place.store, "-q", typed=typed, env={"NO_COLOR": "1"}
    )
    return done.code, done.data["ask"] if done.out else None, done.err


def test_a_person_can_go_back_and_revise(tmp_path: Path) -> None:
    place = Place(
        tmp_path,
        with_questions("questions: [{text: A?}, {text: B?, choices: [x, y]}, {text: C?, default: d}]"),
    )

    code, output, screen = at_a_terminal(place, "one", ":back", "two", "2", "", ":back", ":back", "1", "", "")

    assert code == 0
    assert output["answers"] == {"q1": "two", "q2": "x", "q3": "d"}
    assert output["outcome"] == "completed"
    assert "`:back` returns to the previous one" in screen


def test_a_person_can_skip_the_rest(tmp_path: Path) -> None:
    place = Place(tmp_path, with_questions("questions: [{text: A?}, {text: B?, required: true}, {text: C?}]"))

    code, output, screen = at_a_terminal(place, "one", ":skip", "two", ":skip")

    assert code == 0
    assert "these need an answer: q2" in screen
    assert output["answers"] == {"q1": "one", "q2": "two"}
    assert output["outcome"] == "skipped_remaining"


def test_a_person_can_leave_where_that_is_allowed(tmp_path: Path) -> None:
    place = Place(
        tmp_path, with_questions("allow_abort: true, allow_back: false, questions: [{text: A?}, {text: B?}]")
    )

    code, output, screen = at_a_terminal(place, "one", ":abort")

    assert (code, output["outcome"], output["answers"]) == (0, "aborted", {"q1": "one"})
    assert ":back" not in screen


def test_a_word_that_a_step_does_not_allow_is_not_taken_for_an_answer(tmp_path: Path) -> None:
    place = Place(
        tmp_path,
        with_questions("allow_back: false, allow_skip_all: false, questions: [{text: A?}, {text: B?}]"),
    )

    code, output, screen = at_a_terminal(place, ":skip", "one", ":back", ":abort", "two")

    assert (code, output["answers"]) == (0, {"q1": "one", "q2": "two"})
    assert output["outcome"] == "completed"
    for word in (":skip", ":back", ":abort"):
        assert f"`{word}` is not possible here" in screen


def test_without_a_way_back_the_last_answer_is_the_end(tmp_path: Path) -> None:
    place = Place(
        tmp_path, with_questions("allow_back: false, allow_skip: false, questions: [{text: A?}, {text: B?}]")
    )

    code, output, screen = at_a_terminal(place, "one", "", "two")

    assert (code, output["answers"]) == (0, {"q1": "one", "q2": "two"})
    assert "this needs an answer" in screen
