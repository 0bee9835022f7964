"""Tokens that a reply reports, in classes that do not overlap: input, output, cache read, cache write.

Vendors count differently: some include cached tokens in the input and thoughts in the output, some do
not. Here every token is in one class, so that costs can be added up.
"""

from failwell.adapters.answers import take
from failwell.report.record import ErrorReport

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
"""What never reports anything, so that it need not be asked."""
_HOLDERS = ("message", "response", "metadata", "delta", "meta")
"""Where stream events keep the part that holds the tokens."""


def read_usage(reply: object) -> dict[str, int]:
    """The tokens that a reply, or one event of a stream, reports; empty if it reports none."""
    counted = None if type(reply) in _PLAIN else _counted(reply)
    if counted is None:
        return {}
    details = take(counted, "prompt_tokens_details", "input_tokens_details")
    read = _whole(take(counted, *_CACHE_READ))
    if read is None:
        read = _whole(take(details, "cached_tokens"))
    gross = _whole(take(counted, *_GROSS))
    net = _whole(take(counted, *_NET))
    if gross is None and net is not None and details is not None:
        gross = net
    given = (
        net if gross is None else max(0, gross - (read or 0)) + (_whole(take(counted, *_TOOL_PROMPT)) or 0)
    )
    output = _whole(take(counted, *_OUTPUT))
    thoughts = _whole(take(counted, *_THOUGHTS))
    if thoughts is not None:
        output = (output or 0) + thoughts
    found = {
        "input_tokens": given,
        "output_tokens": output,
        "cache_read_tokens": read,
        "cache_write_tokens": _whole(take(counted, *_CACHE_WRITE)),
    }
    return {name: count for name, count in found.items() if count is not None}


def usage_in(report: ErrorReport) -> dict[str, int]:
    """The tokens that a failed call reported before it failed, as far as its report knows."""
    held: object = report.details.get("usage")
    if held is None:
        return {}
    found = {name: _whole(take(held, name)) for name in ("input_tokens", "output_tokens")}
    return {name: count for name, count in found.items() if count is not None}


def _counted(reply: object) -> object:
    found = take(reply, "usage", "usage_metadata", "usageMetadata")
    for name in _HOLDERS if found is None else ():
        inner = take(reply, name)
        found = None if inner is None else take(inner, "usage", "tokens")
        if found is not None:
            break
    if found is None and take(reply, "prompt_eval_count", "eval_count") is not None:
        return reply
    # Some vendors report what they bill beside what they count; what is counted is what was used.
    return take(found, "tokens", "billed_units") or found


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return int(value)
