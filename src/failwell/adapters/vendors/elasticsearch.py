"""elasticsearch, elastic_transport and opensearch-py: the error type in the body decides, then the status."""

from typing import Any, cast

from failwell.adapters.classification import Classification
from failwell.adapters.facts import Facts, as_objects, codes_and_message
from failwell.adapters.protocols.stores import kind_of_elasticsearch
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import adapter, text_of, transport
from failwell.adapters.vendor_tables import rows
from failwell.errors.foreign_objects import plain_int, safe_getattr
from failwell.errors.lazy_regex import lazy_regex

_MOST_CAUSES = 4
_PRINTED = lazy_regex(r"\((\d{3}), '([A-Za-z_]{3,80})'")


def _refine(error: BaseException, facts: Facts) -> None:
    """opensearch-py keeps status, type and body as its three arguments; elasticsearch-py as attributes of a reply."""
    facts.provider = "opensearch" if facts.sdk == "opensearch-py" else "elasticsearch"
    status = plain_int(safe_getattr(safe_getattr(error, "meta"), "status"))
    args = safe_getattr(error, "args")
    arguments = cast("tuple[Any, ...]", args) if type(args) is tuple else ()
    if status is None and arguments:
        status = plain_int(arguments[0])
    if status is not None and 100 <= status < 600:
        facts.status = status
    body = safe_getattr(error, "body", "info")
    if isinstance(body, dict):
        facts.body = as_objects(body)
        facts.codes = tuple(codes_and_message(facts.body)[0])
        facts.message = _reason(cast("dict[str, Any]", body))
    elif len(arguments) > 1 and isinstance(arguments[1], str):
        facts.codes = (arguments[1].lower()[:80],)
    elif facts.status is None and (printed := _PRINTED.search(facts.message)):
        # A log has the text alone, and both clients print the status and the type first.
        facts.status, facts.codes = int(printed.group(1)), (printed.group(2).lower(),)
    for cause in _errors(error):
        if facts.phase is None:
            facts.phase = transport(cause)[0]
    if facts.phase is None and facts.status is None:
        facts.phase = "read" if "Timeout" in type(error).__name__ else "closed"
    if "certificate verify failed" in text_of(error).lower():
        facts.phase = "tls"


def _reason(body: dict[str, Any]) -> str:
    """The sentence beside the type. Its key is the one that other services keep a code under."""
    inner: Any = body.get("error")
    reason: Any = cast("dict[str, Any]", inner).get("reason") if isinstance(inner, dict) else inner
    return reason[:2_000] if isinstance(reason, str) else ""


def _errors(error: BaseException) -> list[BaseException]:
    """The errors of the attempts that the transport keeps, the last one first."""
    errors = safe_getattr(error, "errors")
    kept = cast("tuple[Any, ...]", errors)[:_MOST_CAUSES] if isinstance(errors, tuple) else ()
    info = safe_getattr(error, "info")
    return [cause for cause in (*kept, info) if isinstance(cause, BaseException)]


def _typed(read: Any) -> Any:
    def read_type(error: BaseException) -> Classification:
        facts: Facts = read.facts(error)
        for code in facts.codes:
            kind = kind_of_elasticsearch(code, facts.message)
            if kind is not None:
                return read(error).by(f"elasticsearch.{code}", kind)
        return read(error)

    return read_type


def _table(sdk: str) -> Table:
    read = adapter(None, sdk, _refine)
    return {
        "ApiError": _typed(read),
        "TransportError": _typed(read),
        "OpenSearchException": read,
        **rows(
            sdk,
            {
                "validation.config_invalid": "UnsupportedProductError ImproperlyConfigured SniffingError",
                "provider.output_invalid": "SerializationError UnsupportedMediaType",
            },
        ),
        # Some documents of a bulk were refused; which ones is in the error, and the others were written.
        **rows(
            sdk,
            {
                "provider.bad_request": "BulkIndexError",
                "provider.stream_interrupted": "ScanError",
                "validation.input_invalid": (
                    "ValidationException UnknownDslObject IllegalOperation ElasticsearchDslException "
                    "OpenSearchDslException"
                ),
            },
        ),
    }


TABLES: dict[str, Table] = {
    "elasticsearch": _table("elasticsearch"),
    "elastic_transport": _table("elastic-transport"),
    "opensearchpy": _table("opensearch-py"),
}
