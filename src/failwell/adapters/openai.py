"""openai, also as the client of Azure OpenAI, OpenRouter and compatible servers.

`body` is the inner error object. An error event inside a stream is a bare `APIError` without a
status; a connection error says only "Connection error." and keeps the rest in its cause.
"""

from failwell.adapters.ask import ask, ask_str
from failwell.adapters.extract import Extract
from failwell.adapters.hosts import provider_of
from failwell.adapters.reading import Reading
from failwell.adapters.registry import Table
from failwell.adapters.sdk import doorway
from failwell.adapters.stainless import in_stream


def _refine(error: BaseException, facts: Extract) -> None:
    facts.provider = provider_of(error, "openai")
    in_stream(error, facts)
    completion = ask(error, "completion")
    facts.model = None if completion is None else ask_str(completion, "model")


def _is(kind: str, name: str) -> Reading:
    return Reading(kind=kind, rule=f"openai.{name}", saw=name)


TABLES: dict[str, Table] = {
    "openai": {
        "OpenAIError": doorway("openai", "openai", _refine),
        # Nothing was called: a full queue on this side, a client that was not told whom to call, and a
        # message from outside that somebody else has signed.
        "WebSocketQueueFullError": _is("tool.busy", "WebSocketQueueFullError"),
        "_AmbiguousModuleClientUsageError": _is(
            "validation.config_invalid", "AmbiguousModuleClientUsageError"
        ),
        "InvalidWebhookSignatureError": _is("validation.input_invalid", "InvalidWebhookSignatureError"),
    }
}
