"""A 401 or a 403 is never repeated, whatever words, codes and headers stand beside it."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from threading import Thread
from typing import Any

import aiohttp
import httpx
import pytest
import requests

import failwell
from failwell.adapters.checked_replies import check_reply, checked
from failwell.adapters.log_records.pasted import describe_pasted
from failwell.adapters.rules import CODES
from failwell.adapters.words.lexicon import STATES, SUBJECTS
from failwell.calls.policy import Fallback, Policy, Retry, RetryState, decide
from failwell.errors.facts import ProviderMetadata
from failwell.errors.fault import Fault
from failwell.errors.report import ErrorReport

SENTENCES = [
    "Rate limit exceeded. Please try again in 5s.", "Too many requests, slow down", "The server is overloaded, try later",
    "temporarily unavailable", "throttling: rate exceeded", "Could not connect to the backend", "internal server error",
    "failed to generate tool_calls", "You have exceeded a secondary rate limit. Please wait a few minutes.",
]  # fmt: skip
ROWS = [
    *SENTENCES,
    *(
        word
        for concept in ("rate", "overloaded")
        for word in {**SUBJECTS, **STATES}[concept].replace("~", "").split("|")
    ),
]
TRANSIENT_CODES = [
    "rate_limit_exceeded", "throttling", "too_many_requests", "overloaded_error", "resource_exhausted", "unavailable",
    *(code for code, kind in CODES.items() if kind in ("provider.overloaded", "provider.output_rejected")),
]  # fmt: skip
INVITING = {
    "retry-after": "5",
    "x-should-retry": "true",
    "x-ratelimit-remaining": "0",
    "x-ratelimit-reset": "5",
}


def is_repeated(report: ErrorReport) -> bool:
    decision = decide(Policy(), report, RetryState(attempts=1, idempotent=True, may_fall_back=True))
    return report.retryable or isinstance(decision, Retry | Fallback)


def test_no_word_and_no_code_makes_a_saved_denial_repeatable() -> None:
    bodies: list[Any] = [{"error": {"message": text}} for text in ROWS]
    bodies += [
        {"error": {"code": code, "message": text}} for code, text in product(TRANSIENT_CODES, SENTENCES[:2])
    ]

    repeated = [
        (status, body)
        for status, body in product((401, 403), bodies)
        if is_repeated(failwell.classify({"http_status": status, "headers": INVITING, "body": body}))
    ]

    assert repeated == []


def test_words_leave_a_denial_what_it_is() -> None:
    for status, kind in ((401, "provider.auth"), (403, "provider.permission")):
        for text in SENTENCES:
            report = failwell.classify({"http_status": status, "body": {"error": {"message": text}}})

            assert report.kind == kind, text


def test_a_documented_code_names_the_rate_limit_of_a_403_and_is_not_repeated() -> None:
    row = {"http_status": 403, "body": {"error": {"errors": [{"reason": "rateLimitExceeded"}], "code": 403}}}

    report = failwell.classify(row)

    assert (report.kind, report.retryable) == ("provider.rate_limited", False)
    assert failwell.classify({**row, "http_status": 401}).kind == "provider.auth"


@contextmanager
def denying(status: int, body: dict[str, Any]) -> Generator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            text = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {
                **INVITING,
                "content-type": "application/json",
                "content-length": str(len(text)),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the base's name)
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


MESSAGE: Any = {"role": "user", "content": "x"}


def with_openai(url: str) -> None:
    import openai

    with openai.OpenAI(api_key="x", base_url=url, max_retries=0) as client:
        client.chat.completions.create(model="m", messages=[MESSAGE])


def with_openai_stream(url: str) -> None:
    import openai

    with openai.OpenAI(api_key="x", base_url=url, max_retries=0) as client:
        client.chat.completions.create(model="m", messages=[MESSAGE], stream=True)


def with_anthropic(url: str) -> None:
    import anthropic

    with anthropic.Anthropic(api_key="x", base_url=url, max_retries=0) as client:
        client.messages.create(model="m", max_tokens=5, messages=[MESSAGE])


def with_httpx(url: str) -> None:
    httpx.get(url).raise_for_status()


def with_requests(url: str) -> None:
    with requests.get(url, timeout=20) as reply:
        reply.raise_for_status()


def with_aiohttp(url: str) -> None:
    async def call() -> None:
        async with aiohttp.ClientSession() as session, session.get(url) as reply:
            reply.raise_for_status()

    asyncio.run(call())


def with_urllib(url: str) -> None:
    try:
        urllib.request.urlopen(url)
    except urllib.error.HTTPError as error:
        error.close()
        raise


CALLERS = [
    with_openai,
    with_openai_stream,
    with_anthropic,
    with_httpx,
    with_requests,
    with_aiohttp,
    with_urllib,
]


@pytest.mark.parametrize("status", [401, 403])
def test_no_client_makes_a_denial_repeatable(status: int) -> None:
    body = {"error": {"message": SENTENCES[0], "type": "rate_limit_error", "code": "rate_limit_exceeded"}}
    with denying(status, body) as url:
        for call in CALLERS:
            with pytest.raises(Exception) as caught:
                call(url)

            assert not is_repeated(failwell.describe(caught.value)), call
            assert not is_repeated(failwell.describe(caught.value, idempotent=True)), call


def test_an_error_inside_a_reply_or_a_stream_is_not_repeated_either() -> None:
    for code, text in product((401, 403, "401", "403", "permission_denied", "unauthenticated"), SENTENCES):
        error = {"error": {"code": code, "message": text}}
        with pytest.raises(Fault) as replied:
            check_reply("openai", error)
        with pytest.raises(Fault) as streamed:
            list(checked("openai", iter([error])))

        assert not is_repeated(failwell.describe(replied.value)), (code, text)
        assert not is_repeated(failwell.describe(streamed.value)), (code, text)


def test_a_printed_denial_is_not_repeated() -> None:
    for status, text in product((401, 403), SENTENCES):
        line = f"openai.APIStatusError: Error code: {status} - {{'error': {{'message': '{text}', 'code': 'rate_limited'}}}}"

        assert not is_repeated(describe_pasted(line)), line


def test_a_fault_that_carries_the_status_is_not_repeated() -> None:
    for status in (401, 403):
        fault = Fault(kind="provider.rate_limited", provider_metadata=ProviderMetadata(status_code=status))

        assert not is_repeated(failwell.describe(fault))


def test_a_stored_report_with_that_status_is_not_repeated() -> None:
    written = failwell.describe(Fault(kind="provider.rate_limited")).to_dict()

    report = ErrorReport.read({**written, "provider_metadata": {"status_code": 403}})

    assert report.kind == "provider.rate_limited"
    assert not is_repeated(report)
    assert is_repeated(replace(report, provider_metadata=None, retryable=True))


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, {"error": {"code": "context_length_exceeded"}}),
        (401, {"error": {"code": "content_policy_violation"}}),
        (403, {"error": {"message": "context length exceeded maximum"}}),
    ],
)
def test_a_denial_is_not_blamed_on_the_content(status: int, body: dict[str, object]) -> None:
    request = httpx.Request("POST", "https://provider.example/v1")
    with pytest.raises(httpx.HTTPStatusError) as caught:
        httpx.Response(status, json=body, request=request).raise_for_status()

    assert failwell.describe(caught.value).kind in ("provider.auth", "provider.permission")


def test_a_denial_beside_an_empty_account_is_the_accounts() -> None:
    def kind(message: str) -> str:
        row = {"body": {"error": {"status": "PERMISSION_DENIED", "message": message}}}
        return failwell.classify(row).kind

    assert kind("Your organization does not have enough balance") == "provider.quota_exhausted"
    assert kind("The caller may not use this project") == "provider.permission"


def test_what_a_gateway_repeats_of_the_provider_is_read_though_it_is_cut() -> None:
    raw = '{"error":{"message":"Your account is suspended due to insufficient balance, please recharge'
    body = {"error": {"message": "Provider returned error", "code": 429, "metadata": {"raw": raw}}}

    assert failwell.classify({"http_status": 429, "body": body}).kind == "provider.quota_exhausted"
