"""litellm: rewrites statuses and invents replies, so the exception that it caught is read and not the one that it raised.

The provider's error is only the implicit context. It counts if it came through litellm's own code,
because the context may also be something that the caller was dealing with before. The prompt is on
`litellm_debug_info`, which is never read; the real headers are on `litellm_response_headers`.
"""

from failwell.adapters.classification import Classification
from failwell.adapters.classify import classify
from failwell.adapters.registry import Table, entries
from failwell.adapters.sdk_exceptions import gather
from failwell.adapters.traceback_frames import tops_of
from failwell.adapters.vendor_tables import carries, cause_of, envelopes, rows
from failwell.errors.axes import Certainty
from failwell.errors.facts import NotBefore, ProviderMetadata
from failwell.errors.foreign_objects import int_attr, safe_getattr, str_attr
from failwell.errors.headers import allow_listed, lower_headers

_DEEPEST = 8
_REPLIES = (
    "APIConnectionError", "APIError", "APIResponseValidationError", "AuthenticationError", "BadGatewayError",
    "BadRequestError", "BaseLLMException", "InternalServerError", "InvalidRequestError", "NotFoundError",
    "OpenAIError", "PermissionDeniedError", "RateLimitError", "ServiceUnavailableError", "Timeout",
    "UnprocessableEntityError",
)  # fmt: skip
_CODES = {
    "ContextWindowExceededError": "context_length_exceeded",
    "ContentPolicyViolationError": "content_policy_violation",
    "RejectedRequestError": "content_policy_violation",
    "UnsupportedParamsError": "unsupported_parameter",
    "PaymentRequiredError": "payment_required",
}
_INVENTED = frozenset({"throttling_error", "429"})
"""What every `RateLimitError` holds, whatever the provider said. The words of the provider are in its message."""


def _read(error: BaseException) -> Classification:
    rule = f"litellm.{type(error).__name__}"
    provider, model = str_attr(error, "llm_provider"), str_attr(error, "model")
    headers = lower_headers(safe_getattr(error, "litellm_response_headers"))
    caught = _caught(error)
    own = _own(error, headers, provider)
    if caught is None:
        return own
    known = ProviderMetadata(
        sdk="litellm", exception_type=type(error).__name__, headers=allow_listed(headers)
    )
    return carries(caught, rule, otherwise=own.kind, provider=provider, model=model, provider_metadata=known)


def _caught(error: BaseException) -> BaseException | None:
    """The nearest exception below that is not litellm's own and came through its code."""
    link: BaseException | None = _original(error) or cause_of(error)
    for _ in range(_DEEPEST):
        if link is None:
            return None
        if _is_caught(link):
            return link
        link = _original(link) or cause_of(link)
    return None


def _original(error: BaseException) -> BaseException | None:
    original = safe_getattr(error, "original_exception")
    return original if isinstance(original, BaseException) and original is not error else None


def _is_caught(link: BaseException) -> bool:
    tops = [cls.__module__.partition(".")[0] for cls in type(link).__mro__]
    # Its errors are subclasses of openai's; its own subclass of httpx's status error is the real reply.
    own = tops[0] == "litellm" and "httpx" not in tops
    if own or (tops[0] == "builtins" and not isinstance(link, UnicodeDecodeError)):
        return False
    return bool(entries(type(link))) and "litellm" in tops_of(link)


def _own(error: BaseException, headers: dict[str, str], provider: str | None) -> Classification:
    facts = gather(error, provider, "litellm")
    facts.headers = headers
    facts.codes = tuple(code for code in facts.codes if code not in _INVENTED)
    facts.in_stream = any(cls.__name__ == "MidStreamFallbackError" for cls in type(error).__mro__)
    code = next((_CODES[cls.__name__] for cls in type(error).__mro__ if cls.__name__ in _CODES), None)
    if code is not None:
        facts.codes = (code, *facts.codes)
    return classify(facts)


def _cooling(error: BaseException) -> Classification:
    wait = safe_getattr(error, "cooldown_time")
    known = isinstance(wait, int | float) and not isinstance(wait, bool) and wait >= 0
    return Classification.from_rule(
        kind="provider.unavailable",
        rule="litellm.RouterRateLimitError",
        saw=type(error).__name__,
        certainty=Certainty.NOT_SENT,
        model=str_attr(error, "model"),
        not_before=NotBefore(after=float(wait), source="router cooldown") if known else None,
        details={} if (status := int_attr(error, "status_code")) is None else {"status": status},
    )


TABLES: dict[str, Table] = {
    "litellm": {
        **dict.fromkeys(_REPLIES, _read),
        **envelopes("litellm", {
            "provider.unknown": "A2AError UpstreamFailure",
            "internal.unknown": "HarnessError",
        }),
        **rows("litellm", {
            "provider.output_invalid": "JSONSchemaValidationError OutputInvalid",
            "provider.content_refused": "GuardrailRaisedException BlockedPiiEntityError SensitiveDataRouteException "
                                        "GuardrailInterventionNormalStringError ModifyResponseException",
            "provider.connection": "A2AConnectionError",
            "provider.rejected": "A2AAgentCardError A2AAgentCardDiscoveryError",
            "provider.capability_missing": "CapabilityUnsupported",
            "provider.auth": "AwsAuthError UnauthorizedError",
            "limit.budget_exceeded": "BudgetExceededError",
            "limit.turn_limit": "ToolLoopMaxRoundsExceeded AdvisorMaxIterationsError",
            "validation.config_invalid": "ModelNotMappedError LiteLLMUnknownProvider A2ALocalhostURLError OptionsMismatch",
            "validation.input_invalid": "SSRFError ImageFetchError",
            "extension.dependency_missing": "HarnessInstallFailed",
            "internal.sandbox_error": "SandboxError",
            "session.resume_mismatch": "StateIncompatible",
            "internal.bug": "SessionClosed TraceChanged",
        }),
        "RouterRateLimitError": _cooling,
        "RouterRateLimitErrorBasic": _cooling,
    }
}  # fmt: skip
