"""Libraries that carry other people's exceptions: what is inside decides, however deep it is."""

import asyncio
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from failwell.adapters.describe import describe
from failwell.errors.axes import Category, Certainty
from failwell.errors.facts import NotBefore, ProviderMetadata
from failwell.errors.faults import ProviderTransient
from failwell.testing.laboratory.server import Lab

pytestmark = pytest.mark.filterwarnings("ignore")

SECRET = "the-words-nobody-may-see"
WHEN = datetime(2026, 1, 31, tzinfo=UTC)


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    """`error`, raised from `cause`."""
    with pytest.raises(type(error)) as caught:
        raise error from cause
    return caught.value


def _is_none(found: object) -> bool:
    return found is None


def retried(error: Exception | None, **more: Any) -> BaseException:
    tenacity: Any = pytest.importorskip("tenacity")

    def fail() -> None:
        if error is not None:
            raise error

    with pytest.raises(tenacity.RetryError) as caught:
        tenacity.Retrying(stop=tenacity.stop_after_attempt(2), **more)(fail)
    return caught.value


def test_a_retry_error_is_what_its_last_attempt_was() -> None:
    report = describe(retried(ConnectionRefusedError(111, SECRET)))

    assert (report.kind, report.error_type) == ("provider.connection", "RetryError")
    assert report.evidence[-1].rule == "tenacity.RetryError"


def test_a_fault_of_ours_inside_keeps_all_that_it_knows() -> None:
    fault = ProviderTransient(kind="provider.rate_limited", provider="openai", model="m", details={"a": 1})

    report = describe(retried(fault))

    assert (report.kind, report.provider, report.model) == ("provider.rate_limited", "openai", "m")
    assert report.details["a"] == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"not_before": NotBefore(after=float("nan"), source="by hand")},
        {"not_before": NotBefore(after=-1.0, source="by hand")},
        {"not_before": NotBefore(after=1.0, at=datetime(2026, 1, 1), source="by hand")},  # noqa: DTZ001  (a mistake)
        {
            "provider_metadata": ProviderMetadata(
                status_code=cast("Any", "429"), code="unknown", request_id="r-1"
            )
        },
        {"provider_metadata": ProviderMetadata(status_code=429, request_id="sk-" + "a1B2" * 12)},
    ],
)
def test_what_an_author_set_by_hand_in_a_fault_inside_is_checked_as_in_a_fault(
    fields: dict[str, Any],
) -> None:
    known: dict[str, Any] = {"provider_metadata": ProviderMetadata(sdk="openai", status_code=429), **fields}
    fault = ProviderTransient(kind="provider.rate_limited", provider="openai", **known)

    alone, inside = describe(fault, at=WHEN), describe(retried(fault), at=WHEN)

    assert inside.kind == "provider.rate_limited"
    assert inside.not_before == alone.not_before
    assert inside.provider_metadata == alone.provider_metadata


def test_a_group_inside_is_as_bad_as_its_worst_member() -> None:
    group = ExceptionGroup("two", [ConnectionRefusedError(111, "x"), AttributeError("y")])

    assert describe(retried(group)).kind == "internal.bug"


def test_a_result_that_never_pleased_is_exhausted_retries() -> None:
    tenacity: Any = pytest.importorskip("tenacity")

    report = describe(retried(None, retry=tenacity.retry_if_result(_is_none)))

    assert report.kind == "retry.exhausted"


def test_an_unknown_failure_inside_stays_unknown() -> None:
    class Odd(Exception):
        pass

    report = describe(retried(Odd()))

    assert (report.category, report.retryable) == (Category.UNKNOWN, False)


def test_wrappers_that_hold_each_other_come_to_an_end() -> None:
    tenacity: Any = pytest.importorskip("tenacity")
    attempt = tenacity.Future(1)
    error = tenacity.RetryError(attempt)
    attempt.set_exception(error)

    assert describe(error).category is Category.UNKNOWN


def test_an_attempt_that_is_still_running_is_not_waited_for() -> None:
    tenacity: Any = pytest.importorskip("tenacity")

    assert describe(tenacity.RetryError(tenacity.Future(1))).kind == "retry.exhausted"


def langchain_errors() -> Any:
    return pytest.importorskip("langchain_core.exceptions")


