"""openai, also as the client of Azure OpenAI, OpenRouter and compatible servers.

`body` is the inner error object. An error event inside a stream is a bare `APIError` without a
status; a connection error says only "Connection error." and keeps the rest in its cause.
"""

from failwell.adapters.classification import Classification
from failwell.adapters.facts import Facts
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import adapter, in_stream, provider_of
from failwell.adapters.vendor_tables import rows
from failwell.errors.foreign_objects import safe_attribute, str_attr


def _refine(error: BaseException, facts: Facts) -> None:
    facts.provider = provider_of(error, "openai")
    in_stream(error, facts)
    completion = safe_attribute(error, "completion")
    facts.model = None if completion is None else str_attr(completion, "model")


TABLES: dict[str, Table] = {
    "openai": {
        "OpenAIError": adapter("openai", "openai", _refine),
        # Nothing was called: a client without an address, a full queue on this side, and a
        # message from outside with a foreign signature.
        "_AmbiguousModuleClientUsageError": Classification.from_rule(
            kind="validation.config_invalid",
            rule="openai.AmbiguousModuleClientUsageError",
            saw="AmbiguousModuleClientUsageError",
        ),
        **rows(
            "openai",
            {
                "tool.busy": "WebSocketQueueFullError",
                "validation.input_invalid": "InvalidWebhookSignatureError",
            },
        ),
    }
}
