"""What words may not do: overturn a status that says more than they do."""

from http import HTTPStatus
from itertools import product
from typing import Any

import pytest

from failwell.adapters.checked_replies import check_reply
from failwell.adapters.log_records.log_record import classify
from failwell.adapters.rules import GENERIC, KINDS_OF_STATUSES
from failwell.errors.fault import Fault
from failwell.errors.kind_registry import kind as registered_kind


def report_of(status: int | None, message: str, **fields: Any) -> Any:
    body = {"error": {"message": message, **fields}}
    return classify(
        {"http_status": status, "body": body, "transport": "http", "provider": "openai-compatible"}
    )


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (500, "'NoneType' object has no attribute 'choices'", "provider.unavailable"),
        (500, "max_tokens could not be determined", "provider.unavailable"),
        (503, "invalid url", "provider.overloaded"),
        (400, "Invalid JSON: unexpected character at line 1", "provider.bad_request"),
        (429, "Too many tokens, please wait", "provider.rate_limited"),
        (429, "Too many input tokens, please wait", "provider.rate_limited"),
        (429, "Too many concurrent requests.", "provider.rate_limited"),
        (403, "this model requires a subscription, upgrade for access", "provider.permission"),
    ],
)
def test_a_word_does_not_overturn_the_status(status: int, message: str, kind: str) -> None:
    assert report_of(status, message).kind == kind


def test_an_error_in_a_good_reply_has_one_verdict_at_every_entrance() -> None:
    for code, kind in [(502, "provider.unavailable"), (429, "provider.rate_limited"), (401, "provider.auth")]:
        body = {"error": {"code": code, "message": "Provider returned error"}}

        with pytest.raises(Fault) as caught:
            check_reply("openrouter", body)

        assert caught.value.kind == kind
        assert classify({"http_status": 200, "body": body, "provider": "openrouter"}).kind == kind


SUBJECTS = {
    "auth": (401, ["The API key is {0}", "{0} credentials", "Your access token is {0}"], ["invalid", "missing", "expired"]),
    "denied": (403, ["Access to the {0} is denied", "You are not authorized to use the {0}"], ["project", "model", "region"]),
    "used_up": (429, ["Your daily {0} is exhausted", "The monthly {0} was reached", "Not enough credit for the {0}"], ["quota", "limit", "budget"]),
    "bad": (400, ["Invalid {0}", "The {0} is required", "Unknown {0}: x"], ["parameter", "field", "schema"]),
}  # fmt: skip
"""What a reply is about → its status, sentences and the words that are put into them: the grammar turned round."""
CODES = [None, "", "invalid_request_error", "server_error", "nobody_knows", 400]
TAILS = [
    "", " Please try again later.", " Retry in 5 seconds.", " The service is busy.", " See https://example.invalid/help.",
    " Too many requests.", " Temporarily unavailable.",
]  # fmt: skip
STATUSES = [None, 400, 401, 402, 403, 404, 409, 413, 422, 429, 500, 502, 503, 504, 529]


def replies() -> list[tuple[str, int | None, str, object]]:
    made: list[tuple[str, int | None, str, object]] = []
    for about, (_, sentences, words) in SUBJECTS.items():
        for sentence, word, tail, code, status in product(sentences, words, TAILS, CODES, STATUSES):
            # Without a status the code stands for one, and this one says that the server failed.
            if status is not None or code != "server_error":
                made.append((about, status, f"{sentence.format(word)}.{tail}", code))
    return made


# Every third reply is made each time, all of them where there is time.
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in (1, 2))])
def test_no_generated_reply_of_auth_quota_or_a_bad_request_is_repeated_and_no_5xx_blames_the_caller(
    part: int,
) -> None:
    made = replies()
    assert len(made) > 5_000
    wrong: list[str] = []
    # Statuses come in fifteens, so a third of the list would be a third of them.
    for about, status, message, code in sorted(made, key=repr)[part::3]:
        fields = {} if code is None else {"code": code}
        report = report_of(status, message, **fields)
        if status is not None and status >= 500:
            if report.category.value in ("user_input", "content"):
                wrong.append(f"{status} {code} {message!r}: {report.kind}")
        elif report.retryable and not _may_pass(about, status):
            wrong.append(f"{about}, {status} {code} {message!r}: {report.kind}")
    assert wrong == []


