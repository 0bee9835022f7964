"""What a reply inside a 200 shows of itself: did it stop, why, did it say anything, what did it cost.

Replies of every vendor are read alike, as objects or as JSON. None of their text is recorded: texts are
looked at for being there, arguments of tools for being JSON, and then let go.

A reply that comes in pieces: every vendor's stream events, fed one by one into an `Answer`.

The tokens that a provider's reply reports, whatever the provider calls them.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, cast

from failwell.adapters.classification import Classification
from failwell.adapters.facts import parse_body
from failwell.errors.foreign_objects import safe_getattr

_LONGEST_ARGUMENTS = 1_000_000
_SILENT = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content", "compaction"})
"""Parts of a reply that hold the model's reasoning and not its answer."""
_COUNTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("input_tokens", ("prompt_tokens", "input_tokens", "prompt_token_count", "promptTokenCount", "inputTokens",
                      "prompt_eval_count")),
    ("output_tokens", ("completion_tokens", "output_tokens", "candidates_token_count", "candidatesTokenCount",
                       "outputTokens", "eval_count", "generated_tokens")),
    ("cached_tokens", ("cached_tokens", "cache_read_input_tokens", "cached_content_token_count",
                       "cachedContentTokenCount", "cacheReadInputTokens", "prompt_cache_hit_tokens")),
    ("reasoning_tokens", ("reasoning_tokens", "thoughts_token_count", "thoughtsTokenCount")),
)  # fmt: skip


def take(thing: object, *names: str) -> Any:
    """The first of `names` that an object or a mapping holds with something other than `None`."""
    if not isinstance(thing, Mapping):
        return None if isinstance(thing, str | bytes | list | tuple) else safe_getattr(thing, *names)
    mapping = cast("Mapping[str, Any]", thing)
    for name in names:
        value = mapping.get(name)
        if value is not None:
            return value
    return None


def items(value: object) -> list[Any]:
    """The members of a list; nothing for any other value."""
    return list(cast("list[Any]", value)) if isinstance(value, list | tuple) else []


