"""What a failed call is, told from its status, body, headers and causes, whoever the provider is."""

import json
import sys
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

import failwell
from failwell import adapters, errors
from failwell.adapters.classify import classify
from failwell.adapters.facts import Facts, codes_of, parse_body
from failwell.adapters.log_records.reading import read_saved
from failwell.errors.kind_registry import KindError, kind, kinds
from failwell.errors.report import ErrorReport
from failwell.testing.laboratory.dialects.table import dialect, dialect_names
from failwell.testing.laboratory.lab_reply import LabCall
from tests.specimens import each

SILENT: list[Any] = [None, "", "<html><body>Bad Gateway</body></html>", b"\xff\xfe", [], {}, 7, [[[]]]]
REFUSALS: list[tuple[str, dict[str, Any]]] = [
    (
        "anthropic",
        {"type": "message", "content": [{"type": "text", "text": "No."}], "stop_reason": "refusal"},
    ),
    ("openai", {"choices": [{"message": {"content": None, "refusal": "No."}, "finish_reason": "stop"}]}),
    ("google-genai", {"candidates": [{"content": {"parts": []}, "finishReason": "SAFETY"}]}),
]
SECRET = "sk-live-0123456789abcdefghijklmnop"


def a_class(dotted: str, *bases: type[BaseException]) -> type[Any]:
    """A class with the names of an SDK's own, and nothing behind them."""
    module, _, name = dotted.rpartition(".")
    return type(name, bases or (Exception,), {"__module__": module})


ROOT = a_class("openai._exceptions.OpenAIError")
API = a_class("openai._exceptions.APIError", ROOT)
STATUS = a_class("openai._exceptions.APIStatusError", API)
CONNECTION = a_class("openai._exceptions.APIConnectionError", API)
TIMEOUT = a_class("openai._exceptions.APITimeoutError", CONNECTION)


def a_reply(status: int, body: Any = None, **headers: str) -> BaseException:
    """A status error as generated clients raise it."""
    error = STATUS("Error code: " + str(status))
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    error.status_code, error.body = status, body
    error.response = SimpleNamespace(status_code=status, headers=named)
    return error


def chained(*links: BaseException) -> BaseException:
    """The first of `links`, each caused by the next."""
    for outer, inner in pairwise(links):
        outer.__cause__ = inner
    return links[0]


def told(error: BaseException, **more: Any) -> ErrorReport:
    return failwell.describe(error, **more)


def in_the_lab(name: str, scenario: str) -> str:
    """The kind of what a dialect of the laboratory replies, read as a saved row."""
    spoken = dialect(name)
    assert spoken is not None
    reply = spoken.reply(scenario, LabCall(path="/v1/chat"))
    assert reply is not None
    row = {"http_status": reply.status, "headers": dict(reply.headers), "body": reply.body.decode()}
    return read_saved(row).kind


# ------------------------------------------------------------------ statuses


@pytest.mark.acceptance("pipelex 13")
@pytest.mark.parametrize("name", dialect_names())
def test_a_429_without_a_word_about_quotas_passes_after_a_wait(name: str) -> None:
    report = told(a_reply(429, {"error": {"message": "Slow down."}}), provider=name)

    assert (report.category, report.user_action.kind) == ("transient", "wait_and_retry")


@pytest.mark.acceptance("pipelex 13")
@pytest.mark.parametrize("name", dialect_names())
def test_the_429_of_each_provider_passes_after_a_wait(name: str) -> None:
    spoken = dialect(name)
    assert spoken is not None
    reply = spoken.reply("rate_limited", LabCall(path="/v1/chat"))
    assert reply is not None
    assert reply.status is not None

    report = told(a_reply(reply.status, reply.body, **dict(reply.headers)), provider=name)

    assert reply.status == 429
    assert (report.category, report.user_action.kind) == ("transient", "wait_and_retry")


@pytest.mark.acceptance("pipelex 14")
def test_a_429_that_speaks_of_the_plan_is_about_money() -> None:
    body = {"message": "You exceeded your current quota, please check your plan and billing details."}

    report = told(a_reply(429, body))

    assert (report.category, report.user_action.kind, report.retryable) == (
        "capacity",
        "check_billing",
        False,
    )


