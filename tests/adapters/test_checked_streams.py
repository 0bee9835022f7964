"""A stream is read to its end: what breaks it, cuts it or is missing from it comes out as a fault."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any, Self

import pytest

import failwell
from failwell import Category, Fault, adapters
from failwell.errors import Certainty
from failwell.errors.faults import ProviderTransient
from tests.adapters.replies import (
    as_json,
    as_object,
    caught,
    chat_chunk,
    claude_stream,
    event,
    gemini,
    ollama,
    output,
    response,
    tool,
)  # fmt: skip

TRUNCATED, REFUSED = "provider.output_truncated", "provider.content_refused"
INVALID, BROKEN = "provider.output_invalid", "provider.stream_interrupted"

OPENAI: list[Any] = [
    chat_chunk("a"),
    chat_chunk("b"),
    chat_chunk(stop="stop"),
    {"choices": [], "usage": {"prompt_tokens": 1}},
]
CLAUDE = claude_stream("end_turn", {"type": "text_delta", "text": "a"})
GEMINI = [gemini(None, {"text": "a"}), gemini("STOP", {"text": "b"})]
COHERE = [
    event("message-start"),
    event("content-delta", delta={"message": {"content": {"text": "a"}}}),
    event("message-end", delta={"finish_reason": "COMPLETE", "usage": {"tokens": {"output_tokens": 2}}}),
]
BEDROCK = [
    {"messageStart": {"role": "assistant"}},
    {"contentBlockDelta": {"delta": {"text": "a"}, "contentBlockIndex": 0}},
    {"contentBlockStop": {"contentBlockIndex": 0}},
    {"messageStop": {"stopReason": "end_turn"}},
    {"metadata": {"usage": {"inputTokens": 10, "outputTokens": 20}}},
]
OLLAMA = [ollama(done=False, content="a"), ollama(stop="stop", content="")]
GENERATED = [
    {"token": {"text": "a"}, "generated_text": None, "details": None},
    {"token": {"text": "</s>"}, "generated_text": "a", "details": {"finish_reason": "eos_token"}},
]
RESPONSES = [
    event("response.created", response=response("in_progress")),
    event("response.output_text.delta", delta="a"),
    event("response.completed", response=response("completed", output(type="output_text", text="a"))),
]
MISTRAL = [{"data": chunk} for chunk in OPENAI]

STREAMS: list[tuple[str, list[Any], int]] = [
    ("openai", OPENAI, 2),
    ("anthropic", CLAUDE, len(CLAUDE) - 1),
    ("google", GEMINI, 1),
    ("cohere", COHERE, 2),
    ("bedrock", BEDROCK, 3),
    ("ollama", OLLAMA, 1),
    ("huggingface", GENERATED, 1),
    ("openai", RESPONSES, 2),
    ("mistral", MISTRAL, 2),
]
IDS = [f"{name}-{place}" for place, (name, _, _) in enumerate(STREAMS)]


@pytest.mark.parametrize(("provider", "chunks", "last"), STREAMS, ids=IDS)
def test_a_stream_that_ends_with_its_last_event_passes(provider: str, chunks: list[Any], last: int) -> None:
    # boto3 hands out dictionaries alone.
    for shape in [as_json] if provider == "bedrock" else [as_json, as_object]:
        given = [shape(chunk) for chunk in chunks]

        assert adapters.check_reply(provider, given) is None
        assert list(failwell.checked(provider, iter(given))) == given


@pytest.mark.parametrize(("provider", "chunks", "last"), STREAMS, ids=IDS)
def test_a_stream_that_merely_ends_was_interrupted(provider: str, chunks: list[Any], last: int) -> None:
    report = failwell.describe(caught(provider, chunks[:last]))

    assert (report.kind, report.certainty) == (BROKEN, Certainty.PARTIAL)
    assert report.details["chunks"] == last
    assert not report.retryable


def test_a_done_marker_ends_a_raw_stream() -> None:
    lines = ['data: {"choices": [{"delta": {"content": "a"}}]}', "data: [DONE]"]

    assert adapters.check_reply("openai", lines) is None
    assert caught("openai", lines[:1]).kind == BROKEN


def test_a_stream_of_plain_texts_has_no_end_marker_and_passes() -> None:
    assert adapters.check_reply("huggingface", ["a", "b"]) is None


def test_a_stream_without_a_single_chunk_was_interrupted() -> None:
    assert caught("openai", []).kind == BROKEN


@pytest.mark.parametrize(
    ("provider", "chunks", "kind"),
    [
        ("openai", [chat_chunk("a"), chat_chunk(stop="length")], TRUNCATED),
        ("openai", [chat_chunk(refusal="no"), chat_chunk(stop="stop")], REFUSED),
        ("openai", [chat_chunk(stop="stop")], INVALID),
        ("openai", [chat_chunk(tool_calls=tool('{"q"')), chat_chunk(tool_calls=tool(": ")), chat_chunk(stop="tool_calls")],
         INVALID),
        ("openai", [*RESPONSES[:2], event("response.incomplete", response=response("incomplete"))], TRUNCATED),
        ("openai", [*RESPONSES[:2], event("error", code="server_error", message="x")], "provider.unavailable"),
        ("anthropic", claude_stream("refusal", {"type": "text_delta", "text": "a"}), REFUSED),
        ("anthropic", claude_stream("tool_use", {"type": "input_json_delta", "partial_json": '{"q": '}), INVALID),
        ("anthropic", claude_stream("end_turn"), INVALID),
        ("anthropic", [*CLAUDE[:3], event("error", error={"type": "overloaded_error", "message": "x"})],
         "provider.overloaded"),
        ("google", [gemini(None, {"text": "a"}), gemini("SAFETY")], REFUSED),
        ("google", [{"promptFeedback": {"blockReason": "SAFETY"}}], REFUSED),
        ("cohere", [*COHERE[:2], event("message-end", delta={"finish_reason": "MAX_TOKENS"})], TRUNCATED),
        ("bedrock", [*BEDROCK[:2], {"throttlingException": {"message": "slow down"}}], "provider.rate_limited"),
        ("bedrock", [*BEDROCK[:2], {"messageStop": {"stopReason": "max_tokens"}}], TRUNCATED),
        ("ollama", [ollama(done=False, content="a"), {"error": "llama runner process has terminated"}],
         BROKEN),
    ],
)  # fmt: skip
def test_a_stream_that_ends_badly_is_raised_as_what_it_is(
    provider: str, chunks: list[Any], kind: str
) -> None:
    assert caught(provider, chunks).kind == kind
    with pytest.raises(Fault) as raised:
        list(failwell.checked(provider, chunks))
    assert raised.value.kind == kind


def test_pieces_of_a_tools_arguments_are_put_together_before_they_are_judged() -> None:
    chunks = [
        chat_chunk(tool_calls=tool('{"q"')),
        chat_chunk(tool_calls=tool(": 1}")),
        chat_chunk(stop="tool_calls"),
    ]

    assert adapters.check_reply("openai", chunks) is None


def test_an_error_event_after_some_content_leaves_a_part() -> None:
    report = failwell.describe(
        caught("anthropic", [*CLAUDE[:3], event("error", error={"type": "overloaded_error"})])
    )

    assert (report.category, report.certainty) == (Category.TRANSIENT, Certainty.PARTIAL)


def failing(chunks: list[Any], error: BaseException) -> Iterator[Any]:
    yield from chunks
    raise error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConnectionResetError(104, "reset by peer"), BROKEN),
        (TimeoutError(), BROKEN),
        (ValueError("x"), "internal.bug"),
    ],
)
def test_what_breaks_a_stream_is_translated_and_its_cause_kept(error: Exception, kind: str) -> None:
    stream = failwell.checked("openai", failing(OPENAI[:2], error))

    with pytest.raises(Fault) as raised:
        list(stream)

    report = failwell.describe(raised.value)
    assert (report.kind, report.certainty, report.provider) == (kind, Certainty.PARTIAL, "openai")
    assert raised.value.__cause__ is error


def test_a_failure_before_the_first_chunk_leaves_nothing_behind() -> None:
    with pytest.raises(Fault) as raised:
        list(failwell.checked("openai", failing([], ConnectionRefusedError(111, "refused"))))

    assert failwell.describe(raised.value).certainty is Certainty.NOT_SENT


def test_a_fault_of_ours_passes_through_untouched() -> None:
    fault = Fault(kind="tool.failed")

    with pytest.raises(Fault) as raised:
        list(failwell.checked("openai", failing([], fault)))

    assert raised.value is fault
    assert fault.__cause__ is None


@pytest.mark.parametrize("error", [KeyboardInterrupt(), asyncio.CancelledError()])
def test_an_interrupt_is_never_translated(error: BaseException) -> None:
    with pytest.raises(type(error)):
        list(failwell.checked("openai", failing(OPENAI[:1], error)))


def test_leaving_a_stream_early_is_no_failure() -> None:
    with failwell.checked("openai", iter(OPENAI)) as stream:
        first = next(iter(stream))

    assert first == OPENAI[0]


class Opened:
    """An SDK's stream: opened by a manager, closed by it, with fields of its own."""

    def __init__(self, chunks: list[Any]) -> None:
        self.chunks = chunks
        self.closed = False
        self.request_id = "req_1"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def __iter__(self) -> Iterator[Any]:
        return iter(self.chunks)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.closed = True

    async def __aiter__(self) -> AsyncIterator[Any]:
        for chunk in self.chunks:
            yield chunk