class Answer:
    """What has been seen of one reply so far, whole or in chunks."""

    def __init__(self) -> None:
        self.known = False
        """Whether a part of the reply had a known shape. A reply without one is not judged."""
        self.ended = False
        self.pending = False
        """The provider says that it is still working on it."""
        self.spoke = False
        self.blocked = False
        """The request was refused, in a reply with status 200."""
        self.refused = False
        self.broken_call = False
        self.stops: list[str] = []
        self.error: Any = None
        self.failure: Classification | None = None
        """A failure that the reply reports and that is classified already."""
        self.usage: dict[str, int] = {}
        self.model: str | None = None
        self.id: str | None = None
        self._arguments: dict[object, list[str]] = {}

    def whole(self, reply: object) -> None:
        """Read a complete reply."""
        reply = opened(reply)
        if isinstance(reply, str):
            self.known, self.ended = True, True
            self.spoke = bool(reply.strip())
            return
        self.about(reply)
        self._failure(reply)
        for read in (
            self._choices,
            self._response,
            self._candidates,
            self._converse,
            self._message,
            self._plain,
        ):
            if read(reply):
                self.known = True
                return

    def about(self, reply: object) -> None:
        """Note the model, the id and the tokens."""
        model = take(reply, "model", "model_version", "modelVersion")
        self.model = model if isinstance(model, str) and model else self.model
        reply_id = take(reply, "_request_id", "id", "response_id", "responseId")
        self.id = reply_id if isinstance(reply_id, str) and reply_id else self.id
        holder = take(reply, "usage", "usage_metadata", "usageMetadata", "meta")
        for counts in (reply, holder, take(holder, "tokens", "billed_units"), take(reply, "details")):
            self.count(counts)
        for inner in (
            "prompt_tokens_details",
            "input_tokens_details",
            "completion_tokens_details",
            "output_tokens_details",
        ):
            self.count(take(holder, inner))

    def count(self, usage: object) -> None:
        """Keep the numbers of tokens that `usage` gives."""
        if usage is None or isinstance(usage, str):
            return
        for name, spellings in _COUNTS:
            value = take(usage, *spellings)
            if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15:
                self.usage[name] = int(value)

    def stop(self, value: object) -> None:
        """Note a stop reason; it ends the answer."""
        word = word_of(value)
        if word is not None:
            self.stops.append(word)
            self.ended = True

    def say(self, content: object) -> None:
        """Note content: a text, or the parts of one."""
        if isinstance(content, str):
            self.spoke = self.spoke or bool(content.strip())
            return
        for part in items(content):
            self.part(part)

    def part(self, part: object) -> None:
        """Note one part of an answer."""
        kind = take(part, "type")
        if kind in _SILENT or take(part, "thought") is True:
            return
        if take(part, "refusal") or kind == "refusal":
            self.refused = True
        text = take(part, "text")
        if isinstance(part, str):
            self.say(part)
        elif isinstance(text, str):
            self.spoke = self.spoke or bool(text.strip())
        elif kind == "tool_use":
            self.call(take(part, "input"), take(part, "index"))
        elif (used := take(part, "toolUse")) is not None:
            self.call(take(used, "input"), None)
        elif take(part, "reasoningContent", "reasoning_content") is None:
            # A picture, a sound, a call, a citation: something that is not a text was answered.
            self.spoke = True

    def calls(self, calls: object, scope: int = 0) -> None:
        """Note calls of tools, each with its arguments."""
        for place, call in enumerate(items(calls)):
            function = take(call, "function") or call
            index = take(call, "index")
            key = (scope, place if index is None else index)
            self.call(take(function, "arguments", "parameters", "args"), key)

    def call(self, arguments: object, key: object) -> None:
        """Note one call of a tool, or a piece of its arguments."""
        self.spoke = True
        if isinstance(arguments, str):
            self._arguments.setdefault(object() if key is None else str(key), []).append(arguments)
        elif isinstance(arguments, list | tuple | int | float):
            self.broken_call = True

    def calls_are_sound(self) -> bool:
        """Whether the arguments of every call are a JSON object, or nothing at all."""
        return not self.broken_call and all(
            _is_object("".join(pieces)) for pieces in self._arguments.values()
        )

    def _failure(self, reply: object) -> None:
        error = take(reply, "error")
        if error is not None and error != "" and self.error is None:
            self.error = error

    def _choices(self, reply: object) -> bool:
        """Chat completions of OpenAI and of compatible servers."""
        choices = take(reply, "choices")
        if choices is None and not _has(reply, "choices"):
            return False
        self.ended = True
        for place, choice in enumerate(items(choices)):
            self.stop(take(choice, "finish_reason", "finishReason"))
            self._failure(choice)
            self.say(take(choice, "text"))
            self.message(take(choice, "message"), place)
        return True

    def message(self, message: object, scope: int = 0) -> None:
        """Note one message of an assistant, or a piece of it; `scope` tells parallel answers apart."""
        if take(message, "refusal"):
            self.refused = True
        self.say(take(message, "content"))
        self.calls(take(message, "tool_calls", "toolCalls"), scope)
        if (call := take(message, "function_call")) is not None:
            self.call(take(call, "arguments"), None)
        if take(message, "audio", "images"):
            self.spoke = True

    def _response(self, reply: object) -> bool:
        """OpenAI's Responses."""
        if take(reply, "object") != "response" and not _has(reply, "incomplete_details"):
            return False
        output, status = take(reply, "output"), word_of(take(reply, "status"))
        self.ended = True
        self.pending = status in ("queued", "in_progress")
        if status == "incomplete":
            self.stop(take(take(reply, "incomplete_details"), "reason") or "incomplete")
        elif status in ("failed", "cancelled"):
            self.stop(status)
        for item in items(output):
            kind = str(take(item, "type") or "")
            if kind == "message":
                self.say(take(item, "content"))
            elif kind == "function_call":
                self.call(take(item, "arguments"), None)
            elif kind not in _SILENT:
                self.spoke = True
        return True

    def _candidates(self, reply: object) -> bool:
        """Gemini."""
        feedback = take(reply, "prompt_feedback", "promptFeedback")
        candidates = items(take(reply, "candidates"))
        if not candidates and feedback is None and not _has(reply, "candidates"):
            return False
        self.ended = True
        if (reason := word_of(take(feedback, "block_reason", "blockReason"))) and not candidates:
            # Whatever the reason is called, a request that was blocked is a refusal.
            self.blocked = self.refused = True
            self.stops.append(reason)
        for candidate in candidates:
            self.stop(take(candidate, "finish_reason", "finishReason"))
            self.say(take(take(candidate, "content"), "parts"))
        return True

    def _converse(self, reply: object) -> bool:
        """Bedrock's Converse."""
        reason, message = take(reply, "stopReason"), take(take(reply, "output"), "message")
        if reason is None and message is None:
            # Of a body that it cannot parse botocore leaves nothing but what it adds itself.
            self.ended = isinstance(reply, Mapping) and list(cast("Mapping[str, Any]", reply)) == [
                "ResponseMetadata"
            ]
            return self.ended
        self.stop(reason)
        self.ended = True
        self.say(take(message, "content"))
        return True

    def _message(self, reply: object) -> bool:
        """Anthropic's messages, Cohere's chat and Ollama's: one message, and why it ended."""
        is_done = take(reply, "done")
        reason = take(reply, "stop_reason", "finish_reason", "done_reason")
        if take(reply, "type") != "message" and not isinstance(is_done, bool) and word_of(reason) is None:
            return False
        self.ended = is_done is not False
        self.stop(reason)
        self.say(take(reply, "content"))
        self.say(take(reply, "text", "response"))
        self.calls(take(reply, "tool_calls"))
        self.message(take(reply, "message"))
        if self.stops[-1:] in (["load"], ["unload"]):
            self.spoke = True
        return True

    def _plain(self, reply: object) -> bool:
        """Generated texts, embeddings and pictures."""
        texts = [text_reply for text_reply in items(reply) or [reply] if _has(text_reply, "generated_text")]
        for text_reply in texts:
            self.ended = True
            self.say(take(text_reply, "generated_text"))
            self.stop(take(take(text_reply, "details"), "finish_reason"))
        pictures = take(reply, "images")
        if not texts and isinstance(pictures, list | tuple):
            self.ended = True
            self.spoke = bool(cast("list[Any]", pictures))
            return True
        data = take(reply, "data")
        if not texts and isinstance(data, list | tuple) and _has(reply, "created", "object", "usage"):
            self.ended = True
            self.spoke = bool(cast("list[Any]", data))
            return True
        return bool(texts)


