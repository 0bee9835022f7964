"""The border: whose failure it is, and what the caller is told of it."""

import logging
from typing import Any

import pytest

from failwell import Fault, describe
from failwell.delivery.http.request import Border
from failwell.errors import NotBefore
from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.errors.kind_registry import kinds
from failwell.errors.report import ErrorReport
from failwell.http import from_problem, report_for_caller

OPERATORS = ("plan", "billing", "balance", "credential", "key", "account", "model", "provider", "quota")
"""Words that belong to whoever runs the service."""


def answered(error: BaseException, **options: Any) -> tuple[int, dict[str, str], dict[str, Any]]:
    border = Border(on_report=lambda report: None, **options)
    exchange = border.open("/ask")
    report = border.report(exchange, error)
    reply = border.reply(exchange, report)
    return reply.status, dict(reply.headers), border.document(exchange, report)


def test_no_failed_call_of_the_service_is_the_callers_mistake_or_bill() -> None:
    callers_own = {"provider.content_refused", "provider.context_too_long"}
    upstream = [
        kind for kind in kinds() if kind.name.startswith("provider.") and kind.name not in callers_own
    ]

    for kind in upstream:
        wrapped = Fault.wrap(Fault(kind=kind.name, provider="acme", model="acme-large"), "asking failed")
        for error in (Fault(kind=kind.name, provider="acme"), wrapped):
            status, headers, document = answered(error)

            assert status in (502, 503, 504), kind.name
            assert document["status"] == status
            assert document["kind"].startswith("http."), kind.name
            assert document["type"].endswith(document["kind"])
            said = f"{document['title']} {document['detail']} {document['user_action']}".lower()
            assert [word for word in OPERATORS if word in said] == [], kind.name
            assert "acme" not in str(document)
            assert "retry-after" not in headers


@pytest.mark.parametrize(
    ("kind", "status", "category", "retryable"),
    [
        ("provider.rate_limited", 503, "transient", True),
        ("provider.overloaded", 503, "transient", True),
        ("provider.connection", 503, "transient", True),
        ("provider.timeout", 504, "transient", True),
        ("provider.outcome_unknown", 502, "ambiguous", False),
        ("provider.stream_interrupted", 502, "ambiguous", False),
        ("provider.quota_exhausted", 503, "unknown", False),
        ("provider.bad_request", 502, "unknown", False),
        ("provider.auth", 502, "unknown", False),
        ("provider.permission", 502, "unknown", False),
        ("provider.model_not_found", 502, "unknown", False),
        ("provider.output_invalid", 502, "unknown", False),
        ("provider.unknown", 502, "unknown", False),
    ],
)
def test_the_status_says_whether_waiting_helps(
    kind: str, status: int, category: str, retryable: bool
) -> None:
    fault = Fault(kind=kind, not_before=NotBefore(after=3.2, source="x-ratelimit-reset"))

    answered_with, headers, document = answered(fault)

    assert answered_with == status
    assert (document["category"], document["retryable"]) == (category, retryable)
    assert headers.get("retry-after") == ("4" if retryable else None)
    assert ("not_before" in document) == retryable


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (Fault(kind="validation.input_invalid", fields_invalid=["page"]), 422, "validation.input_invalid"),
        (Fault.wrap(Fault(kind="provider.bad_request"), kind="validation.input_invalid"), 422, "validation.input_invalid"),
        (Fault(kind="provider.content_refused"), 422, "provider.content_refused"),
        (Fault(kind="provider.context_too_long"), 422, "provider.context_too_long"),
        (Fault(kind="tool.denied", message="`delete_all` needs a grant"), 403, "tool.denied"),
        (Fault(kind="limit.budget_exceeded"), 409, "limit.budget_exceeded"),
        (ValueError("x"), 500, "internal.bug"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)  # fmt: skip
def test_what_the_caller_can_change_and_what_the_application_says_stays(
    error: BaseException, status: int, kind: str
) -> None:
    answered_with, _, document = answered(error)

    assert (answered_with, document["kind"]) == (status, kind)


def test_a_text_that_is_too_long_does_not_advise_another_model() -> None:
    _, _, document = answered(Fault(kind="provider.context_too_long"))

    assert document["user_action"] == {"kind": "change_input", "detail": "Shorten the request."}


def test_a_tools_failure_that_the_application_did_not_name_is_upstream() -> None:
    tool = Fault(
        kind="tool.input_invalid", message="no such column", caller_facing=False, fields_invalid=["q"]
    )

    status, _, document = answered(tool)

    assert (status, document["kind"]) == (502, "http.bad_gateway")
    assert "fields_invalid" not in document
    assert "column" not in str(document)


def test_words_that_the_application_wrote_for_its_caller_are_kept() -> None:
    fault = Fault(
        kind="provider.rate_limited", message="the library is busy", not_before=NotBefore(after=3.2)
    )

    status, headers, document = answered(fault)

    assert (status, headers["retry-after"], document["detail"]) == (503, "4", "the library is busy")


