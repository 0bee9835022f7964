"""What Google, Mistral, AWS, Hugging Face, Cohere, fal, Azure, requests and aiohttp raise, with their real classes."""

import asyncio
import inspect
import json
import socket
from importlib import import_module
from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.adapters.registry import find
from failwell.errors.axes import Category, Certainty
from failwell.errors.report import ErrorReport

CANARY = "canary-77c1-do-not-quote"
URL = "https://example.test/v1/things"
RPC = "type.googleapis.com/google.rpc"


def real(module: str) -> Any:
    """A module of an SDK; the test is skipped where it is not installed."""
    return pytest.importorskip(module)


def gemini(status: int, name: str, message: str, *details: dict[str, Any]) -> BaseException:
    errors = real("google.genai.errors")
    body = {"error": {"code": status, "message": message, "status": name, "details": list(details)}}
    return (errors.ClientError if status < 500 else errors.ServerError)(status, body)


def violation(quota: str) -> dict[str, Any]:
    return {"@type": f"{RPC}.QuotaFailure", "violations": [{"quotaId": quota, "quotaValue": "20"}]}


def retry_in(delay: str) -> dict[str, Any]:
    return {"@type": f"{RPC}.RetryInfo", "retryDelay": delay}


def aws(
    code: str, message: str, status: int | None = 400, operation: str = "Converse", **more: Any
) -> BaseException:
    around: dict[str, Any] = {"RequestId": "req-1", "HTTPHeaders": {"x-amzn-requestid": "req-1"}}
    if status is not None:
        around["HTTPStatusCode"] = status
    response = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": around, **more}
    return real("botocore.exceptions").ClientError(response, operation)


def mistral(status: int, body: dict[str, Any], **headers: str) -> BaseException:
    library, errors = real("httpx2"), real("mistralai.client.errors")
    reply = library.Response(status, headers=headers, text=json.dumps(body))
    return errors.SDKError("API error occurred", reply)


def hugging_face(status: int, headers: dict[str, str] | None = None, *, read: bool = True) -> BaseException:
    library, errors = real("httpx2"), real("huggingface_hub.errors")

    def never() -> Any:
        yield b'{"error": "' + CANARY.encode() + b'"}'

    body: dict[str, Any] = {"text": '{"error": "no"}'} if read else {"content": never()}
    reply = library.Response(status, headers=headers or {}, request=library.Request("POST", URL), **body)
    return errors.HfHubHTTPError(f"{status} for url {URL} {CANARY}", response=reply)


def fal(status: int, said: Any, error_type: str | None = None) -> BaseException:
    library, client = real("httpx"), real("fal_client.client")
    reply = library.Response(status, json={"detail": said}, request=library.Request("POST", URL))
    headers = {"x-fal-request-id": "req-2"}
    return client.FalClientHTTPError(said, status, headers, reply, error_type)


def azure(status: int, body: dict[str, Any]) -> BaseException:
    exceptions = real("azure.core.exceptions")

    class Reply:
        """As much of a reply as azure.core asks for."""

        status_code = status
        reason = "Forbidden" if status == 403 else "Too Many Requests"
        headers = {"apim-request-id": "req-3"}

        def text(self) -> str:
            return json.dumps(body)

    return exceptions.HttpResponseError(response=Reply())


def told(report: ErrorReport) -> tuple[str, float | None]:
    return report.kind, None if report.not_before is None else report.not_before.after


# ---------------------------------------------------------------- Google


@pytest.mark.acceptance("pipelex 26")
def test_a_gemini_window_of_a_minute_passes_and_says_when() -> None:
    error = gemini(
        429,
        "RESOURCE_EXHAUSTED",
        "You exceeded your current quota, please check your plan and billing details. Please retry in 28.5s.",
        violation("GenerateRequestsPerMinutePerProjectPerModel-FreeTier"),
        retry_in("28s"),
    )

    report = describe(error)

    assert told(report) == ("provider.rate_limited", 28.0)
    assert (report.category, report.retryable) == (Category.TRANSIENT, True)
    assert report.details["window"] == "minute"


