"""anthropic, also on Bedrock, Vertex and Azure.

An error event inside a stream is a status error whose status is the stream's 200; the meaning is
in its type. Low credit comes as a 400 that says so only in words.
"""

from failwell.adapters.classification import Classification
from failwell.adapters.facts import Facts
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import adapter, provider_of
from failwell.errors.axes import Certainty


def _refine(error: BaseException, facts: Facts) -> None:
    status = facts.status
    facts.in_stream = facts.in_stream or (status is not None and status < 400)
    facts.provider = provider_of(error, "anthropic")


TABLES: dict[str, Table] = {
    "anthropic": {
        "AnthropicError": adapter("anthropic", "anthropic", _refine),
        # Raised by the application's middleware to say that the call may be repeated.
        "RetryableError": Classification.from_rule(
            kind="provider.unavailable",
            rule="anthropic.RetryableError",
            saw="RetryableError",
            certainty=Certainty.UNKNOWN,
            provider="anthropic",
        ),
        # A message from outside with a foreign signature.
        "APIWebhookValidationError": Classification.from_rule(
            kind="validation.input_invalid",
            rule="anthropic.APIWebhookValidationError",
            saw="APIWebhookValidationError",
        ),
    }
}
