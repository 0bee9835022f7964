"""Values that are known to be secret are masked in every form in which programs print them."""

import base64
import html
import json
import os
import threading
from collections.abc import Callable, Iterator, MutableMapping
from urllib.parse import quote, quote_plus

import pytest

import failwell
from failwell.errors.masking.known_values import KnownSecrets
from failwell.errors.redact import MARK, redact_text, redact_value, refresh

AWKWARD = 'pä/ss "w\\rd" & <more>'
PLAIN = "hunter2xyz-and-more"
PEM = "-----BEGIN PRIVATE KEY-----\n" + "\n".join(
    base64.b64encode(bytes([n]) * 48).decode() for n in (7, 99, 203)
)


def _nested(text: str, depth: int) -> str:
    for _ in range(depth):
        text = json.dumps({"body": text})
    return text


FORMS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "percent": lambda text: quote(text, safe=""),
    "percent, lower case": lambda text: quote(text, safe="").lower(),
    "percent, twice": lambda text: quote(quote(text, safe=""), safe=""),
    "form": quote_plus,
    "json": json.dumps,
    "json, not ascii": lambda text: json.dumps(text, ensure_ascii=False),
    "json in json": lambda text: _nested(text, 2),
    "json in json in json": lambda text: _nested(text, 3),
    "json with escaped slashes": lambda text: json.dumps(text).replace("/", "\\/"),
    "html": html.escape,
    "html with numbers": lambda text: "".join(f"&#{ord(letter)};" for letter in text),
    "json in html": lambda text: html.escape(json.dumps(text)),
    "repr": repr,
    "repr of bytes": lambda text: repr(text.encode()),
    "json in bytes": lambda text: repr(json.dumps({"a": text}).encode()),
    "hex": lambda text: text.encode().hex(),
    "hex, upper case": lambda text: text.encode().hex().upper(),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_registered_secret_is_masked_in_every_encoding(form: str) -> None:
    for secret in (AWKWARD, PLAIN):
        failwell.register_secret(secret)

        masked = redact_text(f"before {FORMS[form](secret)} after")

        assert MARK in masked
        assert (masked[:7], masked[-6:]) == ("before ", " after")
        assert [
            trace for trace in ("hunter2", "68756e", "68756E", "ss%2", "pä", "more") if trace in masked
        ] == []


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_registered_secret_is_masked_in_base64_wherever_it_begins(encode: Callable[[bytes], bytes]) -> None:
    secrets = [bytes(range(200, 230)).hex()[:30], AWKWARD, "??>>~~??>>~~"]
    for secret in secrets:
        failwell.register_secret(secret)

        for user in ("", "u", "us", "ada:", "user:"):
            for rest in ("", "x", "xy"):
                whole = encode(f"{user}{secret}{rest}".encode()).decode()
                masked = redact_text(f"sent {whole} and failed")

                assert MARK in masked
                # What is left at either end are bits of what stands beside the secret.
                assert len(masked) < len("sent  and failed") + len(MARK) + 16


def test_basic_credentials_are_masked_without_knowing_the_user() -> None:
    failwell.register_secret(PLAIN)
    written = base64.b64encode(f"somebody:{PLAIN}".encode()).decode()

    masked = redact_text(f'{{"header": "Basic {written}"}}')

    assert written[12:30] not in masked


def test_each_line_of_a_registered_key_is_masked() -> None:
    failwell.register_secret(PEM)
    lines = PEM.splitlines()[1:]

    for line in lines:
        assert redact_text(f"line {line} is damaged") == f"line {MARK} is damaged"
    assert redact_text("".join(lines)) == MARK
    assert redact_text("-----BEGIN") == "-----BEGIN"


def test_a_hundred_secrets_are_found_in_one_reading() -> None:
    secrets = [f"{number:04x}-{number * 7919:08x}-secret" for number in range(100)]
    known = KnownSecrets(secrets)
    text = " ".join(f"{secret} {secret.encode().hex()}" for secret in secrets)

    assert known.mask(text, "*") == " ".join(["* *"] * 100)
    assert known.mask("nothing of the kind", "*") == "nothing of the kind"


def test_a_secret_of_the_shortest_length_is_found_at_every_place() -> None:
    known = KnownSecrets(["ab3dEf"])

    for before in range(9):
        assert known.mask("." * before + "ab3dEf" + "!!", "*") == "." * before + "*!!"


