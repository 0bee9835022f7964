"""What each net catches, what it leaves alone, and that it leaves the surroundings alone too."""

import base64
import re
from pathlib import Path

import pytest

import failwell
from failwell.errors.headers import SAFE_HEADERS
from failwell.errors.masking.secret_names import names_a_secret
from failwell.errors.masking.tokens import token_data
from failwell.errors.redact import (
    MARK,
    are_clean,
    masked,
    masked_headers,
    redact_text,
    redact_value,
)
from tests.specimens import each

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nq83v/+abc=\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"

TOKENS = {
    "openai": "sk-proj-abcDEF0123456789abcdef",
    "openai, old": "sk-abcdefghijklmnopqrstuvwx",
    "anthropic": "sk-ant-api03-abcDEF0123456789_abc-def",
    "openrouter": "sk-or-v1-0123456789abcdef0123456789abcdef",
    "stripe": "rk_live_0123456789abcdefghij",
    "stripe, public": "pk_live_0123456789abcdefghij",
    "stripe, webhook": "whsec_0123456789abcdefghij",
    "replicate": "r8_0123456789abcdefghijABCDEFGHIJ",
    "groq": "gsk_0123456789abcdefghijABCDEFGHIJ",
    "xai": "xai-0123456789abcdefghijABCDEFGHIJ",
    "perplexity": "pplx-0123456789abcdef0123456789abcdef",
    "nvidia": "nvapi-0123456789abcdefghij_ABCDEFGHIJ",
    "together": "tgp_v1_0123456789abcdefghij",
    "hugging face": "hf_abcdefghij0123456789ABCDEFGHIJ",
    "github": "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "github, fine": "github_pat_11ABCDEFG0123456789_abcdefghij",
    "gitlab": "glpat-0123456789abcdefghij",
    "npm": "npm_0123456789abcdefghijABCDEFGHIJ012345",
    "pypi": "pypi-AgEIcHlwaS5vcmcCJDAwMDAwMDAw",
    "digitalocean": "dop_v1_0123456789abcdef0123456789abcdef",
    "slack": "xoxb-0123456789-0123456789-abcdefghij",
    "langsmith": "lsv2_pt_0123456789abcdef_0123456789",
    "account": "org-aB3dE5fG7hI9jK1lM3nO5pQ7",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "aws, session": "ASIAIOSFODNN7EXAMPLE",
    "google": "AIzaSyD-0123456789abcdefghijklmnopqrstu",
    "google, oauth": "ya29.a0AfH6SMBx0123456789-abcdef",
    "sendgrid": "SG.0123456789abcdefghij.0123456789abcdefghijklmnop",
    "jwt": JWT,
    "fal": "01234567-89ab-cdef-0123-456789abcdef:0123456789abcdef0123456789abcdef",
    "pem": PEM,
}

NAMED = {
    "assignment": ("password=hunter2xyz next", "password=[redacted] next"),
    "colon": ("api_key: hunter2xyz, retry", "api_key: [redacted], retry"),
    "arrow": ("secret => hunter2xyz)", "secret => [redacted])"),
    "json": ('{"client_secret": "hunter2 xyz", "n": 1}', '{"client_secret": "[redacted]", "n": 1}'),
    "repr": ("{'x-api-key': 'hunter2 xyz', 'n': 1}", "{'x-api-key': '[redacted]', 'n': 1}"),
    "bytes": ("{b'authorization': b'hunter2xyz'}", "{b'authorization': b'[redacted]'}"),
    "raw header": ("[(b'x-api-key', b'hunter2xyz'), (b'a', b'b')]", "[(b'x-api-key', b'[redacted]'), (b'a', b'b')]"),
    "escaped json": (r'body="{\"password\": \"hunter2 xyz\"}"', r'body="{\"password\": \"[redacted]\"}"'),
    "apostrophe": ('passphrase: "it\'s hunter2" ok', 'passphrase: "[redacted]" ok'),
    "quote": ("passwd='say \"hunter2\"' ok", "passwd='[redacted]' ok"),
    "camel": ("dbPassword=hunter2xyz;x", "dbPassword=[redacted];x"),
    "prefix": ("OPENAI_API_KEY=hunter2xyz x", "OPENAI_API_KEY=[redacted] x"),
    "secret key": ("secret_key=hunter2xyz x", "secret_key=[redacted] x"),
    "azure": ("AccountKey=hunter2xyz==;End=1", "AccountKey=[redacted];End=1"),
    "bearer": ("sent Bearer hunter2xyz.abc-1 to", "sent Bearer [redacted] to"),
    "basic": (f"Basic {base64.b64encode(b'ada:hunter2').decode()} x", "Basic [redacted] x"),
    "authorization": ("Authorization: Custom hunter2 xyz\nHost: a", "Authorization: [redacted]\nHost: a"),
    "cookie": ("Cookie: a=hunter2; b=hunter2\r\nHost: a", "Cookie: [redacted]\r\nHost: a"),
    "set-cookie": ("set-cookie: sid=hunter2; Path=/", "set-cookie: [redacted]"),
    "header dict": ("{'Authorization': 'Bearer hunter2xyz', 'a': 1}", "{'Authorization': '[redacted]', 'a': 1}"),
    "header json": ('{"Cookie": "a=hunter2", "b": 1}', '{"Cookie": "[redacted]", "b": 1}'),
    "userinfo": ("postgres://ada:hunter2@db/x", "postgres://[redacted]@db/x"),
    "query": ("GET https://a/b?key=hunter2&n=1", "GET https://a/b?key=[redacted]&n=1"),
    "signed": ("https://a/?X-Amz-Signature=hunter2&n=1", "https://a/?X-Amz-Signature=[redacted]&n=1"),
    "later in query": ("https://a/?n=1&access_token=hunter2#top", "https://a/?n=1&access_token=[redacted]#top"),
}  # fmt: skip