def opened(reply: object) -> object:
    """A reply that came as JSON text or bytes, parsed; any other value as it is."""
    return parse_body(reply) if isinstance(reply, str | bytes | bytearray) else reply


def _has(thing: object, *names: str) -> bool:
    """Whether the field exists, even if it is empty."""
    if isinstance(thing, Mapping):
        return any(name in thing for name in names)
    fields = safe_getattr(thing, "__dict__", default=())
    return any(name in fields or safe_getattr(thing, name) is not None for name in names)


def _is_object(text: str) -> bool:
    if not text.strip() or len(text) > _LONGEST_ARGUMENTS:
        return True
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


Stop = Literal[
    "done",
    "truncated",
    "too_long",
    "refused",
    "malformed",
    "failed",
    "interrupted",
    "overloaded",
    "cancelled",
]
"""What a stop reason means."""

_WORDS: dict[Stop, str] = {
    "done": "stop stopped end_turn stop_sequence stop_sequences tool_use tool_calls tool_call function_call pause_turn "
    "complete completed finished end eos eos_token eos_token_id load unload continuation finish stop_criteria_met",
    "truncated": "length max_tokens max_output_tokens max_length max_new_tokens max_completion_tokens max_messages incomplete "
    "token_limit max_tokens_reached steered",
    "too_long": "model_context_window_exceeded model_length context_length_exceeded error_limit context_window_exceeded",
    "refused": "content_filter refusal content_filtered guardrail_intervened safety recitation language blocklist "
    "prohibited_content spii image_safety image_prohibited_content image_recitation error_toxic sensitive model_armor jailbreak "
    "content_policy_violation moderation",
    "malformed": "malformed_tool_use malformed_model_output no_image image_other",
    # With the last four the provider has thrown the answer away itself: none of it came, and a fresh one may pass.
    "failed": "error network_error failed malformed_function_call unexpected_tool_call too_many_tool_calls malformed_response",
    "interrupted": "timeout abort aborted",
    "overloaded": "insufficient_system_resource",
    "cancelled": "cancelled canceled user_cancel",
}  # fmt: skip