class Opening:
    """An SDK's manager: not a stream before it is entered."""

    def __init__(self, stream: Opened) -> None:
        self.stream = stream

    def __enter__(self) -> Opened:
        return self.stream

    def __exit__(self, *_: object) -> None:
        self.stream.closed = True


def test_an_sdks_manager_is_entered_and_left() -> None:
    inner = Opened(OPENAI[:2])

    with pytest.raises(ProviderTransient), failwell.checked("openai", Opening(inner)) as stream:
        assert stream.request_id == "req_1"
        list(stream)

    assert inner.closed


def test_an_asynchronous_stream_is_checked_alike() -> None:
    async def read(chunks: list[Any]) -> list[Any]:
        async with failwell.checked("openai", coming(chunks)) as stream:
            return [chunk async for chunk in stream]

    async def coming(chunks: list[Any]) -> Opened:
        return Opened(chunks)

    assert asyncio.run(read(OPENAI)) == OPENAI
    with pytest.raises(ProviderTransient) as raised:
        asyncio.run(read(OPENAI[:2]))
    assert raised.value.kind == BROKEN


def test_an_asynchronous_stream_may_be_read_without_a_manager() -> None:
    async def read() -> list[Any]:
        return [chunk async for chunk in failwell.checked("anthropic", Opened(CLAUDE[:3]))]

    with pytest.raises(ProviderTransient):
        asyncio.run(read())


def test_bedrocks_reply_is_opened_for_its_stream() -> None:
    reply = {"ResponseMetadata": {"RequestId": "r"}, "stream": iter(BEDROCK)}

    assert list(failwell.checked("bedrock", reply)) == BEDROCK


def test_a_stream_that_broke_once_stays_ended() -> None:
    stream = failwell.checked("openai", iter(OPENAI[:1]))

    with pytest.raises(ProviderTransient):
        list(stream)

    assert list(stream) == []


def test_an_interrupted_stream_has_no_cause_of_its_own_making() -> None:
    fault = caught("openai", OPENAI[:1])
    with pytest.raises(ProviderTransient) as raised:
        list(failwell.checked("openai", OPENAI[:1]))

    assert failwell.describe(fault).causes == ()
    assert failwell.describe(raised.value).causes == ()
