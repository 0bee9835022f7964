"""mistralai, also on Azure and Google Cloud, since version 1.

The body is a text and holds the code; the message repeats the body. What the transport raises
passes through as it is, except for a call that never got a reply at all.
"""

from failwell.adapters.classification import Classification
from failwell.adapters.facts import Facts, codes_of, message_of, parse_body
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import adapter
from failwell.errors.foreign_objects import str_attr


def _refine(error: BaseException, facts: Facts) -> None:
    if type(error).__name__ == "StreamDisconnectedError":
        # `error` is the server's own frame; `reason` only says who noticed.
        body = parse_body(str_attr(error, "error", limit=8_000))
        facts.body, facts.codes, facts.message = body, codes_of(body), message_of(body)
        facts.in_stream = True
    elif "responsevalidationerror" in facts.names and not facts.codes:
        # An answer it cannot read; an error that the server put into the stream would have a code.
        facts.in_stream = False


_read = adapter("mistral", "mistralai", _refine)


def _row(kind: str, name: str) -> Classification:
    return Classification.from_rule(kind=kind, rule=f"mistralai.{name}", saw=name, provider="mistral")


TABLES: dict[str, Table] = {
    "mistralai": {
        "MistralError": _read,
        "MistralAzureError": _read,
        "MistralGCPError": _read,
        # Version 1 had no common base.
        "SDKError": _read,
        "HTTPValidationError": _read,
        "NoResponseError": _row("provider.outcome_unknown", "NoResponseError"),
        "StreamDisconnectedError": _read,
        "MCPAuthException": _row("provider.auth", "MCPAuthException"),
        "RealtimeTranscriptionException": _read,
        "RealtimeSpeechException": _read,
        "ServiceAccountTokenError": _row("provider.auth", "ServiceAccountTokenError"),
        "VoiceAgentConfigurationError": _row("validation.config_invalid", "VoiceAgentConfigurationError"),
        "VoiceAgentDependencyError": _row("extension.dependency_missing", "VoiceAgentDependencyError"),
        "BatchError": _read,
        "MistralClientException": _read,
    }
}
