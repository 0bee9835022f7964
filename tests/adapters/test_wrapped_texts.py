"""A failed call that a program wrapped into a plain exception: the text of the client is all that is left of it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

import failwell
from failwell import Category
from tests.specimens import each

ROW = {"error": {"type": "rate_limit_error", "code": "rate_limit_exceeded", "message": "slow down"}}


def status_error(module: str, status: int) -> Exception:
    """The error that a client built on httpx raises for a reply, printed by its own code."""
    sdk = pytest.importorskip(module)
    httpx = pytest.importorskip("httpx2" if module in ("openai", "anthropic") else "httpx")
    request = httpx.Request("POST", "https://api.example.com/v1")
    response = httpx.Response(status, json=ROW, request=request)
    return sdk.APIStatusError(f"Error code: {status} - {ROW}", response=response, body=ROW)


def requests_error(status: int) -> Exception:
    requests = pytest.importorskip("requests")
    reply = requests.Response()
    reply.status_code, reply.url, reply.reason = status, "https://api.example.com/v1", "Some Reason"
    with pytest.raises(requests.HTTPError) as raised:
        reply.raise_for_status()
    return raised.value


def httpx_error(status: int) -> Exception:
    httpx = pytest.importorskip("httpx")
    reply = httpx.Response(status, request=httpx.Request("GET", "https://api.example.com/v1"))
    with pytest.raises(httpx.HTTPStatusError) as raised:
        reply.raise_for_status()
    return raised.value


def botocore_error(code: str) -> Exception:
    exceptions = pytest.importorskip("botocore.exceptions")
    return exceptions.ClientError({"Error": {"Code": code, "Message": "no"}}, "InvokeModel")


def fern_error(status: int) -> Exception:
    errors = pytest.importorskip("cohere.core.api_error")
    return errors.ApiError(status_code=status, headers={"retry-after": "3"}, body={"message": "no"})


def google_error(status: int) -> Exception:
    errors = pytest.importorskip("google.genai.errors")
    return errors.APIError(
        status, {"error": {"code": status, "message": "no", "status": "RESOURCE_EXHAUSTED"}}
    )


RAISED: dict[str, Callable[[], Exception]] = {
    "openai 429": lambda: status_error("openai", 429),
    "anthropic 529": lambda: status_error("anthropic", 529),
    "requests 401": lambda: requests_error(401),
    "requests 503": lambda: requests_error(503),
    "httpx 403": lambda: httpx_error(403),
    "httpx 502": lambda: httpx_error(502),
    "botocore throttling": lambda: botocore_error("ThrottlingException"),
    "botocore denied": lambda: botocore_error("AccessDeniedException"),
    "fern 429": lambda: fern_error(429),
    "google 429": lambda: google_error(429),
}


@each("make", RAISED.values(), ids=RAISED)
@each("wrap", [RuntimeError, ValueError, Exception])
def test_a_wrapped_text_has_the_kind_of_the_error_that_printed_it(
    make: Callable[[], Exception], wrap: type[Exception]
) -> None:
    error = make()

    report = failwell.describe(wrap(f"the summary could not be written: {error}"))

    assert report.kind == failwell.describe(error).kind
    assert report.error_type == wrap.__name__


def test_the_reply_of_a_wrapped_text_is_known_and_its_words_are_not_kept() -> None:
    error = RuntimeError(f"Error code: 429 - {json.dumps(ROW)}")

    report = failwell.describe(error)

    assert report.provider_metadata is not None
    assert report.provider_metadata.status_code == 429
    assert report.provider_metadata.code == "rate_limit_exceeded"
    assert "slow down" not in report.to_json()


class GeneratedError(Exception):
    """As openapi-generator writes it: the parts of the reply are attributes, and the text is made in Python."""

    def __init__(self, status: int, reason: str, body: str, headers: dict[str, str]) -> None:
        self.status, self.reason, self.body, self.headers = status, reason, body, headers

    def __str__(self) -> str:
        return f"({self.status})\nReason: {self.reason}\n"


def test_the_reply_that_an_unknown_exception_holds_is_read() -> None:
    error = GeneratedError(429, "Too Many Requests", '{"message": "later"}', {"Retry-After": "7"})

    report = failwell.describe(error)

    assert (report.kind, report.retryable) == ("provider.rate_limited", True)
    assert report.not_before is not None
    assert report.not_before.after == 7


class DomainError(Exception):
    """An exception of a program that has a number of its own."""

    def __init__(self, status: int) -> None:
        super().__init__("the order is closed")
        self.status = status


@pytest.mark.parametrize(
    "error",
    [
        DomainError(404),
        Exception("order 404 has 500 items"),
        RuntimeError("the plan has 429 steps"),
        KeyError("HTTP 503"),
        TypeError("expected str, got status code 500"),
        AssertionError("status code 404 != 200"),
        ValueError("no such file or directory: 'x'"),
    ],
)
def test_a_number_or_a_word_in_a_program_s_own_error_is_no_reply(error: Exception) -> None:
    report = failwell.describe(error)

    assert not report.kind.startswith("provider.")
    assert report.provider_metadata is None


def test_a_status_of_its_own_is_not_overruled_by_a_number_in_the_text() -> None:
    httpx = pytest.importorskip("httpx")
    reply = httpx.Response(403, request=httpx.Request("GET", "https://api.example.com/v1"))
    error = httpx.HTTPStatusError("HTTP 503", request=reply.request, response=reply)

    report = failwell.describe(error)

    assert report.kind == "provider.permission"


@pytest.mark.parametrize(
    ("error", "category"),
    [
        (Exception("dial tcp 10.0.0.1:443: connect: connection refused"), Category.TRANSIENT),
        (
            RuntimeError("git clone: fatal: Authentication failed for 'https://git.example.com/x'"),
            Category.CONFIGURATION,
        ),
        (RuntimeError("rpc error: code = DeadlineExceeded desc = too slow"), Category.AMBIGUOUS),
        (OSError("upload failed: No space left on device"), Category.RESOURCE),
        (ConnectionError("Cannot connect to host localhost:11434: Connection refused"), Category.TRANSIENT),
    ],
)
def test_a_fact_in_the_text_of_a_plain_exception_decides(error: Exception, category: Category) -> None:
    assert failwell.describe(error).category is category


def test_the_text_of_a_class_with_its_own_str_is_not_made() -> None:
    class Loud(Exception):
        made: Any = False

        def __str__(self) -> str:
            Loud.made = True
            return "HTTP 503"

    report = failwell.describe(Loud("connection refused"))

    assert Loud.made is False
    assert report.kind == "provider.connection"
