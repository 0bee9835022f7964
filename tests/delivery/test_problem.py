"""Problem documents: what they say, what they hold back, and the way back to a report."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwell.adapters.log_records.peer import SPEAKABLE
from failwell.delivery.http.problem_details import from_problem, problem, problem_json, retry_after_header
from failwell.errors.axes import Category
from failwell.errors.facts import NotBefore, ProviderMetadata, ResourceShortfall
from failwell.errors.kind_registry import kinds
from failwell.errors.report import ErrorReport, Scene
from tests.delivery.builders import a_full_report, a_wait, make_report, summary_of
from tests.specimens import each

INSIDERS = {"provider", "model", "provider_metadata", "causes", "error_type"}


def test_a_problem_says_what_the_user_may_know() -> None:
    document = problem(a_full_report(), instance="/runs/r1", request_id="q1")

    assert document == {
        "type": "https://failwell.dev/kinds/provider.rate_limited",
        "title": "Rate limited",
        "status": 429,
        "detail": "The provider turned the call away because a short usage window is full.",
        "instance": "/runs/r1",
        "request_id": "q1",
        "schema": "failwell.error/1",
        "id": "err_1",
        "kind": "provider.rate_limited",
        "category": "transient",
        "domain": "runtime",
        "certainty": "rejected",
        "retryable": True,
        "user_action": {"kind": "wait_and_retry", "detail": "Wait 8 s, then repeat the call."},
        "occurred_at": "2026-03-01T12:00:00+00:00",
        "scene": {"run": "r1", "node": "summarise"},
        "not_before": {
            "after": 7.5,
            "at": "2026-03-01T12:00:07.500000+00:00",
            "source": "retry-after",
            "confidence": "high",
        },
    }


@pytest.mark.acceptance("pipelex 66")
def test_strict_holds_back_who_was_called_and_keeps_the_wait() -> None:
    report = replace(a_full_report(), message="acme said: quota of org 77", caller_facing=False)

    document = problem(report)

    assert not INSIDERS & document.keys()
    assert "acme" not in json.dumps(document)
    assert document["detail"] == summary_of("provider.rate_limited")
    assert document["not_before"]["after"] == 7.5
    assert retry_after_header(report) == "8"


@pytest.mark.acceptance("pipelex 66")
def test_strict_keeps_the_message_that_was_written_for_the_caller() -> None:
    report = make_report("external.order.too_large", message="an order has at most 50 lines, yours has 70")

    assert problem(report)["detail"] == "an order has at most 50 lines, yours has 70"


def test_verbose_adds_who_was_called_and_what_they_answered() -> None:
    document = problem(a_full_report(), disclosure="verbose")

    assert {key: document[key] for key in INSIDERS} == {
        "error_type": "RateLimitError",
        "provider": "acme",
        "model": "acme/large[preview]",
        "provider_metadata": {
            "status_code": 429,
            "code": "rate_limit_exceeded",
            "request_id": "req_77",
            "retry_after": 7.5,
        },
        "causes": [
            {"type": "RateLimitError", "kind": "provider.rate_limited", "via": "cause", "level": 1},
            {"type": "ConnectError", "kind": "provider.connection", "via": "context", "level": 2},
        ],
    }


@pytest.mark.acceptance("pipelex 65")
@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("validation.input_invalid", 422),
        ("provider.content_refused", 422),
        ("validation.config_invalid", 500),
        ("provider.auth", 500),
        ("tool.denied", 403),
        ("provider.unavailable", 503),
        ("resource.gpu_memory", 503),
        ("provider.timeout", 504),
        ("provider.outcome_unknown", 502),
        ("provider.quota_exhausted", 503),
        ("limit.budget_exceeded", 409),
        ("cancel.run", 409),
        ("internal.bug", 500),
        ("internal.unknown", 500),
        ("provider.rate_limited", 429),
        ("newer.peer.kind", 500),
    ],
)
def test_the_status_follows_from_the_kind(name: str, status: int) -> None:
    assert problem(make_report(name))["status"] == status


@pytest.mark.acceptance("pipelex 65")
def test_a_rate_limit_of_3_2_seconds_asks_for_4() -> None:
    assert retry_after_header(make_report(not_before=a_wait(3.2))) == "4"


@pytest.mark.acceptance("pipelex 65")
@each("name", [kind.name for kind in kinds() if not kind.category.retryable])
def test_what_must_not_be_repeated_invites_no_repeat(name: str) -> None:
    assert retry_after_header(make_report(name, not_before=a_wait(60))) is None


@pytest.mark.parametrize("name", ["provider.rate_limited", "provider.unavailable", "provider.timeout"])
def test_a_transient_failure_invites_a_repeat_only_if_it_knows_when(name: str) -> None:
    assert retry_after_header(make_report(name)) is None
    assert retry_after_header(make_report(name, not_before=a_wait(0.2))) == "1"


def test_a_vetoed_repeat_is_not_invited() -> None:
    assert retry_after_header(make_report(not_before=a_wait(3), retryable=False)) is None


@pytest.mark.parametrize("after", [math.inf, math.nan, -math.inf])
def test_a_wait_that_is_no_number_reaches_neither_header_nor_json(after: float) -> None:
    report = replace(make_report(), not_before=NotBefore(after=after))

    document = problem(report, disclosure="verbose")

    assert retry_after_header(report) is None
    assert json.loads(json.dumps(document, allow_nan=False))["kind"] == "provider.rate_limited"
    assert json.loads(problem_json(document)) == document


WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).filter(str.strip)
SECONDS = st.floats(0, 1e7)


@given(
    name=st.sampled_from([kind.name for kind in kinds() if kind.name.startswith(SPEAKABLE)])
    | st.just("external.git.drift"),
    message=st.none() | WORDS,
    caller_facing=st.none() | st.booleans(),
    wait=st.none() | SECONDS,
    fields=st.none() | st.lists(WORDS, max_size=3),
    short=st.none() | st.builds(ResourceShortfall, st.just("disk_mb"), SECONDS, SECONDS),
    run=st.none() | WORDS,
    disclosure=st.sampled_from(["strict", "verbose"]),
)
def test_a_problem_of_ones_own_service_gives_back_the_same_user_view(
    name: str,
    message: str | None,
    caller_facing: bool | None,
    wait: float | None,
    fields: list[str] | None,
    short: ResourceShortfall | None,
    run: str | None,
    disclosure: Any,
) -> None:
    report = make_report(
        name,
        scene=Scene(run=run, attempt=3),
        message=message,
        caller_facing=caller_facing,
        not_before=None if wait is None else a_wait(wait),
        fields_invalid=fields,
        resource_shortfall=short,
        provider="acme",
        provider_metadata=ProviderMetadata(status_code=400, code="c"),
    )

    sent = problem_json(problem(report, instance="/x", request_id="q", disclosure=disclosure))
    received = from_problem(sent, trusted=True)

    view = report.view("user")
    place = view.pop("scene", None)
    assert received.view("user") == view
    assert received.details == ({} if place is None else {"peer": {"source": "ProblemReply", "scene": place}})
    assert received.http_status == report.http_status
    assert retry_after_header(received) == retry_after_header(report)


def test_a_kind_that_speaks_of_the_peers_own_run_is_never_taken_over() -> None:
    for kind in kinds():
        for trusted in (False, True):
            received = from_problem(problem(make_report(kind.name)), trusted=trusted)

            assert received.kind.startswith(SPEAKABLE), kind
            assert (received.kind == kind.name) is kind.name.startswith(SPEAKABLE), kind
            if not kind.category.retryable:
                assert not received.retryable, kind
            if received.kind != kind.name:
                assert received.details["peer"]["kind"] == kind.name


def test_another_services_words_are_evidence_and_the_report_is_in_ours() -> None:
    document = {
        **problem(a_full_report(), disclosure="verbose"),
        "title": "hostile-title", "detail": "hostile-detail", "scene": {"run": "hostile-run"},
        "user_action": {"kind": "contact_support", "detail": "hostile-advice"}, "fields_invalid": ["hostile-field"],
    }  # fmt: skip

    report = from_problem(document)

    assert (report.kind, report.title, report.message) == (
        "provider.rate_limited",
        "Rate limited",
        summary_of("provider.rate_limited"),
    )
    for audience in ("user", "model"):
        assert "hostile" not in json.dumps(report.view(audience))
    assert report.details["peer"]["detail"] == "hostile-detail"
    assert report.details["peer"]["scene"] == {"run": "hostile-run"}


def test_a_peer_makes_us_more_careful_and_never_bolder() -> None:
    careful = from_problem(a_document(retryable=False, certainty="unknown"))
    bold = from_problem(
        a_document(kind="provider.auth", retryable=True, certainty="not_sent", category="transient")
    )

    assert (careful.retryable, careful.certainty) == (False, "unknown")
    assert (bold.retryable, bold.certainty, bold.category) == (False, "rejected", "configuration")


def test_of_the_delays_in_header_and_document_the_longer_counts() -> None:
    document = a_document(not_before={"after": 7.5})

    for sent, expected in (("3", 7.5), ("30", 30.0)):
        report = from_problem(document, status=429, headers={"Retry-After": sent})

        assert report.not_before is not None
        assert report.not_before.after == expected


def test_a_denial_is_not_repeated_because_a_document_says_so() -> None:
    for status in (401, 403):
        report = from_problem(a_document(), status=status)

        assert not report.retryable
        assert report.kind in ("provider.auth", "provider.permission")


@pytest.mark.parametrize("after", [1e300, 10**400, -1, math.inf, math.nan, 366 * 86_400 + 1, True, "9"])
def test_a_delay_that_is_no_delay_is_not_kept(after: Any) -> None:
    for trusted in (False, True):
        report = from_problem(a_document(not_before={"after": after}), trusted=trusted)

        assert report.not_before is None


def test_a_verbose_problem_gives_back_who_was_called() -> None:
    report = a_full_report()

    received = from_problem(problem(report, disclosure="verbose"), trusted=True)

    assert (received.provider, received.model, received.error_type) == (
        "acme",
        "acme/large[preview]",
        "RateLimitError",
    )
    assert [cause.kind for cause in received.causes] == ["provider.rate_limited", "provider.connection"]
    assert received.provider_metadata == ProviderMetadata(
        status_code=429, code="rate_limit_exceeded", request_id="req_77", retry_after=7.5
    )


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "provider.bad_request"),
        (401, "provider.auth"),
        (403, "provider.permission"),
        (404, "provider.rejected"),
        (408, "provider.outcome_unknown"),
        (422, "provider.bad_request"),
        (429, "provider.rate_limited"),
        (500, "provider.unavailable"),
        (502, "provider.unavailable"),
        (504, "provider.outcome_unknown"),
        (None, "provider.unknown"),
    ],
)
def test_a_foreign_problem_is_classified_by_its_status(status: int | None, name: str) -> None:
    foreign = {
        "type": "about:blank",
        "title": "No",
        "status": status,
        "detail": "ask for <b>root</b> at http://evil",
    }

    report = from_problem(foreign)

    assert report.kind == name
    assert report.view("user")["message"] == summary_of(name)


def test_nobody_vouches_for_the_words_of_a_foreign_problem() -> None:
    foreign = {
        "title": "pay at evil.example",
        "status": 503,
        "detail": "pay at evil.example",
        "x": "evil.example",
    }

    report = from_problem(foreign)

    assert "evil" not in report.to_json()


def test_the_reply_speaks_louder_than_the_document() -> None:
    headers = {"Retry-After": "12", "X-Request-ID": "q9", "Set-Cookie": "session=cookie-value"}

    report = from_problem({"status": 200}, status=429, headers=headers)

    assert report.kind == "provider.rate_limited"
    assert report.not_before is not None
    assert report.not_before.after == 12
    assert report.provider_metadata is not None
    assert report.provider_metadata.request_id == "q9"
    assert "cookie-value" not in report.to_json()


@pytest.mark.parametrize(
    "body", [b"<html>Bad Gateway</html>", "", b"\xff\xfe", "[1]", "null", '{"a":' * 5000]
)
def test_a_body_that_is_no_document_leaves_the_status_to_speak(body: str | bytes) -> None:
    assert from_problem(body, status=502).kind == "provider.unavailable"


def a_document(**members: Any) -> Mapping[str, Any]:
    return {**problem(a_full_report()), **members}


@pytest.mark.parametrize(
    "members",
    [
        {"category": "brand_new", "kind": "newer.peer.kind"},
        {"retryable": "yes", "kind": "newer.peer.kind"},
        {"user_action": 3},
        {"not_before": {"after": "soon"}},
        {"fields_invalid": {"a": 1}},
        {"scene": []},
        {"occurred_at": "yesterday"},
        {"title": None, "detail": None},
        {"causes": [1, {"type": 2}]},
        {"provider_metadata": {"headers": {"a": math.nan}}},
        {"schema": "failwell.error/9", "brand_new": {"x": 1}},
        {"id": ["x"]},
    ],
)
def test_a_damaged_or_newer_document_still_gives_a_report(members: dict[str, Any]) -> None:
    for trusted in (False, True):
        report = from_problem(a_document(**members), trusted=trusted)

        assert isinstance(report, ErrorReport)
        named = members.get("kind", "provider.rate_limited")
        assert report.kind == (named if trusted else "provider.rate_limited")
        report.to_json()


def test_a_document_cannot_make_an_unknown_kind_retryable() -> None:
    unknown = a_document(kind="newer.peer.kind", category="brand_new", retryable=True)

    report = from_problem(unknown, trusted=True)

    assert report.category is Category.UNKNOWN
    assert not report.retryable


def test_what_a_document_says_is_masked_and_cut_again() -> None:
    key = "sk-" + "q1w2e3r4t5y6u7i8o9"

    document = a_document(detail=f"use {key} " + "x" * 5_000)
    trusted, report = from_problem(document, trusted=True), from_problem(document)

    assert key not in trusted.to_json() + report.to_json()
    assert len(trusted.message) <= 2_000
    assert len(report.details["peer"]["detail"]) <= 500


@pytest.mark.parametrize("body", [[], None, 3, True, "null", b"[]"])
def test_a_body_that_is_no_object_is_read_by_its_status(body: object) -> None:
    assert from_problem(body, status=502).kind == "provider.unavailable"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422])
def test_a_peer_cannot_allow_a_repeat_that_its_status_forbids(status: int) -> None:
    document = {"schema": "failwell.error/1", "kind": "provider.overloaded", "retryable": True}

    assert not from_problem(document, status=status).retryable
    assert from_problem(document, status=503).retryable
