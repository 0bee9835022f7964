"""Clients of vector stores: qdrant, weaviate, pinecone, chroma and milvus.

All but milvus answer over HTTP, so that status and body decide as for any provider. One thing differs: a name that is
taken, or missing in a store, is the caller's, and neither a missing model nor a conflict that passes.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from failwell.adapters.classification import Classification
from failwell.adapters.classify import classify
from failwell.adapters.facts import Facts, as_objects, codes_and_message, parse_body
from failwell.adapters.protocols.database_errors import client_error, server_error
from failwell.adapters.protocols.rpc import read_rpc
from failwell.adapters.protocols.stores import kind_of_milvus
from failwell.adapters.protocols.wire import GRPC_WORDS
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import Refine, adapter, text_of, transport
from failwell.adapters.traceback_frames import reply_in
from failwell.adapters.vendor_tables import carries, cause_of, rows
from failwell.errors.axes import Certainty
from failwell.errors.foreign_objects import int_attr, safe_call, safe_getattr
from failwell.errors.lazy_regex import lazy_regex

_NAMED = frozenset({404, 409})
"""A missing collection or index is a matter of configuration, like a missing table, and is left as it is."""
_NO_KEY = lazy_regex(r"\b(?:no|missing|provide[^.\n]{0,20}) api[ _-]?key", re.IGNORECASE)


def _store(provider: str, sdk: str, refine: Refine) -> Callable[[BaseException], Classification]:
    read = adapter(provider, sdk, refine)

    def read_store(error: BaseException) -> Classification:
        facts = read.facts(error)
        reading = classify(facts)
        if facts.status in _NAMED and facts.body is not None and reading.kind != "provider.rejected":
            return reading.by(f"{provider}.status_{facts.status}", "provider.bad_request")
        return reading

    return read_store


def _wraps(sdk: str, otherwise: str, *names: str) -> Table:
    """Envelopes around a transport's exception, which decides."""

    def read(error: BaseException) -> Classification:
        inner = safe_getattr(error, "source")
        inner = inner if isinstance(inner, BaseException) else cause_of(error)
        return carries(inner, f"{sdk}.{type(error).__name__}", otherwise=otherwise, provider=sdk)

    return dict.fromkeys(names, read)


def _qdrant(error: BaseException, facts: Facts) -> None:
    body = parse_body(safe_getattr(error, "content"))
    facts.body = as_objects(body)
    status: Any = cast("dict[str, Any]", body).get("status") if isinstance(body, dict) else None
    message = cast("dict[str, Any]", status).get("error") if isinstance(status, dict) else None
    facts.message = message[:2_000] if isinstance(message, str) else body if isinstance(body, str) else ""


def _qdrant_exhausted(error: BaseException) -> Classification:
    wait = int_attr(error, "retry_after_s")
    headers = {} if wait is None else {"retry-after": str(wait)}
    return classify(
        Facts(
            provider="qdrant",
            sdk="qdrant-client",
            exception_type=type(error).__name__,
            status=429,
            headers=headers,
        )
    )


def _weaviate_status(error: BaseException) -> Classification:
    """A status of HTTP, or the number of a status of gRPC."""
    number = int_attr(error, "status_code")
    if number is not None and 0 < number < len(GRPC_WORDS):
        detail = safe_getattr(error, "error")
        return read_rpc(
            GRPC_WORDS[number], detail if isinstance(detail, str) else "", sdk="weaviate-client",
            name=type(error).__name__, provider="weaviate",
        )  # fmt: skip
    return _weaviate_reply(error)


def _weaviate(error: BaseException, facts: Facts) -> None:
    body = safe_getattr(error, "error")
    if isinstance(body, dict | list):
        facts.body = as_objects(body)
        codes, facts.message = codes_and_message(facts.body)
        facts.codes = tuple(codes)


_weaviate_reply = _store("weaviate", "weaviate-client", _weaviate)
_GRPC = lazy_regex(r"StatusCode\.([A-Z_]{2,20})|^\[([A-Z_]{2,20})\] |status = StatusCode\.([A-Z_]{2,20})")


def _weaviate_call(error: BaseException) -> Classification:
    """A call over gRPC: its error is the cause, or the context; some are only printed into the text."""
    inner = cause_of(error)
    if inner is not None:
        return carries(
            inner, f"weaviate.{type(error).__name__}", otherwise="provider.unknown", provider="weaviate"
        )
    text = text_of(error)
    match = _GRPC.search(text)
    if match is None:
        return client_error(error, "provider.unknown", server="weaviate", sdk="weaviate-client")
    word = next(group for group in match.groups() if group)
    return read_rpc(word, text, sdk="weaviate-client", name=type(error).__name__, provider="weaviate")


