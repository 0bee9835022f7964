"""Errors that were printed, by any language and tool: the facts that the reader takes from them, and their kinds."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

import failwell
from failwell.adapters.log_records.pasted import describe_pasted
from failwell.adapters.protocols.system_errors import NAME_BY_SENTENCE
from failwell.adapters.text.class_names import PHASE_BY_SENTENCE
from failwell.adapters.text.commands import SIGNS
from failwell.adapters.text.first_look import may_hold_facts
from failwell.adapters.text.reader import TextFacts, read_text
from failwell.adapters.text.verdict import read_printed

TEXTS = Path(__file__).parent / "texts"
TABLES = sorted(path.stem for path in TEXTS.glob("*.toml") if path.stem != "innocent")
PROTOCOL_FACTS = ("status", "grpc", "errno", "exit_code", "phase")


SIGNED: tuple[tuple[str, int], ...] = (
    ('Failed to call LLM API, http code: 429, response: {"error": "x"}', 429),
    ("HTTP Status 500 \u2013 Internal Server Error", 500),
    ("request failed with 503", 503),
    ("Got response 429 from server", 429),
    ("Bad status code: 502", 502),
    ("[ERROR] 401 unauthorized: invalid x-api-key", 401),
    ("status_code=403, model_name: gpt-4, body: {'message': 'x'}", 403),
    ("Anthropic API error (529): overloaded", 529),
    ("OpenAI API returned an error: 500 The server had an error", 500),
    ('API request failed: 404 - {"detail":"Not Found"}', 404),
    ("openai error, status code: 429, message: rate limit", 429),
    ("error, status code: 400, status: 400 Bad Request, message: x", 400),
    ('POST "https://api.openai.com/v1/chat/completions": 429 Too Many Requests {', 429),
    ("Request to https://x returned HTTP/2 504", 504),
    ("http: server returned 500 Internal Server Error", 500),
    ("Exception: Failed to fetch data. Status code: 404", 404),
    ("ClientResponseError: 503, message='Service Unavailable', url=URL('https://x')", 503),
    ("requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://x", 401),
    ("AssertionError: Request failed. Response code 422", 422),
    ("InvokeModel failed: HTTP status code 424", 424),
    ("server returned HTTP response code: 403 for URL: https://x", 403),
    ("java.io.IOException: Server returned HTTP response code: 429 for URL: https://x", 429),
    ("Unexpected HTTP code: 500", 500),
    ("HttpException: 502 Bad Gateway", 502),
    ('ResponseError: 403 {"message":"no"}', 403),
    ("ApolloError: Response not successful: Received status code 400", 400),
    ('GraphQL Error (Code: 401): {"response":{}}', 401),
    ("upstream request timeout (504)", 504),
    ("(status=429) slow down", 429),
    ("Response [429]", 429),
    ("<Response [503]>", 503),
    ("<Response 401 Unauthorized>", 401),
    ("<Response [401 Unauthorized]>", 401),
    ("<ClientResponse(https://x) [502 Bad Gateway]>", 502),
    ("Cloudflare Error 522", 522),
    ("Ollama call failed with status code 400. Details: x", 400),
    ("Azure has not provided the response due to a content filter; status 400", 400),
    ('Invalid response object from API: \'{"detail":"Not Found"}\' (HTTP response code was 404)', 404),
    ("Received error from model service: 429", 429),
    ("Failed with code 429", 429),
    ("429: Too many requests", 429),
    ("Rate limited (429)", 429),
    ("quota exceeded (HTTP 429)", 429),
    ("Error: 529 overloaded", 529),
    ("overloaded_error (529)", 529),
    ("Service responded: 500", 500),
    ("The remote server returned an error: (403) Forbidden.", 403),
    ("System.Net.WebException: The remote server returned an error: (429).", 429),
    ("got HTTP 400 while calling tool", 400),
    ("code=503 reason=Service Unavailable", 503),
)
"""Ways in which programs write a status."""


def specimens(table: str) -> list[dict[str, Any]]:
    return tomllib.loads((TEXTS / f"{table}.toml").read_text(encoding="utf-8"))["text"]


def innocent(name: str = "texts") -> list[str]:
    return tomllib.loads((TEXTS / "innocent.toml").read_text(encoding="utf-8"))[name]


def facts_missed(specimen: dict[str, Any], facts: TextFacts) -> list[str]:
    """What the reader did not take from a specimen as its row says."""
    missed = [
        f"{name}: {getattr(facts, name)!r}, expected {specimen[name]!r}"
        for name in PROTOCOL_FACTS
        if name in specimen and getattr(facts, name) != specimen[name]
    ]
    if "code" in specimen and specimen["code"] not in facts.codes:
        missed.append(f"codes: {facts.codes}, expected {specimen['code']!r}")
    names = [error.name for error in facts.errors if error.name]
    if "names" in specimen and names != specimen["names"]:
        missed.append(f"names: {names}, expected {specimen['names']}")
    if "body_has" in specimen and specimen["body_has"] not in (facts.body or ()):
        missed.append(f"body: {facts.body!r}, expected a member {specimen['body_has']!r}")
    for name, value in specimen.get("headers", {}).items():
        if facts.headers.get(name) != value:
            missed.append(f"headers: {facts.headers}, expected {name}: {value}")
    return [f"{specimen['tool']}: {specimen['text'][:80]!r}: {problem}" for problem in missed]


@pytest.mark.parametrize("table", TABLES)
def test_the_facts_of_every_printed_error_are_read(table: str) -> None:
    missed = [
        problem
        for specimen in specimens(table)
        for problem in facts_missed(specimen, read_text(specimen["text"]))
    ]

    assert missed == []


@pytest.mark.parametrize("table", TABLES)
def test_every_printed_error_has_its_kind_from_the_text_alone(table: str) -> None:
    wrong: list[str] = []
    for specimen in specimens(table):
        report = failwell.classify({"message": specimen["text"]})
        if "kind" in specimen and report.kind != specimen["kind"]:
            wrong.append(
                f"{specimen['tool']}: {specimen['text'][:80]!r}: {report.kind}, expected {specimen['kind']}"
            )
        if report.retryable != specimen.get("retryable", report.retryable):
            wrong.append(f"{specimen['tool']}: {specimen['text'][:80]!r}: retryable {report.retryable}")

    assert wrong == []


@pytest.mark.parametrize("table", TABLES)
def test_every_printed_error_has_the_same_kind_when_it_is_pasted(table: str) -> None:
    wrong: list[str] = []
    for specimen in specimens(table):
        report = describe_pasted(specimen["text"], origin="call")
        if report.kind != specimen.get("kind", report.kind):
            wrong.append(f"{specimen['tool']}: {specimen['text'][:80]!r}: {report.kind}")

    assert wrong == []


def test_the_first_look_misses_no_printed_error() -> None:
    texts = [specimen["text"] for table in TABLES for specimen in specimens(table)]
    sentences = [*NAME_BY_SENTENCE, *PHASE_BY_SENTENCE, *(word for word, _, _ in SIGNS)]

    assert [text for text in (*texts, *sentences) if not may_hold_facts(text)] == []


def test_a_status_is_read_wherever_a_sign_of_it_is() -> None:
    wrong = {text: read_text(text).status for text, status in SIGNED if read_text(text).status != status}

    assert wrong == {}


def test_innocent_numbers_and_words_are_no_facts() -> None:
    wrong: list[str] = []
    for text in innocent():
        facts = read_text(text)
        if not facts.errors and read_printed(facts) is not None:
            wrong.append(f"{text!r}: {facts}")
        if any(
            getattr(facts, name) is not None for name in (*PROTOCOL_FACTS, "database", "close_code", "tool")
        ):
            wrong.append(f"{text!r}: {facts}")

    assert wrong == []


def test_what_a_program_says_about_itself_stays_its_own_bug() -> None:
    kinds = {text: failwell.describe(RuntimeError(text)).kind for text in innocent("messages")}

    assert {text: kind for text, kind in kinds.items() if kind != "internal.bug"} == {}


def test_there_are_enough_specimens_of_enough_tools() -> None:
    rows = [specimen for table in TABLES for specimen in specimens(table)]

    assert len(rows) >= 150
    assert len({row["tool"] for row in rows}) >= 60
    assert len({row["text"] for row in rows}) == len(rows)
    assert len(set(innocent())) >= 80
