"""A failure that was written down is described as the live one would have been."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import failwell
from failwell import Category, ErrorReport
from failwell.errors import Certainty

ROW: dict[str, Any] = {
    "provider": "openai",
    "sdk": "openai",
    "http_status": 429,
    "headers": {
        "Retry-After": "20",
        "x-request-id": "req_1",
        "authorization": "Bearer abcdefghijkl",
        "date": "Sun, 01 Mar 2026 12:00:00 GMT",
    },
    "body": '{"error": {"code": "rate_limit_exceeded", "message": "slow down, my diagnosis"}}',
    "exception_class": "openai.RateLimitError",
    "message": "slow down, my diagnosis",
    "cause_chain": [{"class": "httpx.HTTPStatusError", "message": "my diagnosis"}],
}


def test_a_saved_row_becomes_a_whole_report() -> None:
    report = failwell.classify(ROW, model="large")

    assert (report.kind, report.category, report.retryable) == (
        "provider.rate_limited",
        Category.TRANSIENT,
        True,
    )
    assert (report.provider, report.model, report.error_type) == ("openai", "large", "RateLimitError")
    assert report.provider_metadata is not None
    assert report.provider_metadata.request_id == "req_1"
    assert report.occurred_at == datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    assert report.not_before is not None
    assert report.not_before.at == datetime(2026, 3, 1, 12, 0, 20, tzinfo=UTC)
    assert [cause.type for cause in report.causes] == ["HTTPStatusError"]
    assert ErrorReport.from_json(report.to_json()) == report


def test_nothing_a_row_says_in_prose_or_in_secret_is_kept() -> None:
    text = failwell.classify(ROW).to_json()

    assert "diagnosis" not in text
    assert "abcdefghijkl" not in text


def test_the_caller_may_say_when_it_happened() -> None:
    when = datetime(2026, 5, 1, tzinfo=UTC)

    assert failwell.classify(ROW, at=when).occurred_at == when


def test_a_row_without_a_time_happened_now() -> None:
    before = datetime.now(UTC)

    assert failwell.classify({"http_status": 500}).occurred_at >= before


def test_a_provider_that_forbids_a_repeat_is_obeyed() -> None:
    report = failwell.classify({"http_status": 500, "headers": {"x-should-retry": "false"}})

    assert (report.category, report.retryable) == (Category.TRANSIENT, False)


@pytest.mark.parametrize(
    ("row", "kind", "certainty"),
    [
        ({"exception_class": "MemoryError"}, "resource.system_memory", None),
        ({"exception_class": "OSError", "message": "[Errno 28] No space left on device"}, "resource.disk", None),
        ({"exception_class": "subprocess.CalledProcessError", "message": "died with <Signals.SIGKILL: 9>"}, "worker.oom", None),
        ({"exception_class": "httpx2.ReadTimeout"}, "provider.outcome_unknown", Certainty.UNKNOWN),
        ({"exception_class": "httpx.ConnectTimeout"}, "provider.connection", Certainty.NOT_SENT),
        ({"exception_class": "openai.APIConnectionError", "cause_chain": [{"class": "KeyError", "message": "'x'"}]},
         "internal.bug", None),
        ({"transport": "stream", "exception_class": "httpx.RemoteProtocolError"}, "provider.stream_interrupted",
         Certainty.PARTIAL),
        ({"transport": "stream", "http_status": 200, "body": {"error": {"type": "overloaded_error"}}},
         "provider.overloaded", Certainty.PARTIAL),
    ],
)  # fmt: skip
def test_failures_without_a_reply_are_judged_too(
    row: dict[str, Any], kind: str, certainty: Certainty | None
) -> None:
    report = failwell.classify(row)

    assert report.kind == kind
    assert certainty is None or report.certainty is certainty


def test_other_names_in_a_row_are_not_looked_at() -> None:
    telling = {
        "category": "fatal",
        "retryable": False,
        "source": "insufficient_quota",
        "text_origin": "recorded",
    }
    when = datetime(2026, 5, 1, tzinfo=UTC)

    plain, labelled = failwell.classify(ROW, at=when), failwell.classify({**ROW, **telling}, at=when)

    assert {**labelled.to_dict(), "id": ""} == {**plain.to_dict(), "id": ""}


NAMES = st.sampled_from(
    ["provider", "sdk", "transport", "http_status", "headers", "body", "exception_class", "message", "cause_chain", "error",
     "code", "retry-after", "date", "retryDelay", "retry_after", "class", "details", "seconds", "nanos"]
)  # fmt: skip
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30)
ANYTHING = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=25,
)


@given(st.dictionaries(NAMES, ANYTHING, max_size=9))
def test_whatever_a_row_holds_it_becomes_a_report(row: dict[str, Any]) -> None:
    report = failwell.classify(row)

    assert ErrorReport.from_json(report.to_json()) == report