BENIGN = [
    "max_tokens=4096",
    "author=bob",
    "the key: value",
    "missing: 'token', 'size'",
    "tokenizer=bpe",
    "tokens: 128",
    "prompt_tokens=12, completion_tokens=40",
    "primary_key=17",
    "cache_key: abc",
    "monkey=7",
    "keyboard: de",
    "compass=north",
    "hf_hub_download failed",
    "npm-install-failed",
    "org-chart-template",
    "proj_directory_name",
    "Basic authentication failed",
    "basic functionality",
    "digest algorithm",
    "https://example.com/path?page=2&sort=up",
    "https://example.com:8080/a@b",
    "at 12:30:45 on 2026-03-01",
    "f1-0123456789abcdef",
    "err_1a1dfb8eb96e9059c2ee23d825f",
    "01234567-89ab-cdef-0123-456789abcdef",
    "ConnectionError: [Errno 111] refused",
    "desk-lamp-and-table-cloth",
    "",
]


@each("token", TOKENS.values(), ids=TOKENS)
def test_the_shape_of_a_known_token_is_masked_and_its_surroundings_are_kept(token: str) -> None:
    assert redact_text(f"before {token} after") == f"before {MARK} after"
    assert redact_text(f'("{token}")') == f'("{MARK}")'


@each(("text", "masked"), NAMED.values(), ids=NAMED)
def test_a_value_with_a_telling_name_is_masked_and_its_surroundings_are_kept(text: str, masked: str) -> None:
    assert redact_text(text) == masked
    assert "hunter2" not in redact_text(text)


@each("text", BENIGN)
def test_ordinary_words_are_left_alone(text: str) -> None:
    assert redact_text(text) == text


@each("text", [*BENIGN, *(text for text, _ in NAMED.values()), *TOKENS.values()])
def test_masking_twice_changes_nothing_more(text: str) -> None:
    once = redact_text(text)

    assert redact_text(once) == once


@pytest.mark.parametrize("length", [200, 1_000, 1_900])
@pytest.mark.parametrize("frame", ['password="{}"', "token={}", "Bearer {}", "https://a/?key={}", "sk-{}"])
def test_no_part_of_a_long_secret_is_let_through(frame: str, length: int) -> None:
    masked = redact_text(frame.format("Z9" * length))

    assert "Z9" not in masked


def test_a_whole_private_key_is_masked_however_long_it_is() -> None:
    body = "\n".join(["QWxhZGRpbjpvcGVuIHNlc2FtZQ"] * 300)

    masked = redact_text(
        f"key: -----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY----- end", limit=12_000
    )

    assert masked == f"key: {MARK} end"


def test_a_private_key_that_breaks_off_is_masked_to_the_end() -> None:
    assert redact_text(PEM[:60]) == MARK


@each(
    "key",
    [
        "password", "PASSWORD", "api_key", "apiKey", "API-Key", "x-api-key", "x_goog_api_key", "authorization",
        "Proxy-Authorization", "access_token", "refreshToken", "session_id", "Set-Cookie", "cookie", "client_secret",
        "secret_key", "private_key", "aws_secret_access_key", "openaiApiKey", "db.password", "my token", "jwt",
        "dsn", "x-amz-security-token", "signature", "credentials", "Ocp-Apim-Subscription-Key",
    ],
)  # fmt: skip
def test_a_value_under_a_telling_key_is_masked(key: str) -> None:
    assert names_a_secret(key)
    assert redact_value({key: {"nested": ["hunter2"]}, "n": 1}) == {key: MARK, "n": 1}


@pytest.mark.parametrize(
    "key",
    ["key", "max_tokens", "tokens", "author", "primary_key", "cache_key", "monkey", "compass", "keys", "id"],
)
def test_a_value_under_an_ordinary_key_is_kept(key: str) -> None:
    assert redact_value({key: "plain"}) == {key: "plain"}


def test_an_absent_secret_may_be_seen_to_be_absent() -> None:
    assert redact_value({"password": None}) == {"password": None}


def test_secrets_are_masked_in_values_and_in_keys_at_every_depth() -> None:
    token = TOKENS["openai"]

    masked = redact_value({"list": [{"note": f"use {token}"}], token: 1})

    assert masked == {"list": [{"note": f"use {MARK}"}], MARK: 1}


