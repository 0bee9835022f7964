"""SDKs without rules of their own: status, headers, body and codes are where every SDK has them.

One row for each: the module, the provider, and the classes at the root of its tree. What such an SDK raises before it
calls anybody is named in a second table.
"""

import re

from failwell.adapters.classification import Classification
from failwell.adapters.classify import classify
from failwell.adapters.facts import Facts, as_objects, codes_and_message, parse_body
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import adapter, in_stream, provider_of, text_of
from failwell.errors.axes import Certainty
from failwell.errors.foreign_objects import int_attr, safe_getattr
from failwell.errors.lazy_regex import lazy_regex

_ROOTS: tuple[tuple[str, str, str], ...] = (
    # module, provider, root classes
    ("a2a", "a2a", "A2AError"),
    ("ai21", "ai21", "AI21APIError AI21Error"),
    ("assemblyai", "assemblyai", "AssemblyAIError RealTimeError"),
    ("cerebras", "cerebras", "CerebrasError"),
    ("dashscope", "dashscope", "DashScopeException DashScopeError"),
    ("deepgram", "deepgram", "ApiError DeepgramError DeepgramApiError"),
    ("elevenlabs", "elevenlabs", "ApiError"),
    ("exa_py", "exa", "ExaTimeoutError"),
    ("firecrawl", "firecrawl", "FirecrawlError"),
    ("fireworks", "fireworks", "FireworksError"),
    ("openrouter", "openrouter", "OpenRouterError"),
    ("portkey_ai", "portkey", "APIError OpenAIError"),
    ("tavily", "tavily", "UsageLimitExceededError BadRequestError ForbiddenError"),
    ("voyageai", "voyageai", "VoyageError"),
    ("zhipuai", "zhipu", "ZhipuAIError"),
)

_LOCAL: dict[str, dict[str, str]] = {
    # module → kind → classes that name it
    "a2a": {
        "provider.outcome_unknown": "A2AClientTimeoutError",
        "provider.bad_request": "TaskNotFoundError TaskNotCancelableError ContentTypeNotSupportedError InvalidParamsError "
        "InvalidRequestError JSONParseError",
        "provider.capability_missing": "PushNotificationNotSupportedError UnsupportedOperationError "
        "ExtensionSupportRequiredError",
        "provider.rejected": "VersionNotSupportedError MethodNotFoundError ExtendedAgentCardNotConfiguredError "
        "AgentCardResolutionError",
        "provider.output_invalid": "InvalidAgentResponseError",
        "provider.unavailable": "InternalError",
        "provider.tls_failed": "SignatureVerificationError",
    },
    "ai21": {"provider.auth": "MissingApiKeyError CredentialsError", "provider.output_invalid": "StreamingDecodeError",
             "validation.input_invalid": "EmptyMandatoryListError"},
    "dashscope": {
        "provider.auth": "AuthenticationError",
        "provider.model_not_found": "UnsupportedModel InvalidModel",
        "validation.input_invalid": "InvalidParameter InvalidInput InvalidTask ModelRequired InvalidFileFormat UnsupportedTask",
        "provider.capability_missing": "NotImplemented MultiInputsWithBinaryNotSupported UnsupportedApiProtocol",
        "provider.output_invalid": "UnexpectedMessageReceived",
        "provider.outcome_unknown": "TimeoutException",
    },
    "tavily": {
        "provider.auth": "InvalidAPIKeyError MissingAPIKeyError",
        "provider.permission": "ForbiddenError KeylessUnsupportedEndpointError",
        "provider.quota_exhausted": "UsageLimitExceededError",
        "provider.bad_request": "BadRequestError",
        "provider.outcome_unknown": "TimeoutError",
    },
    "firecrawl": {"provider.outcome_unknown": "CrawlJobTimeoutError"},
    "exa_py": {"provider.outcome_unknown": "ExaTimeoutError"},
    "deepgram": {"provider.output_invalid": "ParsingError"},
    "elevenlabs": {"provider.output_invalid": "ParsingError"},
}  # fmt: skip
_PRINTED = lazy_regex(r"status code (\d{3})[:.]?\s*(.{0,4000})", re.DOTALL)
_NO_KEY = lazy_regex(
    r"\bapi[_ -]?key\b[^.\n]{0,60}(?:required|must|not|provide)|(?:no|provide|without)[^.\n]{0,40}\bapi[_ -]?key\b|未提供api_key",
    re.IGNORECASE,
)
_BUDGET = 412
"""Portkey's status for a budget that is used up."""


def _refine(error: BaseException, facts: Facts) -> None:
    facts.provider = provider_of(error, facts.provider or "") or facts.provider
    in_stream(error, facts)
    # Voyage keeps the body as `json_body`, AI21 as text in `details`, Zhipu as `json_data`.
    body = parse_body(safe_getattr(error, "json_body", "json_data", "details", "http_body"))
    if facts.body is None and isinstance(body, dict | list):
        facts.body = as_objects(body)
        codes, message = codes_and_message(facts.body)
        facts.codes = tuple(dict.fromkeys((*codes, *facts.codes)))
        facts.message = message or facts.message
    if facts.status == _BUDGET and facts.provider == "portkey":
        facts.codes = ("quota_exhausted", *facts.codes)
    if facts.status is None and facts.phase is None and not facts.codes and _NO_KEY.search(facts.message):
        # The SDK found it before it called anybody.
        facts.codes = ("missing_api_key",)


def raised(error: BaseException) -> Classification | None:
    """A `ValueError` of exa_py: it prints the status and the body of the reply into its text."""
    if type(error) is not ValueError:
        return None
    text = text_of(error)
    match = _PRINTED.search(text)
    if match is not None:
        body = as_objects(parse_body(match.group(2)))
        codes, message = codes_and_message(body) if not isinstance(body, str) else ({}, body)
        return classify(
            Facts(provider="exa", sdk="exa-py", exception_type="ValueError", status=int(match.group(1)),
                  codes=tuple(codes), message=message, body=body)
        )  # fmt: skip
    if _NO_KEY.search(text):
        return Classification.from_rule(
            kind="provider.auth", rule="exa_py.ValueError", provider="exa", certainty=Certainty.NOT_SENT
        )
    return None


def _limited(error: BaseException) -> Classification:
    """Tavily without a key: a limit that says how long its window is."""
    wait = int_attr(error, "retry_after_seconds")
    facts = Facts(
        provider="tavily", sdk="tavily", exception_type=type(error).__name__, status=429,
        headers={} if wait is None else {"retry-after": str(wait)}, message=text_of(error),
    )  # fmt: skip
    return classify(facts)


def _tables() -> dict[str, Table]:
    tables: dict[str, Table] = {}
    for module, provider, roots in _ROOTS:
        read = adapter(provider, module, _refine)
        tables[module] = dict.fromkeys(roots.split(), read)
        for kind, names in _LOCAL.get(module, {}).items():
            for name in names.split():
                tables[module][name] = Classification.from_rule(
                    kind=kind, rule=f"{module}.{name}", saw=name, provider=provider
                )
    tables["tavily"]["TavilyKeylessLimitError"] = _limited
    return tables


TABLES: dict[str, Table] = _tables()
