"""Why a model stopped, in every vendor's word for it: one table, upper and lower case alike.

A word that is not in the table counts as a normal end and is logged once, because a new word must
not turn good answers into failures.
"""

from typing import Literal

from failwell.adapters.safe_getattr import safe_getattr

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
"""What a stop reason comes down to."""

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
    """What `word` comes down to; an unknown one is a normal end, said once in the log."""
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
