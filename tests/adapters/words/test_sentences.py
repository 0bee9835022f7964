"""Sentences that libraries say of anything: what a value should have been, and what was used at the wrong time."""

import pytest

from failwell.report.saved_failures.saved_row import classify


def kind_of(message: str, status: int | None = None) -> str:
    row = {"sdk": "acme", "exception_class": "acme.AcmeError", "message": message, "http_status": status}
    return classify(row).kind


@pytest.mark.parametrize(
    "message",
    [
        "expected str, bytes or os.PathLike object, not int",
        "Expected a single string for :contains(), got 'x'",
        "options must be a dictionary",
        "Either channel_id or invite_id must be provided.",
        "signature_scheme must start with 'hmac-'",
        "Please pass in either base_url or environment to construct the client",
        "path failed validation: path.id should be a valid uuid",
    ],
)
def test_what_a_value_should_have_been_is_about_what_was_given(message: str) -> None:
    assert kind_of(message) == "provider.bad_request"


@pytest.mark.parametrize(
    "message",
    [
        "Event loop is closed",
        "cannot reuse already awaited coroutine",
        "threads can only be started once",
        "Cannot send a request, as the client has been closed.",
        "The estimator is not fitted yet.",
        "Manager has not been initialized yet.",
        "Called get_config outside of a runnable context",
    ],
)
def test_what_was_used_at_the_wrong_time_is_a_bug(message: str) -> None:
    assert kind_of(message) == "internal.bug"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Connection to the server must be re-established: connection reset", "provider.outcome_unknown"),
        ("Please provide a valid API key", "provider.auth"),
        ("something else happened", "provider.unknown"),
    ],
)
def test_a_sentence_that_says_more_decides(message: str, kind: str) -> None:
    assert kind_of(message) == kind


def test_a_reply_is_not_read_so() -> None:
    assert kind_of("the session is closed", 503) == "provider.overloaded"
