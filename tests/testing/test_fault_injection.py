"""`inject_fault`: failures under each HTTP library, for the first provider, and nothing that leaves this machine."""

import asyncio
import json
import socket
from importlib import import_module
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest
import requests

from failwell.testing import LabTurn, inject_fault, lab
from failwell.testing.faults_spec import fault_names, parse_fault

OPENAI = "https://api.openai.com/v1/chat/completions"
ANTHROPIC = "https://api.anthropic.com/v1/messages"


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_sync_and_async_clients_of_httpx_fail_as_often_as_the_fault_says(library: Any) -> None:
    async def post_twice() -> list[int]:
        async with library.AsyncClient() as client:
            return [(await client.post(OPENAI, json={})).status_code for _ in range(2)]

    with inject_fault("server_error:3") as injection, library.Client() as client:
        codes = [client.post(OPENAI, json={}).status_code for _ in range(2)]
        codes += asyncio.run(post_twice())

    assert codes == [500, 500, 500, 200]
    assert (injection.calls, injection.injected, injection.host) == (4, 3, "api.openai.com")


def test_the_other_libraries_fail_too() -> None:
    async def post() -> list[int]:
        async with aiohttp.ClientSession() as session:
            codes: list[int] = []
            for _ in range(2):
                async with session.post(OPENAI, json={}, params={"a": "b"}) as reply:
                    codes.append(reply.status)
            return codes

    with inject_fault("overloaded"):
        assert [requests.post(OPENAI, json={}).status_code for _ in range(2)] == [503, 200]
    with inject_fault("overloaded"):
        assert asyncio.run(post()) == [503, 200]
    with inject_fault("overloaded"):
        aws: Any = import_module("boto3")
        config = import_module("botocore.config").Config(retries={"total_max_attempts": 1})
        client = aws.client(
            "bedrock-runtime", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b", config=config
        )
        ask = {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "x"}]}]}
        with pytest.raises(Exception, match="ServiceUnavailableException"):
            client.converse(**ask)
        assert client.converse(**ask)["output"]["message"]["content"]
        client.close()


def test_only_the_first_provider_fails_so_that_a_fallback_has_a_way_out() -> None:
    with inject_fault("bad_key") as injection, httpx.Client() as client:
        codes = [client.post(url, json={}).status_code for url in (OPENAI, ANTHROPIC, OPENAI)]

    assert codes == [401, 200, 401]
    assert (injection.calls, injection.injected) == (3, 2)


def test_a_model_of_another_provider_fails_in_the_words_of_its_own() -> None:
    base = "https://us-east5-aiplatform.googleapis.com/v1/projects/lab/locations/us-east5/publishers"
    with inject_fault("overload:2"), httpx.Client() as client:
        gemini = client.post(f"{base}/google/models/gemini:generateContent", json={})
        claude = client.post(f"{base}/anthropic/models/claude:rawPredict", json={})

    assert gemini.json()["error"]["status"] == "UNAVAILABLE"
    assert claude.json()["error"]["type"] == "overloaded_error"


def test_a_context_overflow_lasts_until_the_request_is_smaller() -> None:
    with inject_fault("overflow"), httpx.Client() as client:
        codes = [
            client.post(OPENAI, json={"messages": "x" * size}).status_code for size in (90, 90, 120, 40, 40)
        ]

    assert codes == [400, 400, 400, 200, 200]


def test_a_stalled_stream_sends_its_first_chunk_and_then_nothing() -> None:
    with inject_fault("stall", stall=0.2), httpx.Client() as client:
        with client.stream("POST", OPENAI, json={"stream": True}) as reply:
            lines = reply.iter_lines()
            first = next(lines)
            with pytest.raises(httpx.ReadError):
                list(lines)
        again = client.post(OPENAI, json={"stream": True})

    assert json.loads(first.removeprefix("data: "))["object"] == "chat.completion.chunk"
    assert "[DONE]" in again.text


def test_a_rate_limit_asks_for_the_delay_that_was_chosen() -> None:
    with inject_fault("rate_limit", delay=3), httpx.Client() as client:
        short = client.post(OPENAI, json={})
    with inject_fault("rate_limit@ms", delay=6.5), httpx.Client() as client:
        usual = client.post(OPENAI, json={})

    assert (short.status_code, short.headers["retry-after"]) == (429, "3")
    assert usual.headers["retry-after-ms"] == "6500"


def test_a_call_through_a_proxy_does_not_leave_either() -> None:
    # Nothing listens there: the call would fail if it went to the proxy.
    with inject_fault("overloaded"), httpx.Client(proxy="http://127.0.0.1:9") as client:
        codes = [client.post(OPENAI, json={}).status_code for _ in range(2)]
    with inject_fault("overloaded"):
        proxies = {"https": "http://127.0.0.1:9"}
        codes += [requests.post(OPENAI, json={}, proxies=proxies).status_code for _ in range(2)]

    assert codes == [503, 200, 503, 200]


def patched() -> list[Any]:
    """What is replaced while a fault is injected."""
    owners: list[tuple[Any, str]] = [
        (socket, "getaddrinfo"),
        (httpx.Client, "_transport_for_url"),
        (httpx2.AsyncClient, "_transport_for_url"),
        (requests.Session, "send"),
        (aiohttp.ClientSession, "_request"),
    ]
    return [getattr(owner, name) for owner, name in owners]


def test_the_users_own_transport_answers_what_does_not_fail() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"url": str(request.url)})

    with inject_fault("server_error"), httpx.Client(transport=httpx.MockTransport(answer)) as client:
        replies = [client.post(OPENAI, json={}) for _ in range(2)]
        other = client.get("https://example.com/")

    assert [reply.status_code for reply in replies] == [500, 200]
    assert (replies[1].json(), other.json()) == ({"url": OPENAI}, {"url": "https://example.com/"})


def test_names_of_providers_are_not_looked_up_and_everything_is_undone_afterwards() -> None:
    before = patched()

    with inject_fault("rate_limit"):
        with pytest.raises(OSError, match="does not call api"):
            socket.create_connection(("api.openai.com", 443), timeout=1)
        assert socket.getaddrinfo("127.0.0.1", 80)

    assert patched() == before


def test_a_script_says_what_the_provider_answers_after_the_failures() -> None:
    with inject_fault("overloaded") as injection, httpx.Client() as client:
        injection.lab.script("openai", LabTurn("Paid."))
        client.post(OPENAI, json={})
        reply = client.post(OPENAI, json={}).json()

    assert reply["choices"][0]["message"]["content"] == "Paid."


def test_a_lab_of_your_own_asks_for_the_delay_as_well() -> None:
    with lab(delay=2) as fake:
        codes = [
            httpx.post(fake.url("openai", name))
            for name in ("rate_limited", "rate_limited@prose", "rate_limited@none")
        ]

    assert codes[0].headers["retry-after"] == "2"
    assert codes[1].json()["error"]["message"].endswith("Please try again in 2s.")
    assert "retry-after" not in codes[2].headers


def test_every_name_is_a_fault_and_lasting_ones_last() -> None:
    for name in fault_names():
        assert parse_fault(name).name == name
    assert [parse_fault(text).times for text in ("rate_limit", "quota", "overload:4", "stall:always")] == [
        1,
        None,
        4,
        None,
    ]
    with pytest.raises(ValueError, match="no fault `ok`"):
        parse_fault("ok")
