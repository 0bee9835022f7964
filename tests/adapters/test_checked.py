"""A reply that came with a 200 and is no answer is raised as what it is, in every vendor's spelling."""

import logging
from enum import StrEnum
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import failwell
from failwell import Category, Fault, adapters
from failwell.errors import Certainty
from failwell.errors.faults import ProviderCapability, ProviderTransient
from tests.adapters.replies import (
    SAID,
    TEXT,
    as_json,
    as_object,
    caught,
    chat,
    chat_chunk,
    claude,
    cohere,
    converse,
    gemini,
    ollama,
    output,
    response,
    tool,
)  # fmt: skip
from tests.specimens import each

TRUNCATED, REFUSED = "provider.output_truncated", "provider.content_refused"
INVALID, TOO_LONG, BROKEN = (
    "provider.output_invalid",
    "provider.context_too_long",
    "provider.stream_interrupted",
)


FAILED: list[tuple[str, Any, str]] = [
    ("openai", chat("length"), TRUNCATED),
    ("openai", chat("content_filter", None), REFUSED),
    ("openai", chat("stop", None, refusal="I cannot talk about " + SAID), REFUSED),
    ("openai", chat("stop", ""), INVALID),
    ("openai", chat("stop", None), INVALID),
    ("openai", {"choices": [], "usage": None}, INVALID),
    ("openai", {"choices": None}, INVALID),
    ("openai", chat("tool_calls", None, tool_calls=tool('{"q": "x')), INVALID),
    ("openai", chat("tool_calls", None, tool_calls=tool('["x"]')), INVALID),
    ("openai", chat("function_call", None, function_call={"name": "f", "arguments": "{"}), INVALID),
    ("openai", chat("length", None, tool_calls=tool('{"q": "x')), TRUNCATED),
    ("openai", {"choices": [{"finish_reason": "length", "text": SAID}]}, TRUNCATED),
    ("openai", {"object": "list", "data": [], "usage": {"prompt_tokens": 1}}, INVALID),
    ("openai", response("incomplete", output(type="output_text", text=SAID), reason="max_output_tokens"), TRUNCATED),
    ("openai", response("incomplete", reason="content_filter"), REFUSED),
    ("openai", response("incomplete", output(type="output_text", text=SAID)), TRUNCATED),
    ("openai", response("completed", output(type="refusal", refusal="no, " + SAID)), REFUSED),
    ("openai", response("completed", {"type": "reasoning", "summary": []}), INVALID),
    ("openai", response("completed", {"type": "function_call", "arguments": "{'q': 1}"}), INVALID),
    ("openai", response("failed") | {"error": {"code": "server_error", "message": "x"}}, "provider.unavailable"),
    ("openai", response("failed") | {"error": {"code": "rate_limit_exceeded", "message": "x"}}, "provider.rate_limited"),
    ("openai", response("cancelled"), "provider.stream_interrupted"),
    ("openrouter", {"error": {"code": 429, "message": "slow down"}}, "provider.rate_limited"),
    ("anyone", {"error": "something odd"}, "provider.unknown"),
    ("deepseek", chat("insufficient_system_resource"), "provider.overloaded"),
    ("anthropic", claude("max_tokens", TEXT), TRUNCATED),
    ("anthropic", claude("refusal", TEXT), REFUSED),
    ("anthropic", claude("model_context_window_exceeded", TEXT), TOO_LONG),
    ("anthropic", claude("end_turn"), INVALID),
    ("anthropic", claude("end_turn", {"type": "thinking", "thinking": SAID}), INVALID),
    ("anthropic", claude("tool_use", {"type": "tool_use", "input": '{"q": '}), INVALID),
    ("google", gemini("MAX_TOKENS", {"text": SAID}), TRUNCATED),
    *(("google", gemini(reason), REFUSED) for reason in (
        "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION",
    )),
    ("google", gemini("MALFORMED_FUNCTION_CALL"), "provider.output_rejected"),
    ("google", gemini("UNEXPECTED_TOOL_CALL"), "provider.output_rejected"),
    ("google", gemini("STOP"), INVALID),
    ("google", gemini("STOP", {"text": SAID, "thought": True}), INVALID),
    ("google", {"promptFeedback": {"blockReason": "SAFETY"}}, REFUSED),
    ("google", {"candidates": None, "promptFeedback": {"blockReason": "NEW_REASON"}}, REFUSED),
    ("google", {"candidates": None, "promptFeedback": None}, INVALID),
    ("mistral", chat("length"), TRUNCATED),
    ("mistral", chat("model_length"), TOO_LONG),
    ("mistral", chat("error"), "provider.output_rejected"),
    ("cohere", cohere("MAX_TOKENS"), TRUNCATED),
    ("cohere", cohere("ERROR_TOXIC"), REFUSED),
    ("cohere", cohere("ERROR_LIMIT"), TOO_LONG),
    ("cohere", cohere("TIMEOUT"), BROKEN),
    ("cohere", cohere("COMPLETE", ""), INVALID),
    ("bedrock", converse("max_tokens", {"text": SAID}), TRUNCATED),
    ("bedrock", converse("guardrail_intervened", {"text": SAID}), REFUSED),
    ("bedrock", converse("content_filtered"), REFUSED),
    ("bedrock", converse("model_context_window_exceeded", {"text": SAID}), TOO_LONG),
    ("bedrock", converse("malformed_tool_use"), INVALID),
    ("bedrock", converse("end_turn"), INVALID),
    ("ollama", ollama(stop="length"), TRUNCATED),
    ("ollama", ollama(stop="stop", content=""), INVALID),
    ("ollama", ollama(done=False), BROKEN),
    ("ollama", {"error": "model requires more system memory (9.6 GiB) than is available (7.1 GiB)"}, "resource.system_memory"),
    ("huggingface", {"generated_text": SAID, "details": {"finish_reason": "length"}}, TRUNCATED),
    ("huggingface", [{"generated_text": ""}], INVALID),
    ("anyone", None, INVALID),
    ("anyone", "  ", INVALID),
    ("anyone", '{"choices": []}', INVALID),
    ("anyone", "<!DOCTYPE html><html>welcome</html>", "provider.rejected"),
]  # fmt: skip