def test_an_answer_that_does_not_parse_is_a_bad_answer_and_stays_inside() -> None:
    parsers: Any = pytest.importorskip("langchain_core.output_parsers")
    with pytest.raises(langchain_errors().OutputParserException) as caught:
        parsers.JsonOutputParser().parse(SECRET)

    report = describe(caught.value)

    assert (report.kind, report.category) == ("provider.output_invalid", Category.CONTENT)
    assert SECRET not in report.to_json()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ContextOverflowError", "provider.context_too_long"),
        ("ModelAuthenticationError", "provider.auth"),
        ("ModelPermissionDeniedError", "provider.permission"),
        ("ModelInvalidRequestError", "provider.bad_request"),
        ("ModelNotFoundError", "provider.model_not_found"),
        ("ModelRateLimitError", "provider.rate_limited"),
        ("ModelAPIError", "provider.unavailable"),
        ("ModelTimeoutError", "provider.outcome_unknown"),
        ("ModelConnectionError", "provider.outcome_unknown"),
    ],
)
def test_a_model_error_is_known_by_its_class(name: str, kind: str) -> None:
    assert describe(getattr(langchain_errors(), name)("no")).kind == kind


def test_a_refused_connection_below_says_that_nothing_was_sent() -> None:
    error = raised(langchain_errors().ModelConnectionError("no"), ConnectionRefusedError(111, "no"))

    report = describe(error)

    assert (report.kind, report.certainty) == ("provider.connection", Certainty.NOT_SENT)


def test_an_sdk_error_mixed_in_is_read_as_the_sdks() -> None:
    openai: Any = pytest.importorskip("openai")
    mixed: Any = type("Mixed", (openai.RateLimitError, langchain_errors().ModelRateLimitError), {})
    with Lab() as lab, pytest.raises(openai.RateLimitError) as caught:
        client = openai.OpenAI(api_key="k", base_url=lab.url("openai", "empty_balance"), max_retries=0)
        with client:
            client.chat.completions.create(model="m", messages=[])
    found: Any = caught.value

    report = describe(mixed("no", response=found.response, body=found.body))

    assert report.kind == "provider.quota_exhausted"


def test_a_tools_error_is_a_failed_tool() -> None:
    tools: Any = pytest.importorskip("langchain_core.tools")

    assert describe(tools.ToolException(SECRET)).kind == "tool.failed"


def pydantic_ai_errors() -> Any:
    return pytest.importorskip("pydantic_ai.exceptions")


@pytest.mark.parametrize(
    ("name", "args", "kind"),
    [
        ("UsageLimitExceeded", ("limit",), "limit.budget_exceeded"),
        ("ContentFilterError", ("filtered",), "provider.content_refused"),
        ("IncompleteToolCall", ("cut",), "provider.output_truncated"),
        ("UnexpectedModelBehavior", ("odd", "{}"), "provider.output_invalid"),
        ("RunCancelled", ("stop",), "cancel.run"),
        ("RunTimedOut", ("late",), "limit.run_timeout"),
        ("ModelRetry", ("again",), "tool.input_invalid"),
        ("ToolFailed", ("no",), "tool.failed"),
        ("ApprovalRequired", (), "session.interaction_required"),
        ("ConcurrencyLimitExceeded", ("full",), "tool.busy"),
        ("UserError", ("agents need a name",), "validation.config_invalid"),
        ("UserError", ("Set the `OPENAI_API_KEY` environment variable",), "provider.auth"),
        ("ModelRequestTimeout", ("m", 3.0), "provider.outcome_unknown"),
        ("ModelContextWindowExceededError", ("m", "no"), "provider.context_too_long"),
        ("ModelQuotaExceededError", ("m", "no"), "provider.quota_exhausted"),
        ("SkipToolExecution", (None,), "internal.bug"),
        ("AgentRunError", ("Unexpected node",), "internal.bug"),
    ],
)
def test_its_own_categories_are_known(name: str, args: tuple[Any, ...], kind: str) -> None:
    assert describe(getattr(pydantic_ai_errors(), name)(*args)).kind == kind


def test_the_root_of_its_errors_does_not_speak_for_a_class_below_it() -> None:
    below = type("OfSomebodyElse", (pydantic_ai_errors().AgentRunError,), {"__module__": "shop"})

    assert describe(below("lost")).kind != "internal.bug"