@pytest.mark.acceptance("pipelex 15")
@pytest.mark.parametrize("status", [400, 403])
def test_a_low_credit_balance_is_about_money_whatever_the_status(status: int) -> None:
    body = {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "Your credit balance is too low"},
    }
    error: Any = a_class("anthropic.APIStatusError", a_class("anthropic.AnthropicError"))("x")
    error.status_code, error.body = status, body

    assert (told(error).category, told(error).user_action.kind) == ("capacity", "check_billing")
    assert told(a_reply(status, body)).category == "capacity"


@pytest.mark.acceptance("pipelex 18")
def test_401_and_403_are_for_whoever_holds_the_keys() -> None:
    unknown, forbidden = told(a_reply(401)), told(a_reply(403))

    assert (unknown.category, unknown.user_action.kind) == ("configuration", "check_credentials")
    assert (forbidden.category, forbidden.user_action.kind) == ("configuration", "request_access")
    assert (unknown.retryable, forbidden.retryable) == (False, False)


@pytest.mark.acceptance("pipelex 19")
@pytest.mark.parametrize("what", ["model", "deployment", "engine", "application"])
def test_a_404_about_a_model_asks_for_another_model(what: str) -> None:
    report = told(a_reply(404, {"error": {"message": f"The {what} `x` does not exist"}}))

    assert (report.kind, report.user_action.kind) == ("provider.model_not_found", "change_model")
    assert report.category == "configuration"


@pytest.mark.acceptance("pipelex 20")
def test_400_and_422_ask_for_another_input_and_a_policy_makes_them_a_refusal() -> None:
    for status in (400, 422):
        plain = told(a_reply(status, {"error": {"message": "nope"}}))
        by_code = told(a_reply(status, {"detail": [{"type": "content_policy_violation", "msg": "no"}]}))
        by_text = told(a_reply(status, {"detail": "blocked due to safety reasons"}))

        assert (plain.category, plain.user_action.kind) == ("user_input", "change_input")
        for refused in (by_code, by_text):
            assert (refused.kind, refused.category) == ("provider.content_refused", "content")


@pytest.mark.acceptance("pipelex 21")
@pytest.mark.parametrize("status", [408, 504, 524])
def test_a_timeout_told_by_a_status_passes_only_for_a_call_that_may_be_repeated(status: int) -> None:
    nobody_said, may_repeat = told(a_reply(status)), told(a_reply(status), idempotent=True)

    assert (nobody_said.category, nobody_said.retryable) == ("ambiguous", False)
    assert (may_repeat.category, may_repeat.retryable, may_repeat.certainty) == ("transient", True, "unknown")


@pytest.mark.acceptance("pipelex 22")
@pytest.mark.parametrize("status", [500, 502, 503, 504, 529])
def test_a_servers_failure_passes_on_a_text_call_and_is_ambiguous_on_an_image_call(status: int) -> None:
    text, picture = told(a_reply(status), idempotent=True), told(a_reply(status), idempotent=False)

    assert (text.category, text.retryable) == ("transient", True)
    assert (picture.category, picture.retryable) == ("ambiguous", False)


@pytest.mark.acceptance("pipelex 23")
@pytest.mark.parametrize("library", ["httpx", "httpx2"])
@pytest.mark.parametrize(
    ("name", "category", "certainty"),
    [
        ("ConnectError", "transient", "not_sent"),
        ("ConnectTimeout", "transient", "not_sent"),
        ("PoolTimeout", "transient", "not_sent"),
        ("ReadTimeout", "ambiguous", "unknown"),
        ("WriteError", "ambiguous", "unknown"),
        ("RemoteProtocolError", "ambiguous", "unknown"),
    ],
)
def test_how_far_a_call_got_decides_even_if_it_must_not_be_repeated(
    library: str, name: str, category: str, certainty: str
) -> None:
    wrapper = TIMEOUT if "Timeout" in name else CONNECTION
    error = chained(wrapper("Connection error."), a_class(f"{library}.{name}")("x"))

    declared, undeclared = told(error, idempotent=False), told(error)

    assert (declared.category, declared.certainty) == (category, certainty)
    assert (undeclared.category, undeclared.certainty) == (category, certainty)


@pytest.mark.acceptance("pipelex 25")
def test_a_409_passes() -> None:
    assert told(a_reply(409, {"error": {"message": "conflict"}})).category == "transient"