def test_what_is_escaped_stays_in_place_around_a_secret() -> None:
    known = KnownSecrets(["p@ss/word"])

    assert known.mask("%20p%40ss%2fword%20 &amp; \\u0041", "*") == "%20*%20 &amp; \\u0041"
    assert known.mask("a%2Fb p%40ss%2Fword c%2Fd p@ss/word", "*") == "a%2Fb * c%2Fd *"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SORT_KEY", "asc"), ("SORT_KEY", "ascending"), ("SORT_KEY", "created_at_desc"), ("PRIMARY_KEY", "customer_id"),
        ("DB_PASSWORD", "postgres"), ("API_TOKEN", "disabled"), ("SECRET", "production"), ("CACHE_KEY", "user:42:profile"),
        ("DATABASE_URL", "postgres://postgres:postgres@db/x"), ("AUTH", "required"), ("API_KEY", "12345678"),
    ],
)  # fmt: skip
def test_the_name_of_a_variable_alone_makes_no_word_a_secret(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    word = "postgres" if "postgres" in value else value

    assert redact_text(f"order {word} now") == f"order {word} now"


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("PGPASSWORD", "tr0ub4dor&3", "tr0ub4dor&3"),
        ("SSHPASS", "tr0ub4dor&3", "tr0ub4dor&3"),
        ("OPENAI_API_KEYS", "first-key-1x,second-key-2y", "second-key-2y"),
        (
            "AZURE_STORAGE_CONNECTION_STRING",
            "AccountName=a;AccountKey=Zm9vYmFy1234==;End=1",
            "Zm9vYmFy1234==",
        ),
        ("STRIPE_KEY", "x9Kq2Lm4Zr8Tb1", "x9Kq2Lm4Zr8Tb1"),
    ],
)
def test_variables_that_hold_secrets_are_known_by_name_and_value(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, secret: str
) -> None:
    monkeypatch.setenv(name, value)

    assert redact_text(f"saw {secret} there") == f"saw {MARK} there"


def test_an_environment_that_changes_in_another_thread_loses_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STEADY_PASSWORD", "steady-0-secret")
    stop = threading.Event()
    problems: list[BaseException] = []

    def churn(worker: int) -> None:
        number = 0
        while not stop.is_set():
            name = f"CHURN_{worker}_{number % 50}_TOKEN"
            os.environ[name] = f"churn-{number:06d}-x"
            os.environ.pop(name, None)
            number += 1

    def look() -> None:
        try:
            for number in range(300):
                refresh()
                assert redact_text(f"{number} steady-0-secret") == f"{number} {MARK}"
        except BaseException as problem:
            problems.append(problem)

    churners = [threading.Thread(target=churn, args=(worker,)) for worker in range(2)]
    lookers = [threading.Thread(target=look) for _ in range(2)]
    for thread in churners + lookers:
        thread.start()
    for thread in lookers:
        thread.join()
    stop.set()
    for thread in churners:
        thread.join()

    assert problems == []


class Vanishing(MutableMapping[str, str]):
    """An environment from which another thread takes a variable after its name was listed."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values_of = values

    def __getitem__(self, name: str) -> str:
        return self.values_of[name]

    def __setitem__(self, name: str, value: str) -> None:
        self.values_of[name] = value

    def __delitem__(self, name: str) -> None:
        del self.values_of[name]

    def __iter__(self) -> Iterator[str]:
        return iter(["GONE_TOKEN", *self.values_of])

    def __len__(self) -> int:
        return len(self.values_of) + 1


def test_a_variable_that_vanishes_while_the_environment_is_read_costs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "environ", Vanishing({**os.environ, "STEADY_PASSWORD": "steady-0-secret"}))

    assert redact_text("saw steady-0-secret") == f"saw {MARK}"
    assert failwell.describe(ValueError("x")).error_type == "ValueError"


def test_a_secret_that_was_just_registered_is_masked_whatever_other_threads_learn() -> None:
    def register(worker: int) -> None:
        for number in range(40):
            secret = f"thread-{worker}-{number:03d}-value"
            failwell.register_secret(secret)
            assert redact_text(f"x {secret}") == f"x {MARK}"

    problems: list[BaseException] = []

    def watched(worker: int) -> None:
        try:
            register(worker)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=watched, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert problems == []


def test_lists_under_the_name_of_a_secret_and_pairs_of_headers_are_masked() -> None:
    key = "x9Kq2Lm4Zr8Tb1Vc7"

    assert redact_value({"api_keys": [key, key]}) == {"api_keys": MARK}
    assert redact_value([("authorization", f"Bearer {key}"), ("accept", "*/*")]) == [
        ["authorization", MARK],
        ["accept", "*/*"],
    ]
    assert redact_value([(b"x-api-key", key.encode())]) == [["<9 bytes>", "<17 bytes>"]]
    assert redact_value({"password": "must be at least 8 characters", "tokens": 128, "token": None}) == {
        "password": "must be at least 8 characters",
        "tokens": 128,
        "token": None,
    }


def test_a_value_that_is_part_of_the_mark_ends_the_search_too() -> None:
    failwell.register_secret("redacted")
    failwell.register_secret(PLAIN)

    assert redact_text(f"{quote(PLAIN)} %20 redacted {PLAIN}") == f"{MARK} %20 redacted {MARK}"


def test_a_text_with_a_secret_in_each_of_many_layers_is_masked_in_all_of_them() -> None:
    failwell.register_secret(AWKWARD)
    text = AWKWARD
    for _ in range(4):
        text = f"{quote(text, safe='')} {json.dumps(AWKWARD)} {html.escape(AWKWARD)}"

    assert not {"ss", "more"} & set(redact_text(text, 20_000).replace("%", " ").replace(";", " ").split())
    assert "w\\rd" not in redact_text(text, 20_000)


@pytest.mark.parametrize("form", ["json", "percent", "html", "repr"])
def test_no_part_of_a_long_document_is_shown_in_an_encoding_that_makes_it_longer(form: str) -> None:
    document = "".join(f"Ärger {number} & Öl <{number}> " for number in range(200))
    failwell.register_secret(document)

    shown = redact_text(f"refused: {FORMS[form](document)} after")

    assert not any(word in shown for word in ("rger", "Öl", "l%20", "l &"))