GOOD: list[tuple[str, Any]] = [
    ("openai", chat("stop")),
    ("openai", chat("tool_calls", None, tool_calls=tool('{"q": 1}'))),
    ("openai", chat("tool_calls", None, tool_calls=tool(""))),
    ("openai", chat(None)),
    ("openai", chat("stop", None, audio={"id": "a"})),
    ("openai", response("completed", output(type="output_text", text=SAID))),
    ("openai", response("completed", {"type": "image_generation_call", "result": "aGk="})),
    ("openai", response("queued")),
    ("openai", response("in_progress")),
    ("openai", {"object": "list", "data": [{"embedding": [0.1]}]}),
    ("openai", {"created": 1, "data": [{"b64_json": "aGk="}]}),
    ("anthropic", claude("end_turn", TEXT)),
    ("anthropic", claude("tool_use", {"type": "tool_use", "input": {"q": 1}})),
    ("anthropic", claude("pause_turn", {"type": "server_tool_use", "input": {}})),
    ("google", gemini("STOP", {"text": SAID})),
    ("google", gemini("STOP", {"functionCall": {"name": "f", "args": {}}})),
    ("google", gemini("STOP", {"inlineData": {"data": "aGk="}})),
    ("mistral", chat("stop", [{"type": "thinking", "thinking": []}, {"type": "text", "text": "x"}])),
    ("cohere", cohere("COMPLETE")),
    ("bedrock", converse("tool_use", {"toolUse": {"input": {"q": 1}}})),
    ("ollama", ollama(stop="stop")),
    ("ollama", ollama(stop="load", content="")),
    ("ollama", {"response": "x", "done": True}),
    ("huggingface", [{"generated_text": "x"}]),
    ("anyone", "a plain text"),
    ("anyone", {"some": "shape nobody knows"}),
    ("anyone", object()),
    ("anyone", 7),
]


@pytest.mark.acceptance("pipelex 45")
@each("shape", [as_json, as_object], ids=["json", "object"])
@each(("provider", "reply", "kind"), FAILED)
def test_a_reply_that_is_no_answer_is_raised_as_what_it_is(
    provider: str, reply: Any, kind: str, shape: Any
) -> None:
    report = failwell.describe(caught(provider, shape(reply)))

    assert report.kind == kind
    assert report.provider == provider
    assert "diagnosis" not in report.to_json()


@each("shape", [as_json, as_object], ids=["json", "object"])
@each(("provider", "reply"), GOOD)
def test_a_reply_that_answers_passes_in_silence(provider: str, reply: Any, shape: Any) -> None:
    assert adapters.check_reply(provider, shape(reply)) is None


