"""Every way in which providers say "come back later" is read, and nonsense is noted and passed over."""

import http.client
from datetime import UTC, datetime
from typing import Any

import httpx
import multidict
import pytest
from hypothesis import given
from hypothesis import strategies as st

import failwell
from failwell.adapters.facts import Facts
from failwell.adapters.retry_after import Waits, read_waits, wait_of
from tests.specimens import each

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
EPOCH = 1_772_366_400
"""The same moment, as seconds since 1970."""


def waits(headers: dict[str, str] | None = None, body: Any = None, message: str = "") -> Waits:
    return read_waits(headers or {}, body, message, NOW)


def seconds(headers: dict[str, str] | None = None, body: Any = None, message: str = "") -> float | None:
    latest = waits(headers, body, message).latest
    return None if latest is None else latest.seconds


def rate_info(delay: Any) -> dict[str, Any]:
    kind = "type.googleapis.com/google.rpc.RetryInfo"
    return {"error": {"code": 429, "details": [{"@type": kind, "retryDelay": delay}]}}


def test_the_two_clocks_of_this_file_agree() -> None:
    assert NOW.timestamp() == EPOCH


@pytest.mark.acceptance("pipelex 33")
@each(
    ("value", "expected"),
    [
        ("7", 7), ("7.5", 7.5), ("0", 0), (" 12 ", 12), ('"12"', 12), ("1e1", 10), ("90", 90), ("86400", 86_400),
        ("274579", 274_579), ("31536000", 31_536_000),
        ("Sun, 01 Mar 2026 12:01:30 GMT", 90), ("Sunday, 01-Mar-26 12:01:30 GMT", 90),
        ("Sun Mar  1 12:01:30 2026", 90), ("Sun, 01 Mar 2026 14:01:30 +0200", 90), ("Sun, 01 Mar 2026 12:01:30", 90),
        ("Sun, 01 Mar 2026 12:01:30 -0000", 90), ("2026-03-01T12:01:30Z", 90), ("2026-03-01T12:01:30.500+00:00", 90.5),
        ("2026-03-01T13:01:30+01:00", 90), ("2026-03-01 12:01:30", 90), ("Sun, 01 Mar 2026 11:00:00 GMT", 0),
        ("2025-01-01T00:00:00Z", 0), (str(EPOCH + 30), 30), (str((EPOCH + 30) * 1000), 30), (str(EPOCH - 30), 0),
        ("30s", 30), ("6m0s", 360), ("120ms", 0.12), ("1h2m3s", 3_723), ("2d", 172_800), ("1m30.5s", 90.5),
        ("20 seconds", 20), ("1 minute", 60),
    ],
)  # fmt: skip
def test_one_header_in_every_form(value: str, expected: float) -> None:
    assert seconds({"retry-after": value}) == pytest.approx(expected)


@pytest.mark.acceptance("pipelex 33")
@each(
    "value",
    ["-1", "-0.5", "inf", "-inf", "nan", "soon", "tomorrow", "0x10", "1e400", "1e99", "١٢", "½", "7,5", "99999999999",
     "Sun, 99 Foo 2026 12:00:00 GMT", "9999-12-31T23:59:59Z", "Fri, 31 Dec 9999 23:59:59 GMT", "1" * 5_000, "{}", ";"],
)  # fmt: skip
def test_nonsense_is_no_wait_and_is_noted(value: str) -> None:
    found = waits({"retry-after": value})

    assert found.latest is None
    assert found.nonsense == ("header retry-after",)


def test_an_empty_header_says_nothing() -> None:
    assert waits({"retry-after": ""}) == Waits((), ())


@pytest.mark.acceptance("pipelex 33")
@each(
    ("headers", "expected", "source"),
    [
        ({"retry-after-ms": "6500"}, 6.5, "retry-after-ms"),
        ({"x-ms-retry-after-ms": "250"}, 0.25, "x-ms-retry-after-ms"),
        ({"retry-after-ms": "274579000"}, 274_579, "retry-after-ms"),
        ({"x-amz-retry-after": "1500"}, 1.5, "x-amz-retry-after"),
        ({"grpc-retry-pushback-ms": "3000"}, 3, "grpc-retry-pushback-ms"),
        ({"ratelimit": '"api";r=0;t=55'}, 55, "ratelimit"),
        ({"ratelimit": "limit=100, remaining=0, reset=50"}, 50, "ratelimit"),
        ({"ratelimit": "limit=100, remaining=5, reset=50"}, None, None),
        ({"ratelimit": '"day";r=9;t=70000, "minute";r=0;t=12'}, 12, "ratelimit"),
        ({"ratelimit": '"a,b";r=0;t=12'}, 12, "ratelimit"),
        ({"ratelimit": '"api";r=5;t=55'}, None, None),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "40"}, 40, "ratelimit-reset"),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, 360, "x-ratelimit-reset-tokens"),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "120ms"}, 0.12,
         "x-ratelimit-reset-requests"),
        ({"x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "6m0s"}, None, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(EPOCH + 20)}, 20, "x-ratelimit-reset"),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str((EPOCH + 20) * 1000)}, 20, "x-ratelimit-reset"),
        ({"x-rate-limit-remaining": "0", "x-rate-limit-reset": "15"}, 15, "x-rate-limit-reset"),
        ({"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": "2026-03-01T12:00:45Z"}, 45,
         "anthropic-ratelimit-tokens-reset"),
        ({"anthropic-ratelimit-tokens-remaining": "7", "anthropic-ratelimit-tokens-reset": "2026-03-01T12:00:45Z"},
         None, None),
    ],
)  # fmt: skip
def test_other_headers_in_their_own_units(
    headers: dict[str, str], expected: float | None, source: str | None
) -> None:
    latest = waits(headers).latest

    assert (None if latest is None else latest.seconds) == (
        None if expected is None else pytest.approx(expected)
    )
    assert source is None or (latest is not None and latest.source == f"header {source}")


