"""The rule table against a corpus of real provider errors, through the command that users run.

The corpus lies beside the checkout and is not part of it; without it these tests are skipped. Rows
whose words were restated by the corpus's makers are scored apart, because a rule that reads words
reads theirs there.
"""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import failwell

CORPUS = Path(
    os.environ.get("FAILWELL_CORPUS", "")
    or Path(__file__).resolve().parents[3] / "shared/corpus/provider-errors.dev.jsonl"
)
LABELS = (
    "category", "retryable", "model_not_found", "retry_after_s", "label_confidence", "label_note", "source", "text_origin",
)  # fmt: skip
# What the rules reach today. A floor is raised when the rules get better and never lowered.
FLOORS = {
    ("category", "vendor"): 0.981,
    ("category", "restated"): 0.96,
    ("retryable", "vendor"): 0.993,
    ("retryable", "restated"): 0.98,
    ("model_not_found", "vendor"): 0.995,
    ("model_not_found", "restated"): 0.98,
    ("retry_after_s", "vendor"): 1.0,
    ("retry_after_s", "restated"): 1.0,
}

# Rows whose label says something that the row itself does not.
DISAGREED = {
    "pe-0779b997c6": "labelled 578.016 s, while the row's words say 9m38s, which is 578 s",
}

pytestmark = pytest.mark.skipif(not CORPUS.is_file(), reason="the corpus is not beside this checkout")

Pair = tuple[dict[str, Any], dict[str, Any]]


@cache
def judged() -> list[Pair]:
    """Every row of the corpus with the verdict of `failwell classify` on it."""
    rows = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
    done = failwell("classify", "--jsonl", str(CORPUS))
    assert (done.code, done.err) == (0, "")
    verdicts = [json.loads(line) for line in done.out.splitlines()]
    assert [verdict["id"] for verdict in verdicts] == [row["id"] for row in rows]
    return list(zip(rows, verdicts, strict=True))


def sure(*, restated: bool) -> list[Pair]:
    """The pairs whose label is not in doubt."""
    return [
        (row, verdict)
        for row, verdict in judged()
        if row["label_confidence"] in ("high", "medium") and (row["text_origin"] == "restated") is restated
    ]


def wrong(pairs: list[Pair], field: str) -> list[str]:
    return [
        f"{row['id']}: {field} {row[field]!r}, judged {verdict[field]!r} ({verdict['kind']})"
        for row, verdict in pairs
        if not _same(row[field], verdict[field]) and not (field == "retry_after_s" and row["id"] in DISAGREED)
    ]


def _same(label: Any, verdict: Any) -> bool:
    if isinstance(label, float) and isinstance(verdict, float):
        return abs(label - verdict) < 0.01
    return label == verdict


@pytest.mark.parametrize(("field", "words"), FLOORS)
def test_no_fewer_rows_are_judged_as_their_labels_say(field: str, words: str) -> None:
    pairs = sure(restated=words == "restated")

    missed = wrong(pairs, field)

    assert 1 - len(missed) / len(pairs) >= FLOORS[field, words], "\n".join(missed)


def test_every_disagreement_still_is_one() -> None:
    pairs = [pair for pair in judged() if pair[0]["id"] in DISAGREED]

    assert len(pairs) == len(DISAGREED)
    assert not any(_same(row["retry_after_s"], verdict["retry_after_s"]) for row, verdict in pairs)


def test_the_verdicts_do_not_know_the_labels() -> None:
    rows = [row for row, _ in judged()]
    misled = [{**row, "category": "cancelled", "retryable": None, "retry_after_s": 1e6} for row in rows]
    bare = [{name: value for name, value in row.items() if name not in LABELS} for row in rows]

    outputs = [
        failwell("classify", "--jsonl", "-", given="\n".join(map(json.dumps, variant))).out
        for variant in (misled, bare)
    ]

    expected = [verdict for _, verdict in judged()]
    assert [json.loads(line) for line in outputs[0].splitlines()] == expected
    assert outputs[0] == outputs[1]
