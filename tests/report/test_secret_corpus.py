"""Secrets and innocent texts as they occur in the world: what is masked, and what is left alone."""

import re

import pytest

from failwell.report.masking.tokens import token_data
from failwell.report.redact import redact_text
from tools.redaction import measure, specimens

MODELS = [
    "jina-embeddings-v3", "gpt-4o-mini-2024-07-18", "claude-3-5-sonnet-20241022", "text-embedding-3-large",
    "meta-llama/Meta-Llama-3.1-405B-Instruct-FP8", "voyage-3-large", "sk-learn",
]  # fmt: skip
REMARKS = [
    "pwd=/home/ada", "https://acme.test/error?code=404", "password: must be at least 8 characters", "SORT_KEY=asc",
    "using password: YES", "token: expired", "eos_token: </s>", "commit 3f2b8c1d9a4e4f6b8c7d1e2f3a4b5c6d7e8f9a0b",
]  # fmt: skip


def test_nearly_all_secrets_are_masked_and_nearly_nothing_else_is() -> None:
    score = measure(redact_text)

    assert score.caught + len(score.missed) >= 400
    assert score.innocent >= 600
    assert score.recall >= 0.99, [each.text for each in score.missed]
    assert score.precision >= 0.99, [each.text for each in score.changed]


def test_the_corpus_has_no_text_twice_and_marks_every_secret() -> None:
    secrets, innocents = specimens("secrets"), specimens("innocents")

    lines = [each.line for each in secrets + innocents]
    assert len(lines) == len(set(lines))
    assert [each.line for each in secrets if not each.secrets] == []
    assert [each.line for each in innocents if each.secrets] == []
    assert 0.25 < sum(each.is_held_back for each in secrets) / len(secrets) < 0.42


def test_a_masking_that_masks_nothing_or_everything_is_found_out() -> None:
    assert measure(lambda text: text).recall == 0
    assert measure(lambda _: "[redacted]").precision < 0.5


@pytest.mark.parametrize("text", [*MODELS, *REMARKS])
def test_names_of_models_and_remarks_about_secrets_are_left_alone(text: str) -> None:
    assert redact_text(f"failed: {text}") == f"failed: {text}"


def test_every_shape_of_a_token_names_its_vendor_and_its_source_and_compiles() -> None:
    entries = token_data()

    assert len(entries) > 120
    for entry in entries:
        assert entry["vendor"], entry
        assert entry["source"].startswith("https://"), entry
        assert ("mark" in entry) is ("pattern" in entry) is ("prefix" not in entry), entry
        assert set(entry) <= {"vendor", "source", "prefix", "body", "common", "mark", "pattern"}, entry
        re.compile(entry.get("body") or entry["pattern"])