def test_a_pushback_below_zero_forbids_a_time_and_gives_none() -> None:
    found = waits({"grpc-retry-pushback-ms": "-1"})

    assert (found.latest, found.nonsense) == (None, ("header grpc-retry-pushback-ms",))


@pytest.mark.parametrize(
    ("body", "expected", "source"),
    [
        (rate_info("28s"), 28, "body retryDelay"),
        (rate_info("3.957525076s"), 3.957525076, "body retryDelay"),
        (rate_info({"seconds": 5, "nanos": 500_000_000}), 5.5, "body retryDelay"),
        (rate_info({"seconds": "5"}), 5, "body retryDelay"),
        ({"error": {"retry_after": 12}}, 12, "body retry_after"),
        ({"retry_after": "12.5"}, 12.5, "body retry_after"),
        ({"retryAfterMs": 1500}, 1.5, "body retry_after_ms"),
        ({"error": "Model is loading", "estimated_time": 20.5}, 20.5, "body estimated_time"),
        ({"error": {"metadata": {"headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str((EPOCH + 9) * 1000)}}}},
         9, "body header x-ratelimit-reset"),
    ],
)  # fmt: skip
def test_fields_of_a_body(body: Any, expected: float, source: str) -> None:
    latest = waits(body=body).latest

    assert latest is not None
    assert (latest.seconds, latest.source) == (pytest.approx(expected), source)


@pytest.mark.parametrize(
    "body",
    [rate_info("-5s"), rate_info(None), rate_info([]), rate_info({"seconds": "x"}), {"retry_after": True}, {"retry_after": "soon"},
     {"retry_after": float("nan")}, {"retry_after": float("inf")}, {"retry_after": -1}, {"estimated_time": "long"},
     {"retry_after": 10**400}, rate_info({"seconds": 10**5_000})],
)  # fmt: skip
def test_a_body_may_say_nonsense_too(body: Any) -> None:
    assert seconds(body=body) is None


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Please try again in 7m12s.", 432),
        ("Rate limit reached. Please try again in 2.1s. Visit https://x to learn more.", 2.1),
        ("try again in 6ms", 0.006),
        ("Please retry in 52.3s.", 52.3),
        ("Please retry after 20 seconds.", 20),
        ("please wait 30 seconds before retrying", 30),
        ("Try again in 2 minutes and 30 seconds", 150),
        ("Please try again in 1h2m3s", 3_723),
        ("Try again in 1 hour.", 3_600),
        ("your limit resets in 3 days", 259_200),
        ("Retry after: 15s", 15),
        ("retrying in about 5 seconds", 5),
        ("try again within 1 min", 60),
        ("Quota renews in 2 weeks", 1_209_600),
    ],
)
def test_prose_in_several_spellings(message: str, expected: float) -> None:
    latest = waits(message=message).latest

    assert latest is not None
    assert (latest.seconds, latest.source, latest.confidence) == (
        pytest.approx(expected),
        "message",
        "medium",
    )


@pytest.mark.parametrize(
    "message",
    ["try again later", "the model waited 3 times", "in 5 minutes from now everything changes", "limit 30000 tokens per min",
     "try again in 5 models", "retry with 3 smaller requests", "x" * 100_000 + "try again in 5s", ""],
)  # fmt: skip
def test_prose_that_only_looks_like_a_wait(message: str) -> None:
    assert seconds(message=message) is None


def test_the_latest_credible_statement_wins() -> None:
    headers = {"retry-after": "2", "retry-after-ms": "9000", "x-amz-retry-after": "4000"}

    assert seconds(headers) == 9
    assert seconds({**headers, "retry-after": "inf"}, rate_info("28s")) == 28


def test_a_zero_in_milliseconds_does_not_hide_the_seconds_beside_it() -> None:
    assert seconds({"retry-after": "3", "retry-after-ms": "0"}) == 3


def test_a_plain_statement_is_trusted_over_a_guess_however_late() -> None:
    headers = {"retry-after": "5", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}

    latest = waits(headers, message="try again in 2 hours").latest

    assert latest is not None
    assert (latest.seconds, latest.confidence) == (5, "high")


def test_a_date_is_measured_on_the_servers_own_clock() -> None:
    ahead = {"date": "Sun, 01 Mar 2026 13:00:00 GMT", "retry-after": "Sun, 01 Mar 2026 13:00:20 GMT"}
    behind = {"date": "Sun, 01 Mar 2026 11:00:00 GMT", "retry-after": "Sun, 01 Mar 2026 11:00:20 GMT"}
    broken = {"date": "yesterday", "retry-after": "Sun, 01 Mar 2026 12:00:20 GMT"}

    assert [seconds(headers) for headers in (ahead, behind, broken)] == [20, 20, 20]


def test_a_date_far_from_our_clock_is_ignored() -> None:
    in_a_minute = {"retry-after": "Sun, 01 Mar 2026 12:01:00 GMT"}
    resets = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(EPOCH + 60)}
    dates = [
        "Fri, 01 Jan 2100 00:00:00 GMT",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Fri, 31 Dec 9999 23:59:59 GMT",
    ]

    for date in dates:
        assert seconds({"date": date, **in_a_minute}) == 60, date
        assert seconds({"date": date, **resets}) == 60, date