@pytest.mark.acceptance("pipelex 26")
@pytest.mark.parametrize(
    ("message", "details"),
    [
        (
            "You exceeded your current quota.",
            [violation("GenerateRequestsPerDayPerProjectPerModel-FreeTier")],
        ),
        (
            "You exceeded your current quota. Please retry in 28.5s.",
            [
                violation("GenerateRequestsPerMinutePerProjectPerModel"),
                violation("GenerateRequestsPerDayPerProjectPerModel"),
                retry_in("28s"),
            ],
        ),
        ("Your prepayment credits are depleted.", []),
    ],
)
def test_a_gemini_window_of_a_day_or_an_empty_balance_is_used_up(message: str, details: list[Any]) -> None:
    report = describe(gemini(429, "RESOURCE_EXHAUSTED", message, *details))

    assert report.kind == "provider.quota_exhausted"
    assert (report.category, report.retryable) == (Category.CAPACITY, False)


@pytest.mark.acceptance("pipelex 27")
def test_gemini_says_with_a_400_that_a_key_is_wrong() -> None:
    reason = {"@type": f"{RPC}.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}
    error = gemini(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", reason)

    report = describe(error)

    assert (report.kind, report.category) == ("provider.auth", Category.CONFIGURATION)
    assert report.user_action is not None
    assert report.user_action.kind == "check_credentials"


def test_the_trees_for_googles_newer_endpoints_are_read_as_the_old_one() -> None:
    library, newer = real("httpx2"), real("google.genai._gaos.lib.compat_errors")
    generated = real("google.genai._gaos.errors.genaidefaulterror")
    body = {
        "error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED", "details": [retry_in("9s")]}
    }
    request = library.Request("POST", "https://us-aiplatform.googleapis.com/v1/interactions")
    reply = library.Response(429, json=body, request=request)

    found = [
        describe(newer.RateLimitError("429", response=reply, body=body)),
        describe(generated.GenAiDefaultError("429", reply)),
    ]

    assert [told(report) for report in found] == [("provider.rate_limited", 9.0)] * 2
    assert found[0].provider == "google-vertex"


def test_an_interaction_that_stopped_between_two_parts_was_partly_made() -> None:
    errors = real("google.genai.errors")
    error = errors.ContinuationInterruptedError("stopped after the first part")
    error.__cause__ = gemini(503, "UNAVAILABLE", "The model is overloaded.")

    report = describe(error)

    assert (report.kind, report.certainty) == ("provider.overloaded", Certainty.PARTIAL)


def test_details_of_google_rpc_are_read_from_messages_as_from_json() -> None:
    exceptions, details = real("google.api_core.exceptions"), real("google.rpc.error_details_pb2")
    delay = details.RetryInfo()
    delay.retry_delay.seconds, delay.retry_delay.nanos = 12, 500_000_000
    per_day = details.QuotaFailure()
    per_day.violations.add(quota_id="GenerateRequestsPerDayPerProject")

    passing = describe(exceptions.ResourceExhausted("slow down", details=[delay]))
    used_up = describe(exceptions.ResourceExhausted("no more", details=[per_day]))

    assert told(passing) == ("provider.rate_limited", 12.5)
    assert used_up.kind == "provider.quota_exhausted"


def test_google_retries_that_were_given_up_are_what_failed_each_time() -> None:
    exceptions = real("google.api_core.exceptions")
    last = exceptions.ServiceUnavailable("no room")

    report = describe(exceptions.RetryError("Timeout of 60.0s exceeded", cause=last))

    assert report.kind == "provider.overloaded"


def test_a_google_token_that_cannot_be_fetched_is_about_credentials_and_nothing_was_sent() -> None:
    exceptions = real("google.auth.exceptions")

    for error in (exceptions.DefaultCredentialsError("none"), exceptions.RefreshError("expired")):
        report = describe(error)
        assert (report.kind, report.certainty) == ("provider.auth", Certainty.NOT_SENT)


# ---------------------------------------------------------------- Mistral


@pytest.mark.acceptance("pipelex 16")
def test_mistral_without_money_is_told_from_mistral_in_a_hurry() -> None:
    empty = describe(mistral(402, {"message": "Payment required"}))
    hurried = describe(mistral(429, {"message": "Requests rate limit exceeded", "code": "1300"}))

    assert (empty.kind, empty.category) == ("provider.quota_exhausted", Category.CAPACITY)
    assert (hurried.kind, hurried.category) == ("provider.rate_limited", Category.TRANSIENT)


def test_mistral_keeps_its_code_in_a_body_of_text() -> None:
    error = mistral(400, {"type": "invalid_model", "message": "Invalid model: nope", "code": "1500"})

    report = describe(error)

    assert report.kind == "provider.model_not_found"
    assert report.provider_metadata is not None
    assert report.provider_metadata.code == "invalid_model"


def test_a_workflow_stream_that_mistral_breaks_off_is_read_from_its_last_frame() -> None:
    exceptions = real("mistralai.extra.exceptions")
    said = json.dumps({"type": "service_tier_capacity_exceeded", "message": "no room"})

    known = describe(exceptions.StreamDisconnectedError(reason="stream_error", error=said))
    unknown = describe(exceptions.StreamDisconnectedError(reason="read_error", error="gone"))

    assert (known.kind, known.certainty) == ("provider.overloaded", Certainty.PARTIAL)
    assert unknown.kind == "provider.stream_interrupted"


# ---------------------------------------------------------------- AWS


@pytest.mark.acceptance("pipelex 17")
@pytest.mark.parametrize("status", [400, None])
def test_a_used_up_service_quota_is_capacity_with_or_without_a_status(status: int | None) -> None:
    report = describe(aws("ServiceQuotaExceededException", "Your request exceeds the quota.", status))

    assert (report.kind, report.category) == ("provider.quota_exhausted", Category.CAPACITY)
    assert report.provider == "bedrock"


@pytest.mark.acceptance("pipelex 28")
@pytest.mark.parametrize(
    "message",
    [
        "Too many requests, please wait before trying again.",
        "Rate limit exceeded for this account.",
        "You have reached the quota for on-demand model invocations per minute.",
        "",
    ],
)
def test_throttling_passes_whatever_it_says(message: str) -> None:
    report = describe(aws("ThrottlingException", message, 429))

    assert (report.kind, report.retryable) == ("provider.rate_limited", True)


@pytest.mark.acceptance("pipelex 28")
def test_throttling_over_a_day_is_a_used_up_quota() -> None:
    report = describe(
        aws("ThrottlingException", "Too many tokens per day, please wait before trying again.", 429)
    )

    assert (report.kind, report.retryable) == ("provider.quota_exhausted", False)


def test_throttling_that_speaks_of_a_day_does_not_pass_soon() -> None:
    report = describe(aws("ThrottlingException", "Too many tokens per day, please wait.", 429))

    assert report.kind == "provider.quota_exhausted"


@pytest.mark.acceptance("pipelex 28")
def test_an_invalid_model_id_on_bedrock_is_a_model_that_is_not_there() -> None:
    report = describe(aws("ValidationException", "The provided model identifier is invalid."))

    assert (report.kind, report.category) == ("provider.model_not_found", Category.CONFIGURATION)


def test_an_error_in_an_event_stream_does_not_count_the_status_that_nobody_sent() -> None:
    response = {
        "Error": {"Code": "throttlingException", "Message": "slow"},
        "ResponseMetadata": {"HTTPStatusCode": 400},
    }
    error = real("botocore.exceptions").EventStreamError(response, "ConverseStream")

    report = describe(error)

    assert (report.kind, report.certainty) == ("provider.rate_limited", Certainty.PARTIAL)
    assert report.provider_metadata is not None
    assert report.provider_metadata.status_code is None


def test_what_botocore_finds_before_sending_was_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    session = real("botocore.session")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    client = session.Session().create_client("s3", region_name="eu-west-1")

    found: dict[str, ErrorReport] = {}
    for name, act in {
        "no credentials": client.list_buckets,
        "no region": lambda: session.Session().create_client("bedrock-runtime"),
        "no bucket": client.list_objects_v2,
    }.items():
        with pytest.raises(Exception) as caught:
            act()
        found[name] = describe(caught.value)

    assert {name: report.kind for name, report in found.items()} == {
        "no credentials": "provider.auth",
        "no region": "validation.config_invalid",
        "no bucket": "validation.input_invalid",
    }
    assert {report.certainty for report in found.values()} == {Certainty.NOT_SENT}


# ---------------------------------------------------------------- Hugging Face


@pytest.mark.acceptance("pipelex 35")
def test_a_body_that_nobody_read_is_left_unread() -> None:
    error: Any = hugging_face(503, {"x-request-id": "req-4"}, read=False)

    report = describe(error)

    assert report.kind == "provider.overloaded"
    assert not error.response.is_stream_consumed
    assert report.provider_metadata is not None
    assert (report.provider_metadata.status_code, report.provider_metadata.request_id) == (503, "req-4")
    assert CANARY not in report.to_json()


def test_a_hub_error_is_a_reply_although_it_is_an_os_error_and_hides_its_request() -> None:
    error = hugging_face(402)
    assert isinstance(error, OSError)
    with pytest.raises(RuntimeError):
        getattr(error, "request", None)

    report = describe(error)

    assert report.kind == "provider.quota_exhausted"


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (401, "RepoNotFound", "provider.model_not_found"),
        (404, "RevisionNotFound", "provider.model_not_found"),
        (404, "EntryNotFound", "provider.bad_request"),
        (401, "GatedRepo", "provider.permission"),
        (401, None, "provider.auth"),
    ],
)
def test_the_hub_says_in_a_header_what_a_status_was_about(status: int, code: str | None, kind: str) -> None:
    library, utils = real("httpx2"), real("huggingface_hub.utils")
    headers = {} if code is None else {"X-Error-Code": code}
    request = library.Request("GET", "https://huggingface.co/api/models/some/model")
    reply = library.Response(status, headers=headers, json={"error": "no such thing"}, request=request)

    with pytest.raises(OSError) as caught:
        utils.hf_raise_for_status(reply)
    report = describe(caught.value)

    assert report.kind == kind


