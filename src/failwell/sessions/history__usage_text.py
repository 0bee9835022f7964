"""What a session used, in words and as JSON."""

from typing import Any

from failwell.calls.budget import dollars
from failwell.sessions.history import Usage

_MICRO_CENTS_PER_DOLLAR = 100_000_000


def usage_json(used: Usage | None) -> dict[str, Any]:
    """Tokens, and the cost where it is known."""
    if used is None:
        return {}
    cost = {} if used.cost is None else {"cost_usd": used.cost / _MICRO_CENTS_PER_DOLLAR}
    return {**used.tokens, **cost}


def usage_words(used: Usage | None) -> str:
    """`120 tokens in, 34 out, $0.0012`."""
    if used is None or not used.tokens:
        return "nothing used"
    tokens = used.tokens
    read = (
        tokens.get("input_tokens", 0)
        + tokens.get("cache_read_tokens", 0)
        + tokens.get("cache_write_tokens", 0)
    )
    cost = "cost unknown" if used.cost is None else dollars(used.cost)
    return f"{read:,} tokens in, {tokens.get('output_tokens', 0):,} out, {cost}"
