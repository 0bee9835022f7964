"""A saved HTTP reply is judged like a live one, and says when to come back."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from failwell.adapters.log_records.http_reply import SavedReply, describe_reply, parse_reply
from failwell.errors.axes import Category
from failwell.errors.faults import Validation
from failwell.errors.report import ErrorReport
from tests.specimens import each


def a_reply(status: int = 429, body: Any = "", **headers: str) -> SavedReply:
    text = body if isinstance(body, str) else json.dumps(body)
    return SavedReply(status, {name.replace("_", "-"): value for name, value in headers.items()}, text)


@each(
    ("status", "kind"),
    [
        (200, "provider.output_invalid"),
        (302, "provider.unknown"),
        (400, "provider.bad_request"),
        (401, "provider.auth"),
        (402, "provider.quota_exhausted"),
        (403, "provider.permission"),
        (404, "provider.rejected"),
        (405, "provider.rejected"),
        (408, "provider.outcome_unknown"),
        (409, "provider.unavailable"),
        (413, "provider.context_too_long"),
        (422, "provider.bad_request"),
        (425, "provider.unavailable"),
        (429, "provider.rate_limited"),
        (500, "provider.unavailable"),
        (502, "provider.unavailable"),
        (503, "provider.overloaded"),
        (504, "provider.outcome_unknown"),
        (524, "provider.outcome_unknown"),
        (529, "provider.overloaded"),
        (599, "provider.unavailable"),
    ],
)
def test_the_status_alone_decides_when_there_is_no_code(status: int, kind: str) -> None:
    report = describe_reply(a_reply(status))

    assert report.kind == kind
    assert report.provider_metadata is not None
    assert report.provider_metadata.status_code == status
    if status >= 400:
        assert (report.evidence[0].basis, report.evidence[0].saw) == ("status", f"HTTP {status}")


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, {"error": {"code": "insufficient_quota"}}, "provider.quota_exhausted"),
        (429, {"error": {"type": "insufficient_quota", "code": None}}, "provider.quota_exhausted"),
        (403, {"error": {"type": "billing_error"}}, "provider.quota_exhausted"),
        (429, {"error": {"code": "rate_limit_exceeded"}}, "provider.rate_limited"),
        (404, {"error": {"code": "model_not_found"}}, "provider.model_not_found"),
        (404, {"error": {"code": "not_found"}}, "provider.rejected"),
        (400, {"error": {"code": "context_length_exceeded"}}, "provider.context_too_long"),
        (400, {"code": "content_filter"}, "provider.content_refused"),
        (422, {"detail": [{"type": "content_policy_violation"}]}, "provider.content_refused"),
        (400, {"__type": "com.amazon#ThrottlingException"}, "provider.rate_limited"),
        (500, {"error": {"type": "overloaded_error"}}, "provider.overloaded"),
        (429, {"error": "insufficient_quota"}, "provider.quota_exhausted"),
        (429, [{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}], "provider.rate_limited"),
        (200, {"error": {"code": "insufficient_quota"}}, "provider.quota_exhausted"),
        (429, {"error": {"message": "Limit reached: tokens per day (TPD)"}}, "provider.quota_exhausted"),
        (400, {"error": {"message": "Your credit balance is too low"}}, "provider.quota_exhausted"),
    ],
)
def test_a_code_in_the_body_says_more_than_the_status(status: int, body: Any, kind: str) -> None:
    assert describe_reply(a_reply(status, body)).kind == kind


def test_a_code_in_a_header_counts_too() -> None:
    report = describe_reply(a_reply(400, "", **{"x-amzn-errortype": "ThrottlingException:http://x"}))

    assert report.kind == "provider.rate_limited"


def test_gone_and_refused_are_never_transient() -> None:
    categories = {describe_reply(a_reply(status)).category for status in (401, 403, 404)}

    assert categories == {Category.CONFIGURATION}


def test_an_unknown_outcome_is_not_retried_blindly() -> None:
    report = describe_reply(a_reply(504))

    assert report.category is Category.AMBIGUOUS
    assert not report.retryable


@pytest.mark.parametrize(
    ("headers", "after", "source"),
    [
        ({"retry_after": "20"}, 20, "header retry-after"),
        ({"retry_after": "1.5"}, 1.5, "header retry-after"),
        ({"retry_after": "0"}, 0, "header retry-after"),
        ({"retry_after_ms": "250"}, 0.25, "header retry-after-ms"),
        ({"retry_after": "2", "retry_after_ms": "9000"}, 9, "header retry-after-ms"),
        ({"retry_after": "Sun, 01 Mar 2026 12:01:30 GMT", "date": "Sun, 01 Mar 2026 12:00:00 GMT"}, 90,
         "header retry-after"),
        ({"retry_after": "Sun, 01 Mar 2026 11:00:00 GMT", "date": "Sun, 01 Mar 2026 12:00:00 GMT"}, 0,
         "header retry-after"),
    ],
)  # fmt: skip
def test_a_wait_is_read_in_every_form_and_its_source_kept(
    headers: dict[str, str], after: float, source: str
) -> None:
    report = describe_reply(a_reply(429, **headers))

    assert report.not_before is not None
    assert report.not_before.after == pytest.approx(after)
    assert report.not_before.source == source
    assert report.provider_metadata is not None
    assert report.provider_metadata.retry_after == pytest.approx(after)


@pytest.mark.parametrize("value", ["-3", "inf", "nan", "soon", "", "99999999999", "1e400"])
def test_a_wait_that_makes_no_sense_is_no_wait(value: str) -> None:
    report = describe_reply(a_reply(429, retry_after=value))

    assert report.not_before is None


def test_the_failure_happened_when_the_reply_was_sent() -> None:
    report = describe_reply(a_reply(429, date="Sun, 01 Mar 2026 12:00:00 GMT", retry_after="60"))

    assert report.occurred_at == datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    assert report.not_before is not None
    assert report.not_before.at == datetime(2026, 3, 1, 12, 1, tzinfo=UTC)


def test_safe_facts_are_kept_and_prose_and_other_headers_are_not() -> None:
    reply = a_reply(
        429,
        {"error": {"code": "rate_limit_exceeded", "message": "my prompt was: diagnosis"}},
        x_request_id="req_7",
        set_cookie="session=abcdef",
        authorization="Bearer abcdefghijkl",
        x_ratelimit_remaining_tokens="0",
    )

    report = describe_reply(reply, provider="acme", model="large")

    metadata = report.provider_metadata
    assert metadata is not None
    assert (metadata.status_code, metadata.code, metadata.request_id) == (429, "rate_limit_exceeded", "req_7")
    assert set(metadata.headers) == {"x-request-id", "x-ratelimit-remaining-tokens"}
    assert (report.provider, report.model) == ("acme", "large")
    assert not {"diagnosis", "abcdef"} & set(report.to_json().replace('"', " ").split())
    assert ErrorReport.from_json(report.to_json()) == report


def test_prose_where_a_code_should_be_is_not_taken_for_one() -> None:
    report = describe_reply(a_reply(400, {"error": {"code": "please call 555 or mail bob", "type": "x y"}}))

    assert report.provider_metadata is not None
    assert report.provider_metadata.code is None


@pytest.mark.parametrize(
    "text",
    [
        "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Type: text/plain\r\n\r\nslow down\r\n",
        "HTTP/2 429 \nretry-after: 3\ncontent-type: text/plain\n\nslow down",
        "HTTP/1.1 200 Connection established\r\n\r\nHTTP/2 429\r\nretry-after: 3\r\n\r\nslow down",
        "HTTP/1.1 302 Found\nlocation: /x\n\nHTTP/1.1 100 Continue\n\nHTTP/2 429\nretry-after: 3\n\nslow down",
        "* Connected to x\n> POST / HTTP/2\n> host: x\n>\n< HTTP/2 429\n< retry-after: 3\n<\n{ [5 bytes data]\nslow down",
        '{"status": 429, "headers": {"Retry-After": "3"}, "body": "slow down"}',
        '{"status_code": "429", "headers": [["retry-after", 3]], "body": "slow down"}',
        '{"status": 429, "headers": [{"name": "Retry-After", "value": "3"}], "body": "slow down"}',
    ],
    ids=["http1", "http2", "proxy", "redirect", "verbose", "json", "pairs", "har"],
)
def test_a_reply_is_read_in_every_form_it_is_saved_in(text: str) -> None:
    reply = parse_reply(text)

    assert reply.status == 429
    assert reply.headers["retry-after"] == "3"
    assert reply.body.strip() == "slow down"


def test_headers_that_are_folded_or_repeated_are_joined() -> None:
    reply = parse_reply("HTTP/1.1 429 X\nServer: a\nServer: b\nX-Long: one\n  two\nnonsense\n\n")

    assert reply.headers == {"server": "a, b", "x-long": "one two"}
    assert reply.body == ""


def test_a_json_body_may_be_saved_as_an_object() -> None:
    reply = parse_reply('{"status": 429, "body": {"error": {"code": "insufficient_quota"}}}')

    assert describe_reply(reply).kind == "provider.quota_exhausted"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "no status line"),
        ("{", "not valid JSON"),
        ('{"status": "many"}', "needs a `status`"),
        ('{"status": 42}', "needs a `status`"),
        ('{"headers": {}}', "needs a `status`"),
        ('{"a":' * 100_000, "not valid JSON"),
        ('{"status": ' + "1" * 5_000 + "}", "not valid JSON"),
    ],
)
def test_what_is_no_reply_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(Validation, match=message) as refused:
        parse_reply(text)

    assert refused.value.kind == "validation.shape_invalid"


@pytest.mark.parametrize(
    "body", ["<html>Bad gateway</html>", "", "null", "[]", '"text"', "[" * 100_000, "1" * 5_000]
)
def test_a_body_that_is_no_json_object_leaves_it_to_the_status(body: str) -> None:
    assert describe_reply(a_reply(502, body)).kind == "provider.unavailable"