def test_the_hubs_own_window_is_read_from_its_rate_limit_field() -> None:
    report = describe(hugging_face(429, {"RateLimit": '"api";r=0;t=55'}))

    assert told(report) == ("provider.rate_limited", 55.0)


def test_working_offline_on_purpose_is_a_setting_and_no_broken_connection() -> None:
    report = describe(real("huggingface_hub.errors").OfflineModeIsEnabled("offline"))

    assert report.kind == "validation.config_invalid"


# ---------------------------------------------------------------- Cohere


def test_cohere_prints_headers_and_none_of_it_gets_into_a_report() -> None:
    errors = real("cohere.errors")
    headers = {"authorization": CANARY, "retry-after": "7"}

    report = describe(errors.TooManyRequestsError(headers=headers, body={"message": f"wait {CANARY}"}))

    assert told(report) == ("provider.rate_limited", 7.0)
    assert CANARY not in report.to_json()


@pytest.mark.parametrize("body", ["invalid token", {"message": "invalid token"}, None])
def test_cohere_refuses_a_token_with_a_status_of_its_own(body: Any) -> None:
    report = describe(real("cohere.errors").InvalidTokenError(body=body))

    assert report.kind == "provider.auth"


# ---------------------------------------------------------------- fal


@pytest.mark.acceptance("pipelex 29")
def test_an_exhausted_balance_on_fal_is_no_missing_permission() -> None:
    report = describe(fal(403, "User is locked. Reason: Exhausted balance."))

    assert (report.kind, report.category) == ("provider.quota_exhausted", Category.CAPACITY)


