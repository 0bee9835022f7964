"""In data, the name of a member is enough: its value is masked however plain it looks."""

import io
import logging
from typing import NamedTuple

import pytest

from failwell import Fault, describe
from failwell.errors.redact import redact_text, redact_value
from failwell.logging import ReportFilter

PLAIN = (
    "sk-proj-this-must-never-be-seen-anywhere",
    "the-quick-brown-fox",
    "mypassword",
    "my pass phrase with blanks",
    "hunter2",
    "correct horse battery staple",
    "abc def ghi",
    "letmein",
    "geheim",
    "密码",
    "Sommer",
)


@pytest.mark.parametrize(
    "name", ["api_key", "password", "secret", "access_token", "client_secret", "PGPASSWORD"]
)
def test_a_plain_value_under_the_name_of_a_secret_is_masked(name: str) -> None:
    for value in PLAIN:
        report = describe(Fault(kind="provider.auth", message="refused", details={name: value}))

        assert report.details[name] == "[redacted]", value


@pytest.mark.parametrize(
    "value",
    [
        "must be at least 8 characters",
        "your-api-key-here",
        "YOUR_API_KEY",
        "***",
        "missing",
        "/run/secrets/key",
        "",
    ],
)
def test_what_stands_in_for_a_secret_is_shown(value: str) -> None:
    report = describe(Fault(kind="provider.auth", message="refused", details={"api_key": value}))

    assert report.details["api_key"] == value


class Credentials(NamedTuple):
    user: str
    password: str


V = "Tr0ub4dor3xQz9"
SHAPES: dict[str, object] = {
    "a table of secrets": {"secrets": {"db": V}},
    "an environment of a container": [{"name": "DB_PASSWORD", "value": V}],
    "a recorded request": {"headers": [{"name": "authorization", "value": V}]},
    "a form": {"key": "api_key", "value": V},
    "a part of a form": {"name": "password", "contents": V},
    "a labelled field": {"label": "API key", "value": V},
    "names of other languages": {"kennwort": V, "contraseña": V, "密码": V},
    "a named tuple": Credentials("bob", V),
    "a key in bytes": {b"password": V},
    "a header with a flag": [("authorization", V, True)],
    "a private key of the web": {"kty": "EC", "crv": "P-256", "d": V},
    "a symmetric key of the web": {"keys": [{"kty": "oct", "k": V}]},
    "qualified names": {
        "password_prod": V,
        "passwordConfirm": V,
        "api_key_old": V,
        "token_v2": V,
        "pw": V,
        "creds": V,
    },
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_secret_is_masked_in_every_shape_of_data(name: str) -> None:
    assert V not in str(redact_value(SHAPES[name]))


def test_counts_and_names_are_shown() -> None:
    for value in (
        {"tokens": {"input": 10, "output": 5}},
        {"name": "model", "value": "gpt-4o"},
        {"logprobs": {"content": [{"token": " the", "logprob": -0.1, "bytes": [32, 116, 104, 101]}]}},
        {
            "top_logprobs": [
                {"token": "Paris", "logprob": -0.02},
                {"token": "Tr0ub4dor3xQz9", "logprob": -9.5},
            ]
        },
        {"vector": {"d": "Tr0ub4dor", "k": "nearest-17"}},
        {"kty": "RSA", "n": "0vx7agoebGcQSuuPiLJXZptQ", "e": "AQAB", "kid": "2011-04-29"},
        {"empty": [], "one": ["a"], "pair": ["a", "b"], "three": ["a", "b", "c"]},
        {"max_tokens": 5, "token_count": 7, "password_policy": "strict", "sort_key": "asc"},
    ):
        assert redact_value(value) == value


def test_a_named_argument_of_a_log_call_is_masked() -> None:
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.addFilter(ReportFilter())
    logger = logging.Logger("app")  # noqa: LOG001  (one that nobody else can hear)
    logger.addHandler(handler)

    logger.error("%(user)s logs in with %(password)s", {"user": "bob", "password": V})

    assert text.getvalue() == "bob logs in with [redacted]\n"


@pytest.mark.parametrize(
    "text",
    [
        f"[(b'x-api-key', b'{V}')]\n\nmore",
        f"{{'password': '{V}', 'x': 1}}\r\n\r\nmore",
        f"password: {V} [type=string, input_value='x']",
    ],
)
def test_what_follows_a_value_does_not_draw_the_mask_away_from_it(text: str) -> None:
    assert V not in redact_text(text)