def _pinecone(error: BaseException, facts: Facts) -> None:
    if facts.status is None and facts.phase is None:
        facts.phase = "read" if "imeout" in type(error).__name__ else None
    if facts.status == 403 and re.search(
        r"\bquota\b|\bmax(?:imum)?\b|\blimit\b", facts.message, re.IGNORECASE
    ):
        # Pinecone documents a 403 for a quota that is used up.
        facts.codes = ("quota_exhausted", *facts.codes)


def _pinecone_argument(error: BaseException) -> Classification:
    kind = "provider.auth" if _NO_KEY.search(text_of(error)) else "validation.input_invalid"
    return client_error(error, kind, server="pinecone", sdk="pinecone", certainty=Certainty.NOT_SENT)


def _milvus(error: BaseException) -> Classification:
    sdk = "pymilvus"
    code = int_attr(error, "code")
    if code is None and (match := re.search(r"\(code=(\d{1,6}),", text_of(error))):
        code = int(match.group(1))
    if "fail connecting to server" in text_of(error).lower():
        # The client's own sentence, with a number that the server gives another meaning.
        return client_error(
            error, "provider.connection", server="milvus", sdk=sdk, certainty=Certainty.NOT_SENT
        )
    kind = kind_of_milvus(code)
    if code is not None and kind is not None:
        return server_error(error, kind, server="milvus", sdk=sdk, code=str(code), label="code")
    if safe_getattr(error, "is_input_error") is True:
        return client_error(error, "provider.bad_request", server="milvus", sdk=sdk)
    if safe_getattr(error, "retriable") is True:
        return client_error(error, "provider.unavailable", server="milvus", sdk=sdk)
    low = text_of(error).lower()
    kind = next((kind for words, kind in _MILVUS_WORDS if words in low), None)
    kind = kind or _MILVUS_CLASSES.get(type(error).__name__, "provider.unknown")
    return client_error(error, kind, server="milvus", sdk=sdk)


_MILVUS_WORDS: tuple[tuple[str, str], ...] = (
    ("collectionnotexists", "provider.bad_request"),
    ("indexnotexist", "provider.bad_request"),
    ("illegalargument", "provider.bad_request"),
    ("service not ready", "provider.unavailable"),
    ("permissiondenied", "provider.permission"),
    ("auth check failure", "provider.auth"),
    ("ratelimit", "provider.rate_limited"),
    ("outofmemory", "resource.system_memory"),
    ("insufficientmemorytoload", "resource.system_memory"),
    ("diskquotaexhausted", "resource.disk"),
    ("memoryquotaexhausted", "resource.system_memory"),
)
"""Names of the older error codes of Milvus, which a server without the new ones prints into the text."""


_MILVUS_CLASSES: dict[str, str] = dict.fromkeys(
    ("CollectionNotExistException", "IndexNotExistException", "PartitionAlreadyExistException"),
    "provider.bad_request",
)


def _milvus_unavailable(error: BaseException) -> Classification:
    """GRPC's `UNAVAILABLE`: no connection, or a server that answers so."""
    return read_rpc(
        "UNAVAILABLE", text_of(error), sdk="pymilvus", name=type(error).__name__, provider="milvus"
    )


def _chroma(error: BaseException) -> Classification:
    """By the class that the name in the body stands for. `code()` is the status that it would answer with."""
    method: Callable[[], Any] = safe_getattr(error, "code")
    status = safe_call(method, None) if callable(method) else None
    kinds = {
        401: "provider.auth",
        403: "provider.permission",
        # A collection has to be made; a record that is not in it is the caller's.
        404: "provider.rejected" if "ollection" in text_of(error) else "provider.bad_request",
        413: "provider.context_too_long",
        429: "provider.rate_limited",
    }
    kind = (
        kinds.get(status, "provider.bad_request")
        if isinstance(status, int) and status < 500
        else "provider.unavailable"
    )
    return client_error(error, kind, server="chroma", sdk="chromadb")


def raised(error: BaseException) -> Classification | None:
    """A built-in exception that came out of chromadb: a body that it does not know, or a server that is not there."""
    reply = reply_in(error, "chromadb")
    if type(error) is Exception and reply is not None:
        body = as_objects(parse_body(text_of(error)))
        codes, message = codes_and_message(body) if not isinstance(body, str) else ({}, body)
        return classify(
            Facts(
                provider="chroma",
                sdk="chromadb",
                exception_type="Exception",
                status=int_attr(reply, "status_code"),
                codes=tuple(codes),
                message=message,
                body=body,
            )
        )
    if type(error) is ValueError and text_of(error).startswith("Could not connect to"):
        inner = cause_of(error)
        phase = None if inner is None else transport(inner)[0]
        if inner is None or phase is not None:
            return replace(
                client_error(error, "provider.connection", server="chroma", sdk="chromadb"),
                certainty=Certainty.NOT_SENT,
            )
        return carries(inner, "chroma.ValueError", otherwise="provider.connection", provider="chroma")
    return None