def test_fal_names_a_refusal_in_a_list_of_validation_items() -> None:
    items = [{"loc": ["body", "prompt"], "msg": CANARY, "type": "content_policy_violation"}]

    report = describe(fal(422, items))

    assert report.kind == "provider.content_refused"
    assert CANARY not in report.to_json()


def test_a_run_without_a_key_never_leaves_for_fal() -> None:
    report = describe(real("fal_client.auth").MissingCredentialsError("no key"))

    assert (report.kind, report.certainty) == ("provider.auth", Certainty.NOT_SENT)


# ---------------------------------------------------------------- Azure


@pytest.mark.acceptance("pipelex 29")
def test_a_used_up_quota_on_azure_is_read_from_the_body() -> None:
    body = {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota."}}

    report = describe(azure(429, body))

    assert (report.kind, report.category) == ("provider.quota_exhausted", Category.CAPACITY)


def test_the_words_beside_a_status_are_no_code() -> None:
    body = {"error": {"message": "Out of credits: add a payment method."}}

    report = describe(azure(403, body))

    assert report.kind == "provider.quota_exhausted"


def test_an_identity_that_is_not_there_is_about_credentials() -> None:
    report = describe(real("azure.identity").CredentialUnavailableError("no identity"))

    assert (report.kind, report.certainty) == ("provider.auth", Certainty.NOT_SENT)


# ---------------------------------------------------------------- requests and aiohttp


def test_requests_reads_a_body_that_is_there_and_fetches_none_that_is_not() -> None:
    requests = real("requests")
    read, unread = requests.Response(), requests.Response()
    for reply in (read, unread):
        reply.status_code = 429
    read._content = b'{"error": {"code": "insufficient_quota"}}'

    class Untouched:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"{name} of an unread reply was asked for")

    unread.raw = Untouched()

    known = describe(requests.HTTPError("429", response=read))
    plain = describe(requests.HTTPError("429", response=unread))

    assert known.kind == "provider.quota_exhausted"
    assert plain.kind == "provider.rate_limited"