@pytest.mark.acceptance("pipelex 45")
@pytest.mark.parametrize(
    "reply",
    [chat("length"), response("incomplete"), claude("max_tokens", TEXT), gemini("MAX_TOKENS"), converse("max_tokens"),
     cohere("MAX_TOKENS"), ollama(stop="length")],
)  # fmt: skip
def test_what_a_useless_answer_cost_is_still_told(reply: dict[str, Any]) -> None:
    report = failwell.describe(caught("anyone", reply))

    assert report.details["usage"] == {"input_tokens": 10, "output_tokens": 20}


def test_a_cut_answer_names_its_stop_its_model_and_its_id() -> None:
    report = failwell.describe(caught("openai", chat("length")))

    assert (report.model, report.details["stop"]) == ("m-1", "length")
    assert report.provider_metadata is not None
    assert report.provider_metadata.request_id == "chatcmpl-1"
    assert report.certainty is Certainty.PARTIAL
    assert report.category is Category.CONTENT
    assert not report.retryable


def test_the_family_says_who_reacts() -> None:
    assert isinstance(caught("openai", chat("length")), ProviderCapability)
    assert isinstance(caught("openai", [chat_chunk("x")]), ProviderTransient)


@pytest.mark.acceptance("pipelex 46")
@pytest.mark.parametrize(
    ("provider", "reply"),
    [
        ("openai", chat("content_filter")),
        ("openai", chat("stop", None, refusal="No.")),
        ("anthropic", claude("refusal", TEXT)),
        ("google", gemini("SAFETY")),
        ("google", {"promptFeedback": {"blockReason": "SAFETY"}}),
    ],
    ids=["content_filter", "a refusal", "refusal", "SAFETY", "a blocked prompt"],
)
def test_what_a_provider_refuses_to_say_is_about_the_content(provider: str, reply: Any) -> None:
    report = failwell.describe(caught(provider, reply))

    assert (report.kind, report.category, report.retryable) == (REFUSED, "content", False)


@pytest.mark.acceptance("pipelex 46")
def test_an_answer_that_was_withheld_was_begun_and_a_prompt_that_was_blocked_was_not() -> None:
    withheld = failwell.describe(caught("google", gemini("SAFETY")))
    blocked = failwell.describe(caught("google", {"promptFeedback": {"blockReason": "OTHER"}}))

    assert withheld.certainty is Certainty.PARTIAL
    assert blocked.certainty is Certainty.REJECTED


class Reason(StrEnum):
    MAX_TOKENS = "MAX_TOKENS"


def test_a_stop_reason_may_be_a_member_of_an_enum() -> None:
    reply = SimpleNamespace(candidates=[SimpleNamespace(finish_reason=Reason.MAX_TOKENS, content=None)])

    assert caught("google", reply).kind == TRUNCATED


@pytest.mark.acceptance("pipelex 46")
def test_a_stop_reason_that_nobody_knows_is_a_normal_end_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "failwell.stops"):
        adapters.check_reply("openai", chat("galaxy_aligned"))
        adapters.check_reply("openai", chat("galaxy_aligned"))

    assert [record.getMessage() for record in caplog.records] == [
        "unknown stop reason 'galaxy_aligned' from openai; the answer is taken for complete"
    ]


def test_of_several_answers_the_worst_speaks() -> None:
    reply = chat("stop")
    reply["choices"] += chat("length")["choices"] + chat("content_filter")["choices"]

    assert caught("openai", reply).kind == REFUSED


def test_a_reply_whose_fields_bite_is_not_judged() -> None:
    class Biting:
        @property
        def choices(self) -> Any:
            raise RuntimeError("not loaded")

    assert adapters.check_reply("openai", Biting()) is None


NAMES = st.sampled_from(
    ["choices", "message", "content", "delta", "finish_reason", "type", "text", "output", "status", "candidates", "usage",
     "done", "error", "tool_calls", "function", "arguments", "stopReason", "data", "id", "index", "parts", "event", "token"]
)  # fmt: skip
VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.sampled_from(["stop", "length"])
)
REPLIES = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=20,
)


def raised_by(reply: Any) -> Fault | None:
    try:
        return adapters.check_reply("anyone", reply)
    except Fault as fault:
        return fault


@given(REPLIES)
def test_whatever_a_reply_looks_like_it_passes_or_is_a_fault(reply: Any) -> None:
    for fault in (raised_by(reply), raised_by(as_object(reply))):
        assert fault is None or failwell.describe(fault).provider == "anyone"