STOPS: dict[str, Stop] = {word: stop for stop, words in _WORDS.items() for word in words.split()}

_MOST_WARNED = 100
_warned: set[str] = set()


def word_of(value: object) -> str | None:
    """A stop reason as a plain lower-case word, whether it came as a text or as a member of an enum."""
    value = safe_getattr(value, "value", default=value)
    if not isinstance(value, str) or not value.strip():
        return None
    return value.strip().rpartition(".")[2].lower().replace("-", "_")[:60]


def stop_of(word: str, provider: str) -> Stop:
    """What `word` means. An unknown word is a normal end and is logged once."""
    known = STOPS.get(word)
    if known is not None:
        return known
    if word not in _warned and len(_warned) < _MOST_WARNED:
        import logging

        _warned.add(word)
        logging.getLogger("failwell.stops").warning(
            "unknown stop reason %r from %s; the answer is taken for complete", word, provider
        )
    return "done"


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


_GROSS = ("prompt_tokens", "prompt_token_count", "promptTokenCount")
"""Input counts that include what came from a cache."""
_NET = ("input_tokens", "inputTokens", "prompt_eval_count")
_OUTPUT = (
    "completion_tokens", "output_tokens", "outputTokens", "candidates_token_count", "candidatesTokenCount",
    "eval_count",
)  # fmt: skip
_CACHE_READ = (
    "cache_read_input_tokens", "cacheReadInputTokens", "cached_content_token_count",
    "cachedContentTokenCount", "prompt_cache_hit_tokens",
)  # fmt: skip
_CACHE_WRITE = ("cache_creation_input_tokens", "cacheWriteInputTokens")
_THOUGHTS = ("thoughts_token_count", "thoughtsTokenCount")
_TOOL_PROMPT = ("tool_use_prompt_token_count", "toolUsePromptTokenCount")
_PLAIN = frozenset({type(None), bool, int, float, str, bytes, list, tuple})
"""Types that never report usage."""
_HOLDERS = ("message", "response", "metadata", "delta", "meta")
"""Where stream events keep the part that holds the tokens."""


def read_usage(reply: object) -> dict[str, int]:
    """The tokens that a reply, or one event of a stream, reports; empty if it reports none."""
    usage = None if type(reply) in _PLAIN else _usage_part(reply)
    if usage is None:
        return {}
    details = take(usage, "prompt_tokens_details", "input_tokens_details")
    cache_read = whole(take(usage, *_CACHE_READ))
    if cache_read is None:
        cache_read = whole(take(details, "cached_tokens"))
    gross = whole(take(usage, *_GROSS))
    net = whole(take(usage, *_NET))
    if gross is None and net is not None and details is not None:
        gross = net
    input_tokens = (
        net if gross is None else max(0, gross - (cache_read or 0)) + (whole(take(usage, *_TOOL_PROMPT)) or 0)
    )
    output = whole(take(usage, *_OUTPUT))
    thoughts = whole(take(usage, *_THOUGHTS))
    if thoughts is not None:
        output = (output or 0) + thoughts
    counts = {
        "input_tokens": input_tokens,
        "output_tokens": output,
        "cache_read_tokens": cache_read,
        "cache_write_tokens": whole(take(usage, *_CACHE_WRITE)),
    }
    return {name: count for name, count in counts.items() if count is not None}


def _usage_part(reply: object) -> object:
    counts = take(reply, "usage", "usage_metadata", "usageMetadata")
    for name in _HOLDERS if counts is None else ():
        inner = take(reply, name)
        counts = None if inner is None else take(inner, "usage", "tokens")
        if counts is not None:
            break
    if counts is None and take(reply, "prompt_eval_count", "eval_count") is not None:
        return reply
    # Some vendors report what they bill beside what they count; what is counted is what was used.
    return take(counts, "tokens", "billed_units") or counts


def whole(value: object) -> int | None:
    """`value` as a count of tokens; `None` if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return int(value)