@pytest.mark.parametrize(
    ("inner", "kind"),
    [
        ("NameResolutionError", "provider.connection"),
        ("NewConnectionError", "provider.connection"),
        ("ReadTimeoutError", "provider.outcome_unknown"),
        ("ProtocolError", "provider.outcome_unknown"),
        ("SSLError", "provider.tls_failed"),
    ],
)
def test_one_connection_error_of_requests_stands_for_many(inner: str, kind: str) -> None:
    requests, exceptions = real("requests"), real("urllib3.exceptions")
    made = {
        "NameResolutionError": lambda: exceptions.NameResolutionError("host", None, socket.gaierror("no")),
        "NewConnectionError": lambda: exceptions.NewConnectionError(None, "refused"),
        "ReadTimeoutError": lambda: exceptions.ReadTimeoutError(None, None, "timed out"),
        "ProtocolError": lambda: exceptions.ProtocolError("Connection aborted."),
        "SSLError": lambda: exceptions.SSLError("bad certificate"),
    }[inner]()
    error = requests.ConnectionError(exceptions.MaxRetryError(None, URL, made))

    report = describe(error)

    assert report.kind == kind


def test_a_silent_timeout_of_aiohttp_while_connecting_sent_nothing() -> None:
    aiohttp = real("aiohttp")

    async def connect() -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
            address = server.getsockname()
            held = [socket.socket() for _ in range(3)]
            for one in held:
                one.settimeout(0)
                one.connect_ex(address)
            try:
                patience = aiohttp.ClientTimeout(total=0.2)
                async with aiohttp.ClientSession(timeout=patience) as client:
                    await client.post(f"http://127.0.0.1:{address[1]}/")
            finally:
                for one in held:
                    one.close()

    with pytest.raises(TimeoutError) as caught:
        asyncio.run(connect())
    report = describe(caught.value)

    assert (report.kind, report.certainty) == ("provider.connection", Certainty.NOT_SENT)


# ---------------------------------------------------------------- all of them


@pytest.mark.parametrize(
    "module",
    [
        "google.genai.errors", "google.genai._gaos.errors", "google.genai._gaos.lib.compat_errors",
        "google.api_core.exceptions", "google.auth.exceptions", "mistralai.client.errors",
        "mistralai.extra.exceptions", "botocore.exceptions", "boto3.exceptions", "huggingface_hub.errors",
        "cohere.errors", "fal_client", "azure.core.exceptions", "azure.identity", "requests.exceptions",
        "urllib3.exceptions", "aiohttp", "httpx", "httpx2",
    ],
)  # fmt: skip
def test_every_exception_class_of_a_library_is_known_by_its_own_name_or_its_familys(module: str) -> None:
    real(module)
    top = module.partition(".")[0]

    strangers = [
        name
        for name, cls in sorted(vars(import_module(module)).items())
        if inspect.isclass(cls)
        and issubclass(cls, Exception)
        and not issubclass(cls, Warning)
        and cls.__module__.partition(".")[0] == top
        and all(find(above.__module__, above.__name__) is None for above in _foreign(cls))
    ]

    assert strangers == []


def _foreign(cls: type) -> list[type]:
    return [above for above in cls.__mro__ if above.__module__ != "builtins"]