def _may_pass(about: str, status: int | None) -> bool:
    """Whether the status itself says that a repeat may pass: a conflict, or a full window that nothing else is said of."""
    return status == 409 or (status == 429 and about in ("auth", "denied", "bad"))


NOT_REPEATED: list[dict[str, Any]] = [
    {"message": "Too many images in request. Max is 500."},
    {"message": "too many inputs in request: 2049, maximum is 2048"},
    {"message": "plugin 'foo' is loaded but invalid"},
    {"message": "NU1107: Version conflict detected for Acme.Json. Install the package directly"},
    {"message": "The SSL connection could not be established, see inner exception."},
    {
        "message": "The SSL connection could not be established. The remote certificate was rejected by the caller"
    },
    {"http_status": 424},
    {"http_status": 424, "message": "An earlier request in this batch failed"},
    {
        "exception_class": "acme.EvalError",
        "message": "'NoneType' object is not subscriptable; please try again later",
    },
    {"http_status": 403, "body": {"reason": "NotFound", "message": 'deployments "web" Forbidden'}},
]


@pytest.mark.parametrize("row", NOT_REPEATED)
def test_a_row_that_says_nothing_of_a_passing_state_is_not_repeated(row: dict[str, Any]) -> None:
    assert classify(row).retryable is False


@pytest.mark.parametrize(
    ("status", "page"),
    [
        (503, "PolicyViolation: cluster admission webhook is restarting"),
        (502, "NoSuchKey: cache warmup of node failed"),
        (503, "Error code: content_filter service restarting"),
        (503, "reason: permission_denied for service account of the pod"),
    ],
)
def test_the_page_of_a_failing_server_blames_nobody_else(status: int, page: str) -> None:
    for row in ({"body": page}, {"message": page}):
        report = classify({"http_status": status, **row})

        assert (report.blame.value, report.retryable) == ("provider", True)


def test_a_word_beside_an_error_is_no_code() -> None:
    row = {"exception_class": "acme.AcmeError", "message": "error: password_hunter_two_invalid"}

    assert "hunter" not in classify(row).to_json()


@pytest.mark.parametrize("status", [[400], {"a": 1}, "", 0, "four", True, 4000])
def test_a_status_that_is_none_is_ignored(status: object) -> None:
    row = {"message": "Your prepaid balance no longer covers this purchase; top up the wallet first"}

    assert classify({**row, "http_status": status}).kind == classify(row).kind


def test_a_client_that_calls_a_403_a_rate_limit_is_believed_and_it_is_not_repeated() -> None:
    message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
    report = classify(
        {
            "http_status": 403,
            "exception_class": "github.GithubException.RateLimitExceededException",
            "message": message,
        }
    )

    assert (report.kind, report.retryable) == ("provider.rate_limited", False)
    assert report_of(403, message).kind == "provider.permission"


def test_a_status_in_text_is_a_status() -> None:
    row = {"message": "Your prepaid balance no longer covers this purchase; top up the wallet first"}

    assert classify({**row, "http_status": "400"}).kind == classify({**row, "http_status": 400}).kind


def test_every_status_that_words_may_refine_is_written_down_once() -> None:
    registered = {status.value for status in HTTPStatus}
    # Of a status that no registry knows, the words may say all but a fault of the server.
    assert set(GENERIC) & registered == {400, 401, 403, 404, 406, 409, 412, 422, 423, 424, 429, 451, 500}
    for status, kinds in GENERIC.items():
        passing = {kind for kind in kinds if registered_kind(kind).category.retryable}
        if status not in (429, 500):
            assert passing <= (set() if status in registered else {"provider.rate_limited"}), status
        assert KINDS_OF_STATUSES[status].startswith("provider.")
