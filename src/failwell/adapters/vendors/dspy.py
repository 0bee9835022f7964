"""dspy: errors of a language model with status, code, model and wait, and answers that its adapters cannot parse."""

from failwell.adapters.facts import Facts
from failwell.adapters.registry import Table, read
from failwell.adapters.sdk_exceptions import adapter
from failwell.adapters.vendor_tables import envelopes, inner_of, rows
from failwell.errors.foreign_objects import safe_getattr, str_attr

_CODES: dict[str, str] = {
    "LMAuthError": "authentication_error",
    "LMBillingError": "insufficient_quota",
    "LMRateLimitError": "rate_limit_error",
    "LMInvalidRequestError": "invalid_request_error",
    "ContextWindowExceededError": "context_length_exceeded",
    "LMUnsupportedModelError": "model_not_found",
    "LMTimeoutError": "timeout_error",
    "LMServerError": "server_error",
}
"""What a class of dspy's says, in the codes that providers use."""
_TOO_MANY = 429
_DEEPEST = 4


def _refine(error: BaseException, facts: Facts) -> None:
    names = [cls.__name__ for cls in type(error).__mro__]
    own = str_attr(error, "provider_code")
    by_class = next((_CODES[name] for name in names if name in _CODES), None)
    # `code` repeats the class in dspy's own words.
    facts.codes = tuple(code.lower() for code in (own, by_class) if code)
    facts.provider = str_attr(error, "provider")
    if "LMTransportError" in names and facts.phase is None:
        # It says that no reply came, not that nothing was sent.
        facts.phase = "closed"
    wait = safe_getattr(error, "retry_after")
    if wait is None and facts.status == _TOO_MANY:
        wait = _inner_wait(error)
    if isinstance(wait, int | float) and not isinstance(wait, bool) and "retry-after" not in facts.headers:
        facts.headers = {**facts.headers, "retry-after": f"{wait:g}"}


def _inner_wait(error: BaseException) -> float | None:
    """The delay that an exception below names: dspy drops the headers of LiteLLM's."""
    inner = inner_of(error)
    for _ in range(_DEEPEST):
        reading = None if inner is None else read(inner)
        if inner is None or (reading is not None and reading.not_before is not None):
            return None if reading is None or reading.not_before is None else reading.not_before.after
        inner = inner_of(inner)
    return None


_reply = adapter(None, "dspy", _refine)

TABLES: dict[str, Table] = {
    "dspy": {
        "LMProviderError": _reply,
        "LMTransportError": _reply,
        **envelopes("dspy", {
            "provider.unknown": "LMError LMUnexpectedError",
            "internal.unknown": "DSPyError",
            "provider.stream_interrupted": "LMStreamAssemblyError",
            "internal.sandbox_error": "CodeInterpreterError",
        }),
        **rows("dspy", {
            "tool.busy": "LMLockTimeoutError",
            "limit.budget_exceeded": "LMCollectionLimitError",
            "validation.config_invalid": "LMConfigurationError LMNotConfiguredError",
            "provider.capability_missing": "LMUnsupportedFeatureError",
            "provider.output_invalid": "AdapterParseError",
            "internal.script_error": "CodeExecutionError",
        }),
    }
}  # fmt: skip
