"""Secrets and innocent texts as they occur in the world: what is masked, and what is left alone."""

import re
import string
from random import Random

import pytest

from failwell.errors.masking.tokens import token_data
from failwell.errors.redact import MARK, redact_text
from tools.redaction import measure, specimens

MODELS = [
    "jina-embeddings-v3", "gpt-4o-mini-2024-07-18", "claude-3-5-sonnet-20241022", "text-embedding-3-large",
    "meta-llama/Meta-Llama-3.1-405B-Instruct-FP8", "voyage-3-large", "sk-learn",
]  # fmt: skip
REMARKS = [
    "pwd=/home/ada", "https://acme.test/error?code=404", "password: must be at least 8 characters", "SORT_KEY=asc",
    "using password: YES", "token: expired", "eos_token: </s>", "commit 3f2b8c1d9a4e4f6b8c7d1e2f3a4b5c6d7e8f9a0b",
]  # fmt: skip


def drawn(length: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(Random(length + len(letters)).choices(letters, k=length))


HEX = "0123456789abcdef"
LINES = f"{drawn(64)}\n{drawn(63)}"
KEYS = {
    "Hugging Face, letters only": "hf_" + drawn(34, string.ascii_letters),
    "Pinecone": f"pcsk_{drawn(6)}_{drawn(63)}",
    "Tavily": f"tvly-{drawn(32)}",
    "Cerebras": f"csk-{drawn(48)}",
    "Vault": f"hvs.{drawn(24)}",
    "Notion": f"ntn_{drawn(11, string.digits)}{drawn(35)}",
    "Linear": f"lin_api_{drawn(40)}",
    "Grafana": f"glsa_{drawn(32)}_{drawn(8, HEX)}",
    "Docker": f"dckr_pat_{drawn(27)}",
    "Slack app": f"xapp-1-A{drawn(10, string.ascii_uppercase)}-{drawn(13, string.digits)}-{drawn(64, HEX)}",
    "Google client": f"GOCSPX-{drawn(28)}",
    "Bedrock": f"ABSK{drawn(128)}==",
    "Supabase": f"sbp_{drawn(40, HEX)}",
    "encrypted PEM": f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{LINES}\n-----END ENCRYPTED PRIVATE KEY-----",
    "encrypted PEM with headers": "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"
    f"DEK-Info: AES-128-CBC,{drawn(32, HEX)}\n\n{LINES}\n-----END RSA PRIVATE KEY-----",
    "PGP": f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{LINES}\n-----END PGP PRIVATE KEY BLOCK-----",
}
"""One of each format, without a name beside it that would tell what it is."""


@pytest.mark.parametrize("vendor", KEYS)
def test_a_key_is_known_by_its_format_alone(vendor: str) -> None:
    key = KEYS[vendor]

    masked = redact_text(f"failed with {key} today")

    assert MARK in masked
    assert (masked[:12], masked[-6:]) == ("failed with ", " today")
    assert [key[at : at + 8] for at in range(14, len(key) - 30) if key[at : at + 8] in masked] == []


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