def test_the_operator_gets_the_kind_and_the_advice_under_the_same_id(
    caplog: pytest.LogCaptureFixture,
) -> None:
    border = Border()
    exchange = border.open("/ask")

    with caplog.at_level(logging.INFO, logger="failwell.http"):
        fault = Fault(kind="provider.quota_exhausted", provider="acme")
        report = border.report(exchange, fault)
        border.report(exchange, ExceptionGroup("a layer in between", [fault]))

    (record,) = caplog.records
    assert report.id == border.document(exchange, report)["id"]
    summary = "The account's quota, credit or spending limit is used up."
    assert f"provider.quota_exhausted: {summary} [{report.id}]" in record.getMessage()
    assert "hint: Check the plan and the balance of the account" in record.getMessage()
    assert (record.__dict__["request_id"], record.__dict__["path"]) == (exchange.request_id, "/ask")
    assert record.failwell["provider"] == "acme"  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def test_verbose_shows_operators_what_was_called_and_its_kind() -> None:
    fault = Fault(kind="provider.auth", provider="acme", model="acme-large")

    _, _, document = answered(fault, disclosure="verbose")

    assert (document["kind"], document["provider"], document["model"]) == (
        "http.bad_gateway",
        "acme",
        "acme-large",
    )
    assert document["causes"][0]["kind"] == "provider.auth"


@pytest.mark.acceptance("pipelex 65")
def test_a_gateway_answers_with_the_kind_itself() -> None:
    fault = Fault(kind="provider.rate_limited", not_before=NotBefore(after=3.2))

    status, headers, document = answered(fault, upstream="transparent")

    assert (status, headers["retry-after"], document["kind"]) == (429, "4", "provider.rate_limited")


def test_a_client_may_repeat_what_the_service_invites_to_and_nothing_else() -> None:
    def client(kind: str) -> ErrorReport:
        status, headers, document = answered(Fault(kind=kind, not_before=NotBefore(after=3.2)))
        return from_problem(document, status=status, headers=headers)

    assert client("provider.rate_limited").retryable
    assert not client("provider.quota_exhausted").retryable
    assert not client("provider.bad_request").retryable


def test_a_group_of_one_is_its_member() -> None:
    border = Border(on_report=lambda report: None)
    nested = ExceptionGroup("", [ExceptionGroup("", [Fault(kind="provider.overloaded")])])

    report = border.report(border.open("/"), nested)

    assert (report.kind, report.error_type) == ("provider.overloaded", "Fault")


def test_the_report_for_a_caller_never_raises() -> None:
    class Odd(type):
        @property
        def __mro__(cls) -> Any:
            raise RuntimeError("no")

    class Strange(Exception, metaclass=Odd):
        pass

    assert report_for_caller(Strange()).kind == "internal.unknown"
    assert describe(Strange()).error_type == "Strange"


def test_another_failure_of_the_same_request_is_reported_too() -> None:
    reports: list[ErrorReport] = []
    border = Border(on_report=reports.append)
    exchange = border.open("/ask")

    border.report(exchange, Fault(kind="validation.input_invalid"))
    border.refuse(exchange, 404)
    border.report(exchange, KeyError("in a middleware"))

    assert [report.kind for report in reports] == [
        "validation.input_invalid",
        "http.not_found",
        "internal.bug",
    ]
    assert border.document(exchange, reports[-1])["status"] == 500


def test_what_follows_an_interruption_is_not_reported_again() -> None:
    reports: list[ErrorReport] = []
    border = Border(on_report=reports.append)
    exchange = border.open("/ask")

    first = border.report(exchange, Fault(kind="provider.overloaded"))
    cut = border.interrupt(exchange)

    assert border.report(exchange, cut) is first
    assert border.report(exchange, RuntimeError("No response returned.")) is first
    assert len(reports) == 1


@pytest.mark.parametrize(
    ("kind", "action", "advice"),
    [
        ("resource.gpu_memory", "wait_and_retry", "Try again later."),
        ("validation.config_invalid", "contact_support", "Report it with its id."),
        ("internal.unknown", "contact_support", "Report it with its id."),
        ("worker.start_failed", "contact_support", "Report it with its id."),
    ],
)
def test_advice_for_operators_is_not_given_to_callers(kind: str, action: str, advice: str) -> None:
    _, _, document = answered(Fault(kind=kind))

    assert document["user_action"] == {"kind": action, "detail": advice}
    assert document["kind"] == kind


def test_advice_that_the_application_gives_is_kept() -> None:
    action = UserAction(ActionKind.CONTACT_SUPPORT, "Call the desk.")

    _, _, document = answered(Fault(kind="resource.disk", user_action=action))

    assert document["user_action"]["detail"] == "Call the desk."
