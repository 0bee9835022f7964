"""langchain-core: its model errors stand for a status, and its integrations mix them with the SDK's own.

Where the exception is an SDK's as well, that SDK's adapter comes first along the MRO or the reply it
holds is read here. `OutputParserException` keeps the model's answer; it is never read.
"""

from failwell.adapters.classification import Classification
from failwell.adapters.facts import Facts
from failwell.adapters.registry import Table, entries
from failwell.adapters.sdk_exceptions import adapter
from failwell.adapters.vendor_tables import cause_of, rows

_CODES = {
    "ModelAuthenticationError": "authentication_error",
    "ModelPermissionDeniedError": "permission_denied",
    "ModelInvalidRequestError": "invalid_request_error",
    "ModelNotFoundError": "model_not_found",
    "ModelRateLimitError": "rate_limit_error",
    "ModelAPIError": "api_error",
    "ModelTimeoutError": "timeout_error",
    "ContextOverflowError": "context_length_exceeded",
}


def _refine(error: BaseException, facts: Facts) -> None:
    names = [cls.__name__ for cls in type(error).__mro__]
    code = next((_CODES[name] for name in names if name in _CODES), None)
    if code is not None:
        facts.codes = (*facts.codes, code)
    if "ModelConnectionError" in names and facts.phase is None and facts.status is None:
        # Without a cause it only says that the provider could not be reached, not that nothing was sent.
        facts.phase = "closed"


_model = adapter(None, "langchain_core", _refine)


def _carried(error: BaseException) -> Classification | None:
    inner = cause_of(error)
    known = inner is not None and bool(entries(type(inner)))
    return (
        Classification.from_rule(
            kind="internal.unknown", rule="langchain_core.LangChainException", inner=inner
        )
        if known
        else None
    )


TABLES: dict[str, Table] = {
    "langchain_core": {
        "ModelError": _model,
        "LangChainException": _carried,
        **rows(
            "langchain_core",
            {
                "provider.output_invalid": "OutputParserException",
                "tool.failed": "ToolException",
                "tool.denied": "SSRFBlockedError",
                "internal.bug": "SchemaAnnotationError TracerException",
            },
        ),
    }
}