@pytest.mark.acceptance("relavium 1")
@pytest.mark.parametrize(
    ("status", "name"),
    [
        (429, "rate_limited"), (529, "overloaded"), (408, "outcome_unknown"), (500, "unavailable"), (503, "overloaded"),
        (401, "auth"), (403, "permission"), (402, "quota_exhausted"), (400, "bad_request"), (404, "rejected"),
        (409, "unavailable"), (413, "context_too_long"), (422, "bad_request"), (418, "rejected"),
    ],
)  # fmt: skip
def test_a_bare_status_has_one_meaning(status: int, name: str) -> None:
    assert classify(Facts(status=status)).kind == f"provider.{name}"


@pytest.mark.acceptance("relavium 2")
@each("name", [one.name for one in kinds()])
def test_only_what_passes_may_be_repeated_and_nobody_can_say_otherwise(name: str) -> None:
    fault = failwell.Fault(kind=name, message="x", retryable=True)

    assert told(fault).retryable is (kind(name).category == "transient")


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_provider_may_forbid_the_repeat_itself(status: int) -> None:
    report = told(a_reply(status, None, x_should_retry="false"))

    assert (report.category, report.retryable) == ("transient", False)


# ------------------------------------------------------------------ bodies and codes


@pytest.mark.acceptance("pipelex 30")
@pytest.mark.parametrize("name", ["openai", "anthropic", "google-genai", "bedrock", "mistral"])
def test_a_prompt_that_does_not_fit_says_so_for_every_provider(name: str) -> None:
    named = kind(in_the_lab(name, "context_too_long"))

    assert (named.name, named.category) == ("provider.context_too_long", "content")
    assert "larger context window" in named.advice


@pytest.mark.acceptance("pipelex 31")
def test_a_registered_code_wins_over_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("failwell.adapters.registrations._registered_codes", {})
    adapters.register_code("PLAN_SUSPENDED", "provider.quota_exhausted")

    report = told(a_reply(500, {"error": {"code": "plan_suspended", "message": "x"}}))

    assert report.kind == "provider.quota_exhausted"
    assert report.evidence[0].saw == "plan_suspended"


@pytest.mark.acceptance("pipelex 31")
def test_a_code_is_registered_once_and_never_over_a_built_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("failwell.adapters.registrations._registered_codes", {})
    adapters.register_code("plan_suspended", "provider.quota_exhausted")

    with pytest.raises(ValueError, match="registered already"):
        adapters.register_code("Plan_Suspended", "provider.auth")
    with pytest.raises(ValueError, match="has a meaning"):
        adapters.register_code("rate_limit_exceeded", "provider.auth")
    with pytest.raises(ValueError, match="not spelled"):
        adapters.register_code("two words", "provider.auth")
    with pytest.raises(KindError):
        adapters.register_code("plan_gone", "provider.no_such_kind")


@pytest.mark.acceptance("pipelex 34")
def test_a_code_is_found_in_the_reply_where_the_sdk_keeps_only_the_sentence() -> None:
    error: Any = a_reply(400, "The prompt has 9000 tokens too many.")
    error.response._content = json.dumps({"error": {"code": "context_length_exceeded"}}).encode()

    report = told(error)

    assert report.kind == "provider.context_too_long"
    assert report.provider_metadata is not None
    assert report.provider_metadata.code == "context_length_exceeded"


@pytest.mark.acceptance("relavium 4")
@pytest.mark.parametrize("code", ["content_policy_violation", "moderation_blocked", "content_filter"])
def test_a_moderation_code_beats_its_400(code: str) -> None:
    assert told(a_reply(400, {"error": {"code": code, "message": "x"}})).kind == "provider.content_refused"


@pytest.mark.acceptance("pipelex 36", "relavium 3", "anchors 3.4.7")
@pytest.mark.parametrize("status", [None, 200])
@pytest.mark.parametrize(
    ("code", "name"), [("overloaded_error", "overloaded"), ("rate_limit_error", "rate_limited")]
)
def test_an_error_inside_a_stream_is_what_its_type_says(status: int | None, code: str, name: str) -> None:
    error: Any = a_class("anthropic.APIStatusError", a_class("anthropic.AnthropicError"))("x")
    error.status_code, error.body = status, {"type": "error", "error": {"type": code, "message": "x"}}

    report = told(error)

    assert (report.kind, report.retryable) == (f"provider.{name}", True)


@pytest.mark.acceptance("anchors 3.4.5")
@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": "insufficient_quota", "message": "x"}},
        {"code": "insufficient_quota", "message": "x"},
        [{"error": {"code": "insufficient_quota"}}],
        '{"error": {"code": "insufficient_quota"}}',
        b'{"error": {"code": "insufficient_quota"}}',
        'event: error\ndata: {"error": {"code": "insufficient_quota"}}\n\n',
    ],
    ids=["envelope", "inner", "list", "text", "bytes", "event"],
)
def test_a_body_is_read_in_whatever_shape_it_comes(body: Any) -> None:
    assert told(a_reply(429, body)).kind == "provider.quota_exhausted"