def test_only_harmless_headers_are_kept_and_their_values_are_masked() -> None:
    kept = masked_headers(
        {
            "Retry-After": "7",
            "X-RateLimit-Remaining-Tokens": "0",
            "anthropic-ratelimit-requests-reset": "soon",
            "X-Request-Id": TOKENS["openai"],
            "Authorization": "Bearer x",
            "Set-Cookie": "x",
            "X-Api-Key": "x",
            "X-Debug": "x",
        }
    )

    assert kept == {
        "retry-after": "7",
        "x-ratelimit-remaining-tokens": "0",
        "anthropic-ratelimit-requests-reset": "soon",
        "x-request-id": MARK,
    }


def test_the_list_of_harmless_headers_names_none_that_carries_a_secret() -> None:
    assert [name for name in SAFE_HEADERS if names_a_secret(name) or name != name.lower()] == []


def test_headers_may_come_in_any_mapping_or_none() -> None:
    import email.message

    message = email.message.Message()
    message["Retry-After"] = "7"

    assert masked_headers(message) == {"retry-after": "7"}
    assert masked_headers(None) == {}
    assert len(masked_headers({f"x-ratelimit-{number}": "1" for number in range(500)})) == 40


def test_a_variable_set_after_the_first_use_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert redact_text("plain correct-horse words") == "plain correct-horse words"

    monkeypatch.setenv("ACME_API_KEY", "correct-horse")

    assert redact_text("plain correct-horse words") == f"plain {MARK} words"


def test_a_rotated_variable_is_masked_with_its_new_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_TOKEN", "correct-horse")
    redact_text("x")

    monkeypatch.setenv("ACME_TOKEN", "battery-staple")

    assert redact_text("battery-staple") == MARK


@pytest.mark.parametrize(
    ("name", "value", "is_masked"),
    [
        ("ACME_PASSWORD", "correct-horse", True),
        ("ACME_KEY_2", "correct-horse", False),
        ("ACME_API_KEY_2", "correct-horse", True),
        ("PGPASSWORD", "correct-horse", True),
        ("MYSQL_PWD", "correct-horse", True),
        ("PWD", "/srv/correct-horse", False),
        ("acme_secret", "correct-horse", True),
        ("DATABASE_URL", "postgres://ada:correct-horse@db/x", True),
        ("ACME_KEY_FILE", "correct-horse", False),
        ("ACME_PASSWORD", "/run/secrets/correct-horse", False),
        ("ACME_NAME", "correct-horse", False),
    ],
)
def test_variables_are_judged_by_their_names(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, is_masked: bool
) -> None:
    monkeypatch.setenv(name, value)

    assert ("correct-horse" not in redact_text("say correct-horse")) is is_masked


def test_a_short_variable_does_not_mask_ordinary_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_PASSWORD", "yes")

    assert redact_text("yes, it failed") == "yes, it failed"


def test_the_longest_of_overlapping_secrets_is_masked_first() -> None:
    failwell.register_secret("correct-horse")
    failwell.register_secret("correct-horse-battery")

    assert redact_text("correct-horse-battery") == MARK


def test_a_secret_too_short_to_be_masked_is_refused() -> None:
    with pytest.raises(ValueError, match="fewer than 6 characters"):
        failwell.register_secret("short")


def test_words_that_are_looked_through_together_are_masked_as_each_of_them_alone() -> None:
    """Ids and counts of a reply take one look. A word that holds a secret must not pass because of its neighbours."""
    corpus = Path(__file__).parent / "corpus"
    texts = [(corpus / name).read_text(encoding="utf-8") for name in ("secrets.txt", "innocents.txt")]
    text = "\n".join([*texts, *TOKENS.values()])
    words = sorted(set(re.findall(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,119}", text)))
    alone = {word: redact_text(word) for word in words}
    assert sum(MARK in result for result in alone.values()) > 20

    failwell.register_secret("a value that empties what is known to be clean")
    redact_text("")
    for start in range(0, len(words), 5):
        group = words[start : start + 5]
        clean = are_clean(set(group))

        assert clean is all(alone[word] == word for word in group), group
        assert [masked(word) for word in group] == [alone[word] for word in group]


def test_an_id_of_a_reply_is_no_token_whatever_it_begins_with() -> None:
    """Ids and times take one look by their shape, which is right only as long as no token has that shape."""
    beginnings = {prefix for entry in token_data() for prefix in entry.get("prefix", ())} | {
        "req_",
        "hv",
        "dt0",
    }
    words = {
        f"{start}{(filler * 9)[:length]}{end}"
        for start in beginnings
        for filler in ("0123456789abcdef", "4b1d9eAZDOq7hvXs", "12")
        for length in (4, 8, 16, 28, 32, 36, 38, 40, 48, 60)
        for end in ("", "-FRA")
    }
    alone = {word: redact_text(word) for word in sorted(words)}
    assert sum(word != result for word, result in alone.items()) > 100

    failwell.register_secret("another value that empties what is known to be clean")
    redact_text("")
    assert [word for word, result in alone.items() if are_clean([word]) is not (result == word)] == []
