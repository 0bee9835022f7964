"""azure.core, under every Azure SDK, and azure.identity.

A reply's error object is `error`, with an inner error that is often the more exact one. Failures to
send and failures to read the reply are two different families.
"""

from typing import Any

from failwell.adapters.classification import Classification
from failwell.adapters.facts import Facts, codes_of, message_of
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import adapter, transport
from failwell.errors.axes import Certainty
from failwell.errors.foreign_objects import safe_getattr, str_attr


def _refine(error: BaseException, facts: Facts) -> None:
    inner = safe_getattr(error, "inner_exception")
    if isinstance(inner, BaseException) and (phase := transport(inner)[0]) is not None:
        # "Request error" is also what it calls a reply that stopped half-way; the transport knows better.
        facts.phase = phase
    if facts.body is None:
        service_error = safe_getattr(error, "error")
        body: dict[str, Any] = {
            "error": {
                "code": str_attr(service_error, "code"),
                "message": str_attr(service_error, "message", limit=2_000),
                "innererror": safe_getattr(service_error, "innererror"),
            }
        }
        facts.body = body
        facts.codes = tuple(dict.fromkeys((*codes_of(body), *facts.codes)))
        facts.message = message_of(body) or facts.message


_read = adapter("azure", "azure-core", _refine)


def _row(kind: str, name: str) -> Classification:
    return Classification.from_rule(
        kind=kind, rule=f"azure_core.{name}", saw=name, provider="azure", certainty=Certainty.NOT_SENT
    )


TABLES: dict[str, Table] = {
    "azure": {
        "AzureError": _read,
        "CredentialUnavailableError": _row("provider.auth", "CredentialUnavailableError"),
        "AuthenticationRequiredError": _row("provider.auth", "AuthenticationRequiredError"),
        "SerializationError": _row("validation.input_invalid", "SerializationError"),
        "DeserializationError": Classification.from_rule(
            kind="provider.output_invalid", rule="azure_core.DeserializationError", saw="DeserializationError"
        ),
    }
}
