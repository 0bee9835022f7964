"""Listings over rows that no run of this version would write: the other rows are listed all the same."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Done, failwell

ODD: tuple[Any, ...] = (None, 1, "x", [], {}, [1], {"a": 1}, [None])
GATE = """
workflow: {name: flow, entry_point: ask}
agents: [{name: ask, type: human_gate, prompt: Go on?, options: [{label: a, value: a, route: $end}]}]
"""
QUESTIONS = """
workflow: {name: flow, entry_point: make}
agents:
  - {name: make, type: set, values: {list: [{id: 1, text: 2, choices: [3, null, {a: 1}]}]}, routes: [{to: ask}]}
  - {name: ask, type: questions, source: make.output.list}
"""
FIXED = """
workflow: {name: flow, entry_point: ask}
agents: [{name: ask, type: questions, questions: [{id: a, text: why, choices: [b, c]}]}]
"""


def run(folder: Path, name: str, text: str) -> Done:
    (folder / f"{name}.yaml").write_text(text)
    file = str(folder / f"{name}.yaml")
    return failwell("run", file, "--run-id", name, "--no-input", "-q", "--store", str(folder / "store"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert run(tmp_path, "good", GATE).code == 4
    return tmp_path


def listings(folder: Path) -> Iterator[tuple[str, Done]]:
    for words in ("gates list", "runs list", "runs list --status waiting"):
        for form in ("text", "json", "markdown"):
            arguments = [*words.split(), "--format", form, "--store", str(folder / "store")]
            yield f"{words} as {form}", failwell(*arguments)


def test_questions_that_were_computed_from_anything_are_listed(folder: Path) -> None:
    done = run(folder, "computed", QUESTIONS)

    assert done.code in (1, 4), done.err
    for name, listed in listings(folder):
        assert (listed.code, "good" in listed.out) == (0, True), (name, listed.err)


@pytest.mark.parametrize("text", [GATE, FIXED], ids=["gate", "questions"])
def test_one_odd_waiting_run_never_hides_the_gates_of_the_others(folder: Path, text: str) -> None:
    assert run(folder, "odd", text).code == 4
    database = sqlite3.connect(folder / "store/journal.db", isolation_level=None)
    row, stored = database.execute(
        "SELECT events.id, data FROM events JOIN runs ON events.id >> 32 = runs.key"
        " WHERE runs.id = 'odd' AND type = 'human_gate:paused'"
    ).fetchone()
    data = json.loads(stored)

    for changed in odd_copies(data):
        database.execute("UPDATE events SET data = ? WHERE id = ?", (json.dumps(changed), row))
        listed = failwell("gates", "list", "--store", str(folder / "store"))

        assert (listed.code, "good" in listed.out) == (0, True), (changed, listed.err)
    for name, done in listings(folder):
        assert done.code == 0, (name, done.err)
    database.close()


def odd_copies(data: dict[str, Any]) -> Iterator[Any]:
    """`data` with one value at a time replaced by something else, or missing, also inside of lists."""
    for key, inner in data.items():
        yield {name: value for name, value in data.items() if name != key}
        for odd in ODD:
            yield {**data, key: odd}
        if isinstance(inner, list) and inner and isinstance(inner[0], dict):
            for changed in odd_copies(inner[0]):  # pyright: ignore[reportUnknownArgumentType]
                yield {**data, key: [changed]}