@pytest.mark.parametrize(
    ("phase", "kind", "certainty"),
    [
        ("connect", "provider.connection", Certainty.NOT_SENT),
        ("pool", "provider.connection", Certainty.NOT_SENT),
        ("read", "provider.outcome_unknown", Certainty.UNKNOWN),
    ],
)
def test_the_phase_of_a_connection_error_says_what_was_sent(
    phase: str, kind: str, certainty: Certainty
) -> None:
    report = describe(pydantic_ai_errors().ModelConnectionError("m", "no", phase=phase))

    assert (report.kind, report.certainty) == (kind, certainty)


def test_models_that_all_failed_are_as_bad_as_the_worst() -> None:
    busy = pydantic_ai_errors().ModelOverloadedError("a", "busy", retry_after=9.0)
    wrong = pydantic_ai_errors().ModelAuthenticationError("b", "no", provider_error_code="invalid_api_key")
    group = pydantic_ai_errors().FallbackExceptionGroup("all failed", [busy, wrong])

    report = describe(group)

    assert describe(busy).kind == "provider.overloaded"
    assert describe(busy).not_before is not None
    assert (report.kind, report.details["members"]) == ("provider.auth", 2)


def _is_raisable(cls: Any) -> bool:
    return isinstance(cls, type) and not issubclass(cls, Warning | BaseExceptionGroup)


def test_each_class_is_known() -> None:
    errors = pydantic_ai_errors()
    found: list[Any] = [getattr(errors, name) for name in errors.__all__]
    raisable = [cls for cls in found if _is_raisable(cls)]

    unknown = [cls.__name__ for cls in raisable if describe(made(cls)).kind == "internal.unknown"]

    assert len(raisable) > 30
    assert unknown == []


def called(tool: str, arguments: dict[str, Any]) -> BaseException | Any:
    return asyncio.run(_called(tool, arguments))


async def _called(tool: str, arguments: dict[str, Any]) -> BaseException | Any:
    mcp: Any = pytest.importorskip("mcp")
    server: Any = pytest.importorskip("mcp.server.mcpserver")
    made = server.MCPServer("lab")

    @made.tool()
    def busy() -> str:
        raise mcp.MCPError(code=-32001, message=SECRET)

    @made.tool()
    def away() -> str:
        raise mcp.MCPError(code=-32000, message=SECRET)

    async with mcp.Client(made) as client:
        try:
            return await client.call_tool(tool, arguments)
        except Exception as error:
            return error


def test_a_protocol_error_over_a_real_session_is_known_by_its_code() -> None:
    late, gone = called("busy", {}), called("away", {})

    assert [describe(error).kind for error in (late, gone)] == [
        "tool.timeout",
        "provider.outcome_unknown",
    ]
    assert SECRET not in describe(late).to_json()
    assert describe(late).details["jsonrpc_code"] == -32001


@pytest.mark.parametrize(
    ("code", "said", "kind"),
    [
        (-32700, "", "provider.bad_request"),
        (-32600, "", "provider.bad_request"),
        (-32601, "", "provider.capability_missing"),
        (-32602, "bad arguments", "tool.input_invalid"),
        (-32602, "Unknown tool: x", "tool.not_found"),
        (-32603, "", "tool.failed"),
        (-32022, "", "validation.contract_version_mismatch"),
        (-32042, "", "session.interaction_required"),
        (-1, "", "tool.failed"),
    ],
)
def test_each_code_of_the_protocol_is_known(code: int, said: str, kind: str) -> None:
    mcp: Any = pytest.importorskip("mcp")

    assert describe(mcp.MCPError(code=code, message=said)).kind == kind


def test_a_tools_error_on_the_server_is_what_the_tool_raised() -> None:
    errors: Any = pytest.importorskip("mcp.server.mcpserver.exceptions")

    known = describe(raised(errors.ToolError(SECRET), ConnectionRefusedError(111, "no")))
    bare = describe(errors.ToolError(SECRET))

    assert (known.kind, bare.kind) == ("provider.connection", "tool.failed")


def made(cls: Any) -> BaseException:
    """One of `cls`, whatever its constructor wants."""
    return OSError.__new__(cls) if issubclass(cls, OSError) else cls.__new__(cls)