@pytest.mark.acceptance("anchors 3.4.5")
@pytest.mark.parametrize("body", SILENT, ids=repr)
def test_a_body_that_says_nothing_leaves_the_status_to_speak(body: Any) -> None:
    assert told(a_reply(502, body)).kind == "provider.unavailable"


@pytest.mark.acceptance("anchors 3.4.6")
@pytest.mark.parametrize("code", [1300, "1300", " 1300 ", "rate_limit_exceeded"], ids=repr)
def test_a_code_may_be_a_number_a_word_or_digits_in_a_text(code: object) -> None:
    assert codes_of(parse_body({"code": code})) == (str(code).strip(),)
    assert told(a_reply(400, {"code": code, "message": "x"})).kind == "provider.rate_limited"


@pytest.mark.parametrize(
    ("root", "host", "provider"),
    [
        ("openai.OpenAIError", "api.openai.com", "openai"),
        ("openai.OpenAIError", "lab.openai.azure.com", "azure-openai"),
        ("openai.OpenAIError", "openrouter.ai", "openrouter"),
        ("openai.OpenAIError", "api.groq.com", "groq"),
        ("openai.OpenAIError", "eu.api.openai.com", "openai"),
        ("anthropic.AnthropicError", "api.anthropic.com", "anthropic"),
        ("anthropic.AnthropicError", "bedrock-runtime.us-east-1.amazonaws.com", "bedrock"),
        ("anthropic.AnthropicError", "us-east5-aiplatform.googleapis.com", "google-vertex"),
    ],
)
def test_one_client_serves_several_providers_and_the_host_says_which(
    root: str, host: str, provider: str
) -> None:
    error: Any = a_class("x.APIStatusError", a_class(root))("x")
    error.status_code, error.request = 500, SimpleNamespace(url=SimpleNamespace(host=host))

    assert told(error).provider == provider


@pytest.mark.parametrize("root", ["openai.OpenAIError", "anthropic.AnthropicError"])
@pytest.mark.parametrize("host", ["127.0.0.1", "models.shop.example", "notopenai.com"])
def test_a_host_that_nobody_knows_is_given_no_name_but_the_callers(root: str, host: str) -> None:
    error: Any = a_class("x.APIStatusError", a_class(root))("x")
    error.status_code, error.request = 429, SimpleNamespace(url=SimpleNamespace(host=host))

    assert told(error).provider is None
    assert host not in told(error).to_json()
    assert failwell.describe(error, provider="vllm").provider == "vllm"


@pytest.mark.parametrize(
    ("root", "provider"), [("openai.OpenAIError", "openai"), ("anthropic.AnthropicError", "anthropic")]
)
def test_without_a_request_the_sdk_speaks_for_its_own_provider(root: str, provider: str) -> None:
    assert told(a_class(root)("no key was given")).provider == provider


# ------------------------------------------------------------------ causes


@pytest.mark.acceptance("anchors 3.4.3")
def test_the_transport_is_found_under_causes_contexts_and_in_groups() -> None:
    inner = a_class("httpx2.ConnectError")("x")
    hidden = CONNECTION("Connection error.")
    hidden.__context__ = inner
    suppressed = CONNECTION("Connection error.")
    suppressed.__context__, suppressed.__suppress_context__ = inner, True
    grouped = BaseExceptionGroup("several", [chained(CONNECTION("Connection error."), inner)])

    assert told(chained(CONNECTION("Connection error."), inner)).kind == "provider.connection"
    assert told(hidden).kind == "provider.connection"
    assert told(grouped).kind == "provider.connection"
    assert told(suppressed).kind == "provider.outcome_unknown"


@pytest.mark.acceptance("anchors 3.4.4")
@pytest.mark.parametrize(
    "bug", [KeyError("k"), TypeError("t"), AttributeError("a")], ids=lambda bug: type(bug).__name__
)
def test_a_bug_dressed_up_as_a_broken_connection_is_a_bug(bug: BaseException) -> None:
    report = told(chained(CONNECTION("Connection error."), bug))

    assert (report.kind, report.retryable) == ("internal.bug", False)


