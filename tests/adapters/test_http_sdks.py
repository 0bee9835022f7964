"""SDKs that are read by the usual attributes: each raises its classes as its release makes them."""

import sys
from typing import Any

from failwell import describe
from failwell.adapters.registry import read
from tests.adapters.raisers import CANARY, caught
from tests.specimens import each


def an_error(module: str, name: str, text: str = CANARY, **attributes: Any) -> BaseException:
    """An exception with the names, the text and the attributes that the SDK gives it."""
    error: BaseException = type(name, (Exception,), {"__module__": module})(text)
    vars(error).update(attributes)
    return error


ERRORS: list[tuple[BaseException, str, str]] = [
    (
        an_error("elevenlabs.core.api_error", "ApiError", status_code=401, headers={},
                 body={"detail": {"status": "quota_exceeded", "message": CANARY}}),
        "elevenlabs", "provider.quota_exhausted",
    ),
    (
        an_error("elevenlabs.core.api_error", "ApiError", status_code=429, headers={},
                 body={"detail": {"status": "too_many_concurrent_requests", "message": CANARY}}),
        "elevenlabs", "provider.rate_limited",
    ),
    (
        an_error("elevenlabs.core.api_error", "ApiError", status_code=400, headers={},
                 body={"detail": {"status": "max_character_limit_exceeded", "message": CANARY}}),
        "elevenlabs", "provider.context_too_long",
    ),
    (
        an_error("deepgram.core.api_error", "ApiError", status_code=402, headers={},
                 body={"err_code": "ASR_PAYMENT_REQUIRED", "err_msg": CANARY, "request_id": "r"}),
        "deepgram", "provider.quota_exhausted",
    ),
    (
        an_error("deepgram.core.api_error", "ApiError", status_code=403, headers={},
                 body={"err_code": "INSUFFICIENT_PERMISSIONS", "err_msg": CANARY}),
        "deepgram", "provider.permission",
    ),
    (
        an_error("voyageai.error", "VoyageError", http_status=400, json_body={"detail": "Model x is not supported. Supported models are ['voyage-2', 'voyage-law-2']."}),
        "voyageai", "provider.model_not_found",
    ),
    (an_error("voyageai.error", "VoyageError", http_status=429, json_body={"detail": "rate limit"}), "voyageai", "provider.rate_limited"),
    (an_error("ai21.errors", "AI21APIError", status_code=401, details='{"detail": "Forbidden: Bad or missing API token."}'), "ai21", "provider.auth"),
    (an_error("ai21.errors", "MissingApiKeyError"), "ai21", "provider.auth"),
    (an_error("assemblyai.types", "AssemblyAIError", status_code=500), "assemblyai", "provider.unavailable"),
    (an_error("firecrawl.v2.utils.error_handler", "FirecrawlError", status_code=402), "firecrawl", "provider.quota_exhausted"),
    (an_error("firecrawl.v2.utils.error_handler", "FirecrawlError", status_code=500, code="SCRAPE_DNS_RESOLUTION_ERROR"), "firecrawl", "provider.connection"),
    (an_error("tavily.errors", "UsageLimitExceededError"), "tavily", "provider.quota_exhausted"),
    (an_error("tavily.errors", "TavilyKeylessLimitError", "limit", retry_after_seconds=9), "tavily", "provider.rate_limited"),
    (an_error("tavily.errors", "InvalidAPIKeyError"), "tavily", "provider.auth"),
    (
        an_error("zhipuai.core._errors", "ZhipuAIError", status_code=429, body={"error": {"code": "1113", "message": CANARY}}),
        "zhipu", "provider.quota_exhausted",
    ),
    (
        an_error("zhipuai.core._errors", "ZhipuAIError", status_code=400, body={"error": {"code": "1301", "message": CANARY}}),
        "zhipu", "provider.content_refused",
    ),
    (an_error("zhipuai.core._errors", "ZhipuAIError", "未提供api_key，请通过参数或环境变量提供"), "zhipu", "provider.auth"),
    (
        an_error("dashscope.v2.errors", "DashScopeError", status_code=400, code="DataInspectionFailed"),
        "dashscope", "provider.content_refused",
    ),
    (an_error("dashscope.v2.errors", "DashScopeError", status_code=400, code="Arrearage"), "dashscope", "provider.quota_exhausted"),
    (an_error("dashscope.common.error", "AuthenticationError"), "dashscope", "provider.auth"),
    (an_error("portkey_ai.api_resources.exceptions", "APIError", status_code=412), "portkey", "provider.quota_exhausted"),
    (
        an_error("openrouter.errors.openroutererror", "OpenRouterError", status_code=402, headers={"retry-after": "4"},
                 body='{"error": {"code": 402, "message": "…", "metadata": {"limit_source": "openrouter_in_flight_budget"}}}'),
        "openrouter", "provider.rate_limited",
    ),
    (
        an_error("openrouter.errors.openroutererror", "OpenRouterError", status_code=400, headers={},
                 body='{"error": {"code": 400, "message": "…", "metadata": {"error_type": "context_length_exceeded"}}}'),
        "openrouter", "provider.context_too_long",
    ),
    (an_error("a2a.utils.errors", "TaskNotFoundError"), "a2a", "provider.bad_request"),
    (an_error("a2a.client.errors", "A2AClientTimeoutError"), "a2a", "provider.outcome_unknown"),
    (an_error("cerebras.cloud.sdk", "CerebrasError", status_code=404, body={"code": "model_not_found"}), "cerebras", "provider.model_not_found"),
]  # fmt: skip


@each(
    ("error", "provider", "kind"),
    ERRORS,
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_an_sdk_with_the_usual_attributes_is_read_without_rules_of_its_own(
    error: BaseException, provider: str, kind: str
) -> None:
    reading = read(error)
    report = describe(error)

    assert reading is not None
    assert (report.kind, report.provider) == (kind, provider)
    assert CANARY not in report.to_json()


def test_a_budget_in_flight_says_how_long_to_wait() -> None:
    report = next(describe(error) for error, provider, _ in ERRORS if provider == "openrouter")

    assert report.not_before is not None
    assert report.not_before.after == 4
    assert report.retryable


def test_a_value_error_of_exa_is_read_by_the_reply_that_it_prints() -> None:
    module: dict[str, Any] = {"__name__": "exa_py.api"}
    exec("def call(text):\n    raise ValueError(text)", module)

    def kind(text: str) -> str:
        return describe(caught(lambda: module["call"](text))).kind

    sys.modules.setdefault("exa_py", type(sys)("exa_py"))
    try:
        assert (
            kind('Request failed with status code 402: {"tag": "NO_MORE_CREDITS"}')
            == "provider.quota_exhausted"
        )
        assert kind("Request failed with status code 500: oops") == "provider.unavailable"
        assert (
            kind("API key must be provided as an argument or in EXA_API_KEY environment variable")
            == "provider.auth"
        )
    finally:
        del sys.modules["exa_py"]
