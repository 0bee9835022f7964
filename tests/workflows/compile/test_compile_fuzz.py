"""No text can make the reading of a file crash, hang or leak: it yields a plan, or mistakes."""

import copy
import json
import random
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwell.files.mistakes import render, to_json, to_markdown
from failwell.workflows.compile.compiler import Compiled
from tests.specimens import each
from tests.workflows.compile.test_compile_whole_files import EVERYTHING
from tests.workflows.compile.test_workflow_schema import OURS, at, places, plain
from tests.workflows.compile.writing import compile_text

SECRET = "hunter2-canary-value"
PIECES = [
    "workflow:", "agents:", "- ", "name: a\n", "  ", "\n", "{", "}", "[", "]", ",", ": ", "&a ", "*a", "!file x", "!!int ",
    "<<: ", "'", '"', "|\n", ">\n", "#", "---\n", "...\n", "? ", "%YAML 9.9\n", "\t", "${X}", "${Y:-z}", "on_error: ",
    "true", "~", ".inf", "1e99999", "\u2028", "\x85", "\ufeff", "é", "\x00", "\ud800", "0" * 50, "routes:", "type: script",
]  # fmt: skip


def readable(done: Compiled) -> Compiled:
    """A result that keeps every promise of a result."""
    shown = render(done.mistakes)
    to_json(done.mistakes)
    to_markdown(done.mistakes)
    errors = [mistake for mistake in done.mistakes if mistake.is_error]
    assert (done.plan is None) == bool(errors)
    assert all(mistake.kind.startswith("validation.") for mistake in errors)
    assert all(mistake.message for mistake in done.mistakes)
    assert SECRET not in shown
    assert len(done.mistakes) <= 201
    return done


def read(text: str) -> Compiled:
    return readable(compile_text(text, environ={"X": SECRET, "OPENAI_API_KEY": SECRET}))


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_pieces_of_yaml_in_any_order_yield_a_plan_or_mistakes(text: str) -> None:
    read(text)


@given(st.text(max_size=200))
def test_any_text_yields_a_plan_or_mistakes(text: str) -> None:
    read(text)


def mutated(text: str, rng: random.Random) -> str:
    """`text` after a few accidents of an editor."""
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(text))
        end = min(len(text), start + rng.randint(0, 30))
        match rng.randrange(5):
            case 0:
                text = text[:start] + text[end:]
            case 1:
                text = text[:start] + rng.choice(PIECES) + text[start:]
            case 2:
                other = rng.randrange(len(text))
                text = text[:other] + text[start:end] + text[other:]
            case 3:
                lines = text.split("\n")
                lines.insert(rng.randrange(len(lines)), rng.choice(lines))
                text = "\n".join(lines)
            case _:
                text = text[:start] + rng.choice(PIECES) + text[end:]
    return text


@each("text", [EVERYTHING, OURS], ids=["everything", "ours"])
@each("seed", range(80))
def test_an_accident_in_a_good_file_yields_a_plan_or_mistakes(text: str, seed: int) -> None:
    began = time.process_time()

    read(mutated(text, random.Random(seed)))

    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "instead", [None, True, 3, "${X}", [[None]], {"a": None}, {"kind": ["a.b"]}], ids=repr
)
def test_any_value_in_place_of_any_other_yields_a_plan_or_mistakes(instead: Any) -> None:
    value = plain(OURS)

    for path in places(value):
        if path:
            changed = copy.deepcopy(value)
            at(changed, path[:-1])[path[-1]] = instead
            read(json.dumps(changed))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=8,
)
KEYS = ["name", "type", "routes", "on_error", "retry", "output", "raises", "agent", "agents", "options", "input", "env",
        "questions", "value", "duration", "to", "halt", "kind", "category", "source", "as", "limits", "runtime"]  # fmt: skip


@given(st.dictionaries(st.sampled_from(["workflow", "agents", "parallel", "for_each", "output", "kinds", "tools"]),
                       JSON | st.lists(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=6), max_size=3)))  # fmt: skip
def test_any_json_under_the_right_keys_yields_a_plan_or_mistakes(value: Any) -> None:
    read(json.dumps(value))
