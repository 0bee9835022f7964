"""huggingface_hub: replies of the hub and of inference providers.

Its HTTP error is an `OSError` too, and reading its `request` raises. A model that is still loading
answers 503 and says how long it will take; `X-Error-Code` says what a 401 or 404 was about.
"""

from failwell.adapters.classification import Classification
from failwell.adapters.facts import Facts
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import adapter, gather
from failwell.errors.axes import Certainty
from failwell.errors.foreign_objects import str_attr

_PROVIDER, _SDK = "huggingface", "huggingface_hub"


def _refine(error: BaseException, facts: Facts) -> None:
    server_message = str_attr(error, "server_message", limit=2_000)
    if server_message and server_message not in facts.message:
        facts.message = f"{server_message}\n{facts.message}"


def _generation(error: BaseException, facts: Facts) -> None:
    # Made either from a failed reply, which is then its cause, or from an error event in a stream.
    cause = error.__cause__
    if cause is None:
        facts.in_stream = True
        return
    reply = gather(cause, _PROVIDER, _SDK)
    facts.status, facts.headers, facts.body = reply.status, reply.headers, reply.body
    facts.request_id, facts.codes = reply.request_id, reply.codes


_read = adapter(_PROVIDER, _SDK, _refine)


def _row(kind: str, name: str, certainty: Certainty | None = None) -> Classification:
    return Classification.from_rule(
        kind=kind, rule=f"huggingface_hub.{name}", saw=name, provider=_PROVIDER, certainty=certainty
    )


_LOCAL = {
    "validation.input_invalid": ("HFValidationError", "HfUriError", "CLIError", "DryRunError"),
    "validation.shape_invalid": ("DDUFError", "CorruptedCacheException", "StrictDataclassError"),
    "validation.path_not_found": ("CachedRepoTreeNotFoundError", "EntryNotFoundError"),
    "tool.failed": ("SandboxError",),
    "provider.unknown": ("FileDuplicationError",),
}
"""Errors that it raises before, or without, a request."""

TABLES: dict[str, Table] = {
    "huggingface_hub": {
        "HfHubHTTPError": _read,
        "InferenceTimeoutError": _read,
        "TextGenerationError": adapter(_PROVIDER, _SDK, _generation),
        "InferenceEndpointTimeoutError": _row("provider.timeout", "InferenceEndpointTimeoutError"),
        "InferenceEndpointError": _row("provider.unavailable", "InferenceEndpointError"),
        "OfflineModeIsEnabled": _row("validation.config_invalid", "OfflineModeIsEnabled"),
        "LocalTokenNotFoundError": _row("provider.auth", "LocalTokenNotFoundError", Certainty.NOT_SENT),
        "XetAuthorizationError": _row("provider.auth", "XetAuthorizationError"),
        "XetRefreshTokenError": _row("provider.auth", "XetRefreshTokenError"),
        "XetError": _row("provider.unavailable", "XetError"),
        "OIDCError": _row("provider.auth", "OIDCError", Certainty.NOT_SENT),
        "DeviceCodeError": _row("provider.auth", "DeviceCodeError"),
        "RevisionResolutionError": _row("provider.bad_request", "RevisionResolutionError"),
        "LocalEntryNotFoundError": _row("extension.dependency_missing", "LocalEntryNotFoundError"),
        "CacheNotFound": _row("validation.path_not_found", "CacheNotFound"),
        "SafetensorsParsingError": _row("validation.shape_invalid", "SafetensorsParsingError"),
        "NotASafetensorsRepoError": _row("validation.input_invalid", "NotASafetensorsRepoError"),
        "FileMetadataError": _row("provider.output_invalid", "FileMetadataError"),
        **{name: _row(kind, name) for kind, names in _LOCAL.items() for name in names},
        "XetDownloadError": _row("provider.unavailable", "XetDownloadError"),
    }
}
