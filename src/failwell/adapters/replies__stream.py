"""A reply that comes in pieces: every vendor's stream events, fed one by one into an `Answer`.

A stream is over when its vendor's last event was seen: a finish reason, `message_stop`, `messageStop`,
`message-end`, `done`, `response.completed` or `[DONE]`. One that merely ends is not.
"""

from collections.abc import Mapping
from typing import Any, cast

from failwell.adapters.replies import Answer, items, opened, take, word_of

_BEDROCK_FAILURES = ("Exception", "exception")


def feed(answer: Answer, event: object) -> None:
    """Take one event of a stream into account."""
    if type(event).__module__.startswith("claude_agent_sdk"):
        _agent_message(answer, event)
        return
    event = opened(event)
    if isinstance(event, str):
        if event.strip().removeprefix("data:").strip() == "[DONE]":
            answer.known, answer.ended = True, True
        else:
            answer.say(event)
        return
    inner = take(event, "data")
    if inner is not None and not isinstance(inner, list | str) and take(event, "choices") is None:
        # Some SDKs hand out the event with its envelope.
        event = inner
    if isinstance(inner, str) and _named_event(
        answer, str(take(take(event, "event"), "value") or take(event, "event") or ""), inner
    ):
        return
    kind = str(take(event, "type", "event_type") or "")
    error = take(event, "error") or (event if kind == "error" else None)
    if error is not None and answer.error is None:
        answer.error = error
        answer.known = True
    if kind.startswith("response."):
        _responses(answer, kind, event)
    elif not (kind and _typed(answer, kind, event)) and not _bedrock(answer, event):
        _plain(answer, event)


def _agent_message(answer: Answer, message: object) -> None:
    """A message of claude-agent-sdk. Only the last one, the result, says how the run ended."""
    if type(message).__name__ != "ResultMessage":
        return
    answer.known = answer.ended = answer.spoke = True
    if take(message, "is_error") is True:
        from failwell.adapters.vendors.claude_agent_sdk import read_result

        # Model, id and tokens are for the fault alone.
        answer.about(message)
        answer.failure = read_result(message)


def _named_event(answer: Answer, name: str, text: str) -> bool:
    """Events that have a name and plain text: Replicate's."""
    if name == "output":
        answer.say(text)
    elif name == "error":
        answer.error = answer.error or {"message": text}
    elif name == "done":
        answer.ended = True
    else:
        return name == "logs"
    answer.known = True
    return True


def _responses(answer: Answer, kind: str, event: object) -> None:
    answer.known = True
    if kind in ("response.completed", "response.incomplete", "response.failed", "response.cancelled"):
        answer.whole(take(event, "response"))
        answer.ended = True
    elif kind.startswith("response.refusal"):
        answer.refused = True
    elif kind.endswith("text.delta") and "reasoning" not in kind:
        answer.say(take(event, "delta"))


def _typed(answer: Answer, kind: str, event: object) -> bool:
    """Events that name their type: Anthropic's and Cohere's."""
    delta = take(event, "delta")
    if kind == "message_start":
        answer.about(take(event, "message"))
    elif kind == "content_block_start":
        block = take(event, "content_block")
        if take(block, "type") == "tool_use":
            # Its arguments follow in pieces; the empty object here is only their place.
            answer.spoke = True
        elif take(block, "type") != "text":
            answer.part(block)
    elif kind == "content_block_delta":
        piece = take(delta, "partial_json")
        if isinstance(piece, str):
            answer.call(piece, take(event, "index"))
        else:
            answer.say(take(delta, "text"))
    elif kind in ("message_delta", "message_stop"):
        answer.about(event)
        answer.stop(take(delta, "stop_reason"))
        answer.ended = kind == "message_stop"
    elif kind in (
        "message-start",
        "content-start",
        "content-end",
        "tool-plan-delta",
        "citation-start",
        "stream-start",
    ):
        pass
    elif kind in ("content-delta", "text-generation"):
        answer.say(take(take(take(delta, "message"), "content"), "text") or take(event, "text"))
    elif kind in ("tool-call-start", "tool-call-delta"):
        function = take(take(take(delta, "message"), "tool_calls"), "function")
        answer.call(take(function, "arguments"), take(event, "index"))
    elif kind in ("message-end", "stream-end"):
        answer.about(delta or event)
        answer.about(take(event, "response"))
        answer.stop(take(delta or event, "finish_reason"))
        answer.ended = True
    else:
        return kind in ("ping", "error", "content_block_stop", "tool-call-end", "citation-end")
    answer.known = True
    return True


def _bedrock(answer: Answer, event: object) -> bool:
    if not isinstance(event, Mapping) or len(cast("Mapping[str, Any]", event)) != 1:
        return False
    members = cast("Mapping[str, Any]", event)
    failed = next((name for name in members if name.endswith(_BEDROCK_FAILURES)), None)
    if failed is not None:
        answer.known = True
        answer.error = answer.error or {"code": failed, "message": take(members[failed], "message")}
    elif "messageStop" in members:
        answer.stop(take(members["messageStop"], "stopReason"))
        answer.ended = True
    elif "contentBlockDelta" in members:
        delta = take(members["contentBlockDelta"], "delta")
        used = take(delta, "toolUse")
        if used is not None:
            answer.call(take(used, "input"), take(members["contentBlockDelta"], "contentBlockIndex") or 0)
        else:
            answer.say(take(delta, "text"))
    elif "metadata" in members:
        answer.about(members["metadata"])
    elif not {"messageStart", "contentBlockStart", "contentBlockStop"} & members.keys():
        return False
    answer.known = True
    return True


def _plain(answer: Answer, event: object) -> None:
    """Chunks that look like a piece of the whole reply: OpenAI's, Gemini's, Ollama's and generated text."""
    choices = take(event, "choices")
    if choices is not None:
        answer.known = True
        answer.about(event)
        for choice in items(choices):
            answer.message(take(choice, "delta", "message"), take(choice, "index") or 0)
            answer.say(take(choice, "text"))
            answer.stop(take(choice, "finish_reason"))
            answer.error = answer.error or take(choice, "error")
        return
    if take(event, "token") is not None:
        answer.known = True
        answer.say(take(take(event, "token"), "text"))
        answer.stop(take(take(event, "details"), "finish_reason"))
        answer.ended = answer.ended or isinstance(take(event, "generated_text"), str)
        return
    before = (answer.ended, answer.known)
    answer.whole(event)
    gemini = take(event, "candidates", "prompt_feedback", "promptFeedback", "usage_metadata", "usageMetadata")
    if gemini is not None:
        is_final = any(
            word_of(take(candidate, "finish_reason", "finishReason"))
            for candidate in items(take(event, "candidates"))
        )
        answer.ended = before[0] or is_final or answer.blocked
    elif take(event, "done") is False:
        answer.ended = before[0]
