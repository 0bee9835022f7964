"""Real clients and a server that stalls: the stream ends on time, its connection and its thread with it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest

import failwell
from failwell import Backoff, Chain, Entry
from failwell.calls import StreamTimedOut, StreamTimeouts, limit_astream, limit_stream
from failwell.calls.retry import retry
from failwell.testing.laboratory.server import Lab, lab
from tests.calls.acting import caught, ledger

httpx: Any = pytest.importorskip("httpx")
openai: Any = pytest.importorskip("openai")
MESSAGES: list[Any] = [{"role": "user", "content": "hello"}]
SHORT = 0.15
"""Seconds of a deadline; the server stalls for much longer."""
PATIENCE = 20.0
"""Seconds after which a test that hangs fails. The server stalls for longer."""


@pytest.fixture(scope="module")
def fake() -> Iterator[Lab]:
    with lab(stall=60.0) as running:
        yield running


@pytest.fixture(autouse=True)
def _nothing_is_left(fake: Lab) -> Iterator[None]:
    yield
    for thread in threading.enumerate():
        if thread.name in ("failwell-stream", "failwell-lab-call"):
            thread.join(PATIENCE)
            assert not thread.is_alive()


def _client(fake: Lab, scenario: str) -> Any:
    return openai.OpenAI(api_key="sk-lab", base_url=fake.url("openai", scenario), max_retries=0)


def _async_client(fake: Lab, scenario: str) -> Any:
    return openai.AsyncOpenAI(api_key="sk-lab", base_url=fake.url("openai", scenario), max_retries=0)


def test_the_stream_of_an_sdk_is_shut_down_when_it_stalls(fake: Lab) -> None:
    client = _client(fake, "slow_body")
    chunks: list[Any] = []

    def read() -> None:
        nonlocal chunks
        stream = client.chat.completions.create(model="gpt-4o-mini", messages=MESSAGES, stream=True)
        for chunk in limit_stream(stream, StreamTimeouts(idle=SHORT)):
            chunks += [chunk]

    error = caught(read)

    report = failwell.describe(error)
    assert (report.kind, report.details["phase"]) == ("provider.stream_interrupted", "idle")
    assert len(chunks) == report.details["chunks"] == 1
    assert "hello" not in report.to_json()


def test_an_async_stream_of_an_sdk_is_closed_when_it_stalls(fake: Lab) -> None:
    async def read(scenario: str, timeouts: StreamTimeouts) -> Any:
        async with _async_client(fake, scenario) as client:
            opening = client.chat.completions.create(model="gpt-4o-mini", messages=MESSAGES, stream=True)
            try:
                async for _ in limit_astream(opening, timeouts):
                    pass
            except StreamTimedOut as error:
                assert asyncio.all_tasks() == {asyncio.current_task()}
                return error
        return None

    opened = asyncio.run(read("slow_body", StreamTimeouts(first=PATIENCE, idle=SHORT)))
    silent = asyncio.run(read("slow_headers", StreamTimeouts(first=SHORT)))

    assert (opened.kind, opened.phase, opened.chunks) == ("provider.stream_interrupted", "idle", 1)
    assert (silent.kind, silent.phase, silent.chunks) == ("provider.timeout", "first", 0)


def test_a_call_that_stalls_before_its_first_chunk_is_sent_again(fake: Lab) -> None:
    before = fake.requests("openai", "slow_headers")
    client: Any = None

    @retry(stream=StreamTimeouts(first=SHORT), backoff=Backoff(first=0.0), attempts=3, name="ask")
    async def ask() -> AsyncIterator[Any]:
        return await client.chat.completions.create(model="gpt-4o-mini", messages=MESSAGES, stream=True)

    async def read() -> None:
        nonlocal client
        async with _async_client(fake, "slow_headers") as client:
            async for _ in await ask():
                pass

    error = caught(lambda: asyncio.run(read()))

    assert [row.kind for row in ledger(error).attempts] == ["provider.timeout"] * 3
    assert len(fake.requests("openai", "slow_headers")) - len(before) == 3


def test_lines_of_httpx_and_requests_end_on_time(fake: Lab) -> None:
    requests: Any = pytest.importorskip("requests")
    url = f"{fake.url('openai', 'slow_body')}/chat/completions"
    body = {"model": "gpt-4o-mini", "messages": MESSAGES, "stream": True}

    async def read_httpx() -> None:
        async with httpx.AsyncClient() as client, client.stream("POST", url, json=body) as reply:
            async for _ in limit_astream(reply.aiter_lines(), StreamTimeouts(idle=SHORT)):
                pass

    def read_requests() -> None:
        with requests.post(url, json=body, stream=True, timeout=PATIENCE) as reply:
            for _ in limit_stream(reply, StreamTimeouts(idle=SHORT)):
                pass

    for read in (lambda: asyncio.run(read_httpx()), read_requests):
        assert failwell.describe(caught(read)).details["phase"] == "idle"


def test_a_chain_of_real_clients_goes_on_when_the_first_one_stalls(fake: Lab) -> None:
    async def read() -> tuple[list[Any], Any]:
        async with _async_client(fake, "slow_headers") as stalled, _async_client(fake, "ok") as fine:

            def entry(name: str, client: Any) -> Entry[Any]:
                create = client.chat.completions.create
                return Entry(
                    provider=name, model="gpt-4o-mini", call=create, stream=StreamTimeouts(first=PATIENCE)
                )

            chain: Chain[Any] = Chain(
                replace(entry("stalled", stalled), stream=StreamTimeouts(first=SHORT)), entry("fine", fine)
            )
            stream = chain.astream(model="gpt-4o-mini", messages=MESSAGES, stream=True)
            return [chunk async for chunk in stream], chain.source

    chunks, source = asyncio.run(read())

    assert len(chunks) > 1
    assert source.provider == "fine"
    assert [(entry.provider, entry.report.kind) for entry in source.passed_over] == [
        ("stalled", "provider.timeout")
    ]


def test_a_plain_client_that_waits_for_its_headers_ends_on_time_and_its_thread_with_the_clients_timeout(
    fake: Lab,
) -> None:
    client = _client(fake, "slow_headers").with_options(timeout=3 * SHORT)

    @retry(stream=StreamTimeouts(first=SHORT), attempts=1)
    def ask() -> Iterator[Any]:
        return client.chat.completions.create(model="gpt-4o-mini", messages=MESSAGES, stream=True)

    error = caught(lambda: list(ask()))

    assert isinstance(error, StreamTimedOut)
    # That its thread ends is checked behind every test of this file.
