"""The tokens that a provider's reply reports, whatever the provider calls them."""

from failwell.adapters.replies import take

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
