"""What a limit counts and over how long: codes and ids before words, money only where money is spent."""

import pytest

from failwell.adapters.classify import classify
from failwell.adapters.facts import Facts, as_objects, codes_of, message_of

ADVERT = " Add a payment method at https://example.test/settings/billing to spend less time waiting."


def a_limit(said: str, *codes: str, status: int = 429) -> Facts:
    return Facts(status=status, codes=codes, message=said)


@pytest.mark.parametrize(
    ("said", "limited", "window"),
    [
        ("Limit of 40 requests per minute reached.", "requests", "minute"),
        ("Limit of 9,000 tokens per min (TPM) reached.", "tokens", "minute"),
        ("Too many calls: 5/s.", "requests", "second"),
        ("3 jobs in flight is the most; queue limit reached.", "concurrency", None),
    ],
)
def test_a_rate_limit_counts_calls_whatever_its_sentence_sells(
    said: str, limited: str, window: str | None
) -> None:
    found = classify(a_limit(said + ADVERT, "rate_limit_exceeded"))

    assert found.kind == "provider.rate_limited"
    assert found.details == {"limited": limited} | ({"window": window} if window else {})


def test_a_code_that_names_what_is_counted_goes_before_the_sentence() -> None:
    said = "Rate limit reached on requests per min: 3 used. Each of them may have 4,000 tokens."

    assert classify(a_limit(said, "rate_limit_exceeded", "requests")).details["limited"] == "requests"
    assert classify(a_limit(said, "rate_limit_exceeded", "tokens")).details["limited"] == "tokens"


def test_an_id_of_a_quota_goes_before_the_sentence() -> None:
    violation = {"quotaMetric": "example.test/free_tier_requests", "quotaId": "RequestsPerDayPerProject"}
    said = "You exceeded your current quota, please check your plan and billing details."
    body = as_objects({"error": {"message": said, "details": [{"violations": [violation]}]}})

    found = classify(Facts(status=429, codes=codes_of(body), message=message_of(body), body=body))

    assert found.kind == "provider.quota_exhausted"
    assert found.details == {"limited": "requests", "window": "day"}


@pytest.mark.parametrize(
    ("said", "limited"),
    [
        ("Your credit balance is too low. Go to Plans & Billing to buy more.", "balance"),
        ("You have reached your spending limit of $20 for this month.", "spend"),
        ("Billing hard limit has been reached.", "spend"),
    ],
)
def test_a_quota_of_money_is_told_apart(said: str, limited: str) -> None:
    found = classify(a_limit(said, "invalid_request_error", status=400))

    assert found.kind == "provider.quota_exhausted"
    assert found.details["limited"] == limited


def test_no_window_passes_that_would_fill_a_balance_again() -> None:
    found = classify(
        a_limit("Your credit balance is used up; top it up at any time of the day.", "insufficient_quota")
    )

    assert found.details == {"limited": "balance"}