_pinecone_reply = _store("pinecone", "pinecone", _pinecone)

TABLES: dict[str, Table] = {
    "qdrant_client": {
        "UnexpectedResponse": _store("qdrant", "qdrant-client", _qdrant),
        "ResourceExhaustedResponse": _qdrant_exhausted,
        **_wraps("qdrant", "provider.output_invalid", "ResponseHandlingException"),
        **rows("qdrant", {"provider.unknown": "ApiException QdrantException"}, provider="qdrant"),
    },
    "weaviate": {
        "UnexpectedStatusCodeError": _weaviate_status,
        "ResponseCannotBeDecodedError": _weaviate_status,
        **dict.fromkeys(
            (
                "WeaviateQueryError",
                "WeaviateBatchError",
                "WeaviateBatchSendError",
                "WeaviateBatchStreamError",
                "WeaviateDeleteManyError",
                "WeaviateTenantGetError",
                "WeaviateRetryError",
                "WeaviateBaseError",
            ),
            _weaviate_call,
        ),
        **_wraps("weaviate", "provider.connection", "WeaviateConnectionError", "WeaviateStartUpError"),
        **_wraps("weaviate", "provider.outcome_unknown", "WeaviateTimeoutError"),
        **rows(
            "weaviate",
            {"provider.connection": "WeaviateGRPCUnavailableError"},
            provider="weaviate",
            certainty=Certainty.NOT_SENT,
        ),
        **rows(
            "weaviate",
            {
                "provider.stream_interrupted": "WeaviateBatchFailedToReestablishStreamError",
                "provider.auth": "AuthenticationFailedError MissingScopeError",
                "provider.output_invalid": "EmptyResponseError",
                "provider.bad_request": "ObjectAlreadyExistsError WeaviateInsertManyAllFailedError",
                "validation.input_invalid": (
                    "WeaviateInvalidInputError InvalidDataModelError SchemaValidationError "
                    "AdditionalPropertiesError WeaviateAddInvalidPropertyError "
                    "WeaviateInsertInvalidPropertyError WeaviateBatchValidationError"
                ),
                "provider.capability_missing": "WeaviateUnsupportedFeatureError",
                "extension.dependency_missing": "WeaviateAgentsNotInstalledError WeaviateProtobufIncompatibility",
                "validation.config_invalid": "WeaviateEmbeddedInvalidVersionError",
                "internal.bug": "WeaviateClosedClientError",
                "cancel.run": "BackupCanceledError ExportCanceledError",
                "provider.unknown": "BackupFailedError ExportFailedError",
            },
            provider="weaviate",
        ),
    },
    "pinecone": {
        "PineconeError": _pinecone_reply,
        "PineconeException": _pinecone_reply,
        "OpenApiException": _pinecone_reply,
        "PineconeValueError": _pinecone_argument,
        "PineconeTypeError": _pinecone_argument,
        "PineconeConfigurationError": _pinecone_argument,
        **rows(
            "pinecone",
            {
                "provider.output_invalid": "ResponseParsingError",
                "provider.unavailable": "IndexInitFailedError",
                "provider.rejected": "IndexTerminatedError PineconeProtocolError",
            },
            provider="pinecone",
        ),
    },
    "chromadb": {
        "ChromaError": _chroma,
        **rows(
            "chroma",
            {
                "provider.quota_exhausted": "QuotaError",
                "validation.config_invalid": "VersionMismatchError InvalidHTTPVersion",
            },
            provider="chroma",
        ),
    },
    "pymilvus": {
        "MilvusException": _milvus,
        "MilvusUnavailableException": _milvus_unavailable,
        **rows(
            "milvus",
            {"provider.connection": "ConnectError ConnectionNotExistException"},
            provider="milvus",
            certainty=Certainty.NOT_SENT,
        ),
        **rows(
            "milvus",
            {
                "provider.unavailable": "SchemaMismatchRetryableException",
                "validation.config_invalid": "ConnectionConfigException ServerVersionIncompatibleException",
                "validation.input_invalid": (
                    "ParamError AutoIDException CannotInferSchemaException ClusteringKeyException "
                    "DataNotMatchException DataTypeNotMatchException DataTypeNotSupportException "
                    "FieldTypeException FieldsTypeException FunctionsTypeException InvalidConsistencyLevel "
                    "PartitionKeyException PrimaryKeyException SchemaNotReadyException AmbiguousIndexName"
                ),
            },
            provider="milvus",
        ),
    },
}