@pytest.mark.acceptance("pipelex 24", "anchors 3.4.10")
def test_an_unknown_class_without_a_status_is_unknown_and_counted() -> None:
    errors.unclassified(forget=True)
    newer = a_class("openai.BrandNewError", ROOT)

    report = told(newer("x"))

    assert (report.kind, report.user_action.kind) == ("provider.unknown", "contact_support")
    assert [one.error_type for one in errors.unclassified(forget=True)] == ["openai.BrandNewError"]


@pytest.mark.acceptance("anchors 3.4.10")
def test_a_class_that_is_new_is_read_as_its_family() -> None:
    newer: Any = a_class("openai.TeapotError", STATUS)("x")
    newer.status_code = 429

    assert told(newer).kind == "provider.rate_limited"


@pytest.mark.acceptance("pipelex 24")
@pytest.mark.parametrize("module", ["docling.pipeline", "pypdfium2._helpers.document"])
def test_a_value_error_is_the_documents_fault_only_if_a_document_reader_raised_it(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module.partition(".")[0], SimpleNamespace())
    space: dict[str, Any] = {"__name__": module}
    exec("def convert():\n    raise ValueError('x')", space)

    with pytest.raises(ValueError) as caught:
        space["convert"]()
    report = told(caught.value)

    assert (report.kind, report.category) == ("validation.input_invalid", "user_input")
    assert report.evidence[0].rule.startswith(module.partition(".")[0])


@pytest.mark.acceptance("pipelex 24")
def test_a_missing_file_is_about_its_caller_only_if_the_caller_named_it() -> None:
    named, own = told(FileNotFoundError(2, "gone"), origin="input"), told(FileNotFoundError(2, "gone"))

    assert (named.kind, named.category) == ("validation.path_not_found", "user_input")
    assert (own.kind, own.category) == ("internal.file_unavailable", "configuration")


# ------------------------------------------------------------------ what must not get out


@pytest.mark.acceptance("anchors 3.4.8", "anchors 3.4.9")
@pytest.mark.parametrize("policy", ["strict", "none", "repr_only"])
def test_nothing_of_a_request_or_a_reply_is_kept_but_listed_headers(policy: str) -> None:
    error: Any = a_reply(
        429, {"error": {"message": SECRET}}, authorization=SECRET, set_cookie=SECRET, retry_after="7"
    )
    error.args = (f"Error code: 429 - headers: {{'x-api-key': '{SECRET}'}}",)
    error.request = SimpleNamespace(url="https://api.openai.com/v1", headers={"authorization": SECRET})
    error.messages = error.create_kwargs = error.litellm_debug_info = SECRET

    report = told(error, policy=policy)

    assert SECRET not in report.to_json()
    assert report.provider_metadata is not None
    assert report.provider_metadata.headers == {"retry-after": "7"}


@pytest.mark.acceptance("anchors 3.4.9")
def test_an_exception_without_words_is_still_described() -> None:
    report = told(STATUS())

    assert report.message


@pytest.mark.acceptance("relavium 8")
@pytest.mark.parametrize(
    "said",
    [
        f"Incorrect API key provided: {SECRET}",
        f"got Authorization: Bearer {SECRET}",
        "no route to https://user:hunter2secret@host/v1",
        f"no route to https://host/v1?api_key={SECRET}&keyword=value",
    ],
    ids=["key", "bearer", "userinfo", "query"],
)
def test_a_text_that_repeats_a_credential_loses_it(said: str) -> None:
    error: Any = a_reply(401, {"error": {"message": said, "code": SECRET}})
    error.args = (f"Error code: 401 - {said}",)

    written = told(error, policy="full").to_json()

    assert SECRET not in written
    assert "hunter2secret" not in written


@pytest.mark.acceptance("relavium 8")
def test_a_text_that_only_looks_a_little_like_one_is_kept() -> None:
    error: Any = a_reply(404)
    error.args = ("no page at https://host/v1?keyword=value",)

    assert told(error, policy="full").message == "no page at https://host/v1?keyword=value"


@pytest.mark.parametrize(("provider", "reply"), REFUSALS)
def test_a_refusal_is_no_answer_and_is_not_asked_again(provider: str, reply: dict[str, Any]) -> None:
    with pytest.raises(failwell.Fault) as caught:
        adapters.check_reply(provider, reply)
    report = told(caught.value)

    assert (report.kind, report.retryable) == ("provider.content_refused", False)
    assert "No." not in report.to_json()
