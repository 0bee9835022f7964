"""Streams: what a provider's client would read, where they stop, and how their frames add up."""

import json
import struct
from binascii import crc32
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwell.testing.laboratory.dialects.table import dialect, dialect_names
from failwell.testing.laboratory.http_wire import aws_event, aws_exception, frame
from failwell.testing.laboratory.server import Lab, lab
from tests.testing.laboratory.asking import ask

PATH = "/v1/streams/lab/stream"
"""A path that every dialect takes for a request to stream."""
TERMINATORS = {
    "openai": b"[DONE]",
    "azure-openai": b"[DONE]",
    "openrouter": b"[DONE]",
    "mistral": b"[DONE]",
    "huggingface": b"[DONE]",
    "groq": b"[DONE]",
    "together": b"[DONE]",
    "anthropic": b"message_stop",
    "google-genai": b"finishReason",
    "google-vertex": b"finishReason",
    "bedrock": b"messageStop",
    "cohere": b"message-end",
    "ollama": b'"done": true',
    "replicate": b"event: done",
}
STREAMING = sorted(TERMINATORS)


@pytest.fixture(scope="module")
def fake() -> Iterator[Lab]:
    with lab(stall=0) as opened:
        yield opened


def streamed(fake: Lab, name: str, scenario: str) -> bytes:
    got = ask(fake.url(name, scenario), PATH, stream=True)
    assert (got.status, got.headers["transfer-encoding"]) == (200, "chunked")
    return got.body


def test_every_dialect_that_truncates_has_a_known_last_event() -> None:
    truncating = {
        name for name in dialect_names() if (found := dialect(name)) and found.answer("truncated_stream")
    }

    assert truncating == {*STREAMING, "plain"}


@pytest.mark.parametrize("name", STREAMING)
def test_a_whole_stream_has_its_last_event(fake: Lab, name: str) -> None:
    said = streamed(fake, name, "ok")

    assert b"Hello" in said
    assert TERMINATORS[name] in said


@pytest.mark.parametrize("name", STREAMING)
def test_a_truncated_stream_ends_cleanly_without_its_last_event(fake: Lab, name: str) -> None:
    said = streamed(fake, name, "truncated_stream")

    assert b"Hello" in said
    assert TERMINATORS[name] not in said


@pytest.mark.parametrize("name", STREAMING)
def test_an_error_in_a_stream_comes_after_its_first_words(fake: Lab, name: str) -> None:
    said = streamed(fake, name, "in_stream_error").lower()

    told = max(said.rfind(word) for word in (b"error", b"exception"))
    assert 0 < said.find(b"hello") < told
    assert said.find(b"error") == -1 or said.find(b"hello") < said.find(b"error")


def events(said: bytes) -> list[Any]:
    lines = said.decode().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def test_anthropic_names_every_event_twice(fake: Lab) -> None:
    said = streamed(fake, "anthropic", "ok").decode()

    named = [line[7:] for line in said.splitlines() if line.startswith("event: ")]
    assert named == [event["type"] for event in events(said.encode())]
    assert (named[0], named[-1]) == ("message_start", "message_stop")


def test_a_tool_call_breaks_off_in_the_middle_of_its_arguments(fake: Lab) -> None:
    deltas = [
        event["choices"][0]["delta"] for event in events(streamed(fake, "openai", "malformed_tool_call"))
    ]

    arguments = "".join(
        call["function"]["arguments"] for delta in deltas for call in delta.get("tool_calls", ())
    )
    with pytest.raises(json.JSONDecodeError):
        json.loads(arguments)


def test_a_response_numbers_its_events(fake: Lab) -> None:
    got = ask(fake.url("openai", "ok"), "/v1/responses", stream=True)

    told = events(got.body)
    assert [event["sequence_number"] for event in told] == list(range(len(told)))
    assert (told[0]["type"], told[-1]["type"]) == ("response.created", "response.completed")
    assert told[-1]["response"]["output"][0]["content"][0]["text"] == "".join(
        event["delta"] for event in told if event["type"] == "response.output_text.delta"
    )


def test_lines_of_ollama_are_each_a_whole_object(fake: Lab) -> None:
    lines = [json.loads(line) for line in streamed(fake, "ollama", "ok").splitlines()]

    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    assert "".join(line["message"]["content"] for line in lines) == "Hello from the lab."


def frames(said: bytes) -> list[tuple[dict[str, str], bytes]]:
    """The messages of an AWS event stream, with every length and checksum looked at."""
    found: list[tuple[dict[str, str], bytes]] = []
    while said:
        total, told = struct.unpack("!II", said[:8])
        assert struct.unpack("!I", said[8:12])[0] == crc32(said[:8])
        assert struct.unpack("!I", said[total - 4 : total])[0] == crc32(said[: total - 4])
        found.append((headers(said[12 : 12 + told]), said[12 + told : total - 4]))
        said = said[total:]
    return found


def headers(said: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    while said:
        size = said[0]
        kind, length = struct.unpack("!BH", said[1 + size : 4 + size])
        assert kind == 7
        found[said[1 : 1 + size].decode()] = said[4 + size : 4 + size + length].decode()
        said = said[4 + size + length :]
    return found


def test_bedrock_speaks_in_frames_that_add_up(fake: Lab) -> None:
    got = ask(fake.url("bedrock", "ok"), "/model/lab/converse-stream")

    told = frames(got.body)
    assert got.headers["content-type"] == "application/vnd.amazon.eventstream"
    assert [head[":event-type"] for head, _ in told][-2:] == ["messageStop", "metadata"]
    assert {head[":message-type"] for head, _ in told} == {"event"}
    assert all(isinstance(json.loads(payload), dict) for _, payload in told)


def test_bedrock_fails_in_a_frame_of_its_own_kind(fake: Lab) -> None:
    got = ask(fake.url("bedrock", "in_stream_error"), "/model/lab/converse-stream")

    head, payload = frames(got.body)[-1]
    assert (head[":message-type"], head[":exception-type"]) == ("exception", "serviceUnavailableException")
    assert json.loads(payload).keys() == {"message"}


@given(
    st.dictionaries(st.text(min_size=1, max_size=20), st.text(max_size=200), max_size=5),
    st.binary(max_size=2_000),
)
def test_a_frame_is_read_back_as_it_was_written(head: dict[str, str], payload: bytes) -> None:
    assert frames(frame(head, payload)) == [(head, payload)]


def test_an_event_and_an_exception_differ_in_their_headers() -> None:
    told = frames(
        aws_event("messageStart", {"role": "assistant"}) + aws_exception("throttlingException", "x")
    )

    assert [set(head) for head, _ in told] == [
        {":event-type", ":message-type", ":content-type"},
        {":exception-type", ":message-type", ":content-type"},
    ]