def test_a_saved_reply_from_the_future_happened_now() -> None:
    before = datetime.now(UTC)

    report = failwell.classify({"http_status": 429, "headers": {"date": "Fri, 31 Dec 9999 23:59:59 GMT"}})

    assert before <= report.occurred_at <= datetime.now(UTC)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("5, 120", 120), ("120, 5", 120), ("5, Sun, 01 Mar 2026 12:01:30 GMT", 90), ("soon, 7", 7), ("1e99, 7", 7),
        ("Sun, 01 Mar 2026 12:01:30 GMT, 5", 90), ("Sunday, 01-Mar-26 12:01:30 GMT, 100", 100), ("-1, 0", 0),
    ],
)  # fmt: skip
def test_of_a_header_that_was_sent_twice_the_longer_wait_counts(value: str, expected: float) -> None:
    assert seconds({"retry-after": value}) == pytest.approx(expected)


def test_both_values_reach_the_report_from_every_library() -> None:
    twice = [("Retry-After", "5"), ("retry-after", "120")]
    message = http.client.HTTPMessage()
    for name, value in twice:
        message[name] = value
    mappings: list[Any] = [
        httpx.Headers(twice), multidict.CIMultiDict(twice), message, {"Retry-After": ["5", "120"]}, dict(twice),
    ]  # fmt: skip

    for headers in mappings:
        report = failwell.classify({"http_status": 429, "headers": headers})

        assert report.not_before is not None, type(headers)
        assert report.not_before.after == 120, type(headers)


def test_clock_times_in_other_headers_are_measured_on_it_too() -> None:
    headers = {
        "date": "Sun, 01 Mar 2026 13:00:00 GMT",
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": str(EPOCH + 3_610),
    }

    assert seconds(headers) == 10


def test_a_wait_keeps_its_source_and_says_what_was_ignored() -> None:
    found = Facts(headers={"retry-after": "soon", "x-amz-retry-after": "2000"})

    wait, nonsense = wait_of(found, NOW)

    assert wait is not None
    assert (wait.after, wait.source, wait.confidence) == (2, "header x-amz-retry-after", "high")
    assert nonsense == ("header retry-after",)


def test_ignored_waits_are_told_in_the_report() -> None:
    report = failwell.classify({"http_status": 429, "headers": {"retry-after": "soon"}})

    assert report.not_before is None
    assert report.details["ignored_waits"] == ["header retry-after"]


@pytest.mark.parametrize("value", ["1000000000", "1e9", "1700000000", "1500000000000"])
def test_a_time_that_is_long_past_is_no_delay(value: str) -> None:
    assert seconds({"retry-after": value}) is None


def test_a_server_whose_clock_is_a_little_behind_asks_for_no_delay() -> None:
    assert seconds({"retry-after": str(EPOCH - 5)}) == 0


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "retry-after": st.sampled_from(
                ["0", "7", "007", "999999999", "1234567890", "-1", "1.5", "٣", "", "7 ", "7, 9"]
            ),
            "retry-after-ms": st.sampled_from(["0", "250", "x"]),
            "x-ratelimit-reset-requests": st.just("9s"),
            "x-ratelimit-remaining-requests": st.sampled_from(["0", "5"]),
            "ratelimit": st.just('"a";r=0;t=30'),
        },
    ),
    st.sampled_from(
        [None, "a page", {"error": {"message": "no"}}, {"error": {"retry_after": 20}}, {"retryDelay": "3s"}]
    ),
    st.sampled_from(["", "Please try again in 12s."]),
)
def test_a_wait_in_its_plainest_form_is_what_all_forms_together_say(
    headers: dict[str, str], body: object, message: str
) -> None:
    wait, nonsense = wait_of(Facts(headers=headers, body=body, message=message))
    every = read_waits(headers, body, message)

    latest = every.latest
    expected = None if latest is None else (latest.seconds, latest.source, latest.confidence)
    assert (None if wait is None else (wait.after, wait.source, wait.confidence)) == expected
    assert nonsense == every.nonsense
