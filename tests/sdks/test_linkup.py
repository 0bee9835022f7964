"""Every class of linkup, raised by its own client on the reply that it raises it for."""

import inspect
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import dumps
from threading import Thread
from typing import Any

import pytest

from failwell.adapters.describe import describe

linkup: Any = pytest.importorskip("linkup", reason="`make test-sdks` runs it with linkup")

REPLIES = {
    "LinkupInvalidRequestError": (400, "VALIDATION_ERROR", "provider.bad_request"),
    "LinkupNoResultError": (400, "SEARCH_QUERY_NO_RESULT", "provider.output_invalid"),
    "LinkupFailedFetchError": (400, "FETCH_ERROR", "provider.unavailable"),
    "LinkupFetchResponseTooLargeError": (400, "FETCH_RESPONSE_TOO_LARGE", "provider.bad_request"),
    "LinkupFetchTargetNotFoundError": (400, "FETCH_TARGET_NOT_FOUND", "provider.bad_request"),
    "LinkupFetchTargetUnreachableError": (400, "FETCH_TARGET_UNREACHABLE", "provider.unavailable"),
    "LinkupFetchUnsupportedContentTypeError": (400, "FETCH_UNSUPPORTED_CONTENT_TYPE", "provider.bad_request"),
    "LinkupFetchUrlIsFileError": (400, "FETCH_URL_IS_FILE", "provider.bad_request"),
    "LinkupPaymentRequiredError": (402, "PAYMENT_REQUIRED", "provider.quota_exhausted"),
    "LinkupAuthenticationError": (401, "UNAUTHORIZED", "provider.auth"),
    "LinkupIpNotWhitelistedError": (403, "IP_NOT_WHITELISTED", "provider.permission"),
    "LinkupUnsupportedTaskTypeError": (403, "TASK_TYPE_NOT_SUPPORTED", "provider.capability_missing"),
    "LinkupTaskNotFoundError": (404, "TASK_NOT_FOUND", "provider.bad_request"),
    "LinkupInsufficientCreditError": (429, "INSUFFICIENT_FUNDS_CREDITS", "provider.quota_exhausted"),
    "LinkupBudgetLimitExceededError": (429, "EXCEED_BUDGET_LIMIT", "provider.quota_exhausted"),
    "LinkupTasksQueueLimitExceededError": (429, "TASKS_QUEUE_LIMIT_EXCEEDED", "provider.overloaded"),
    "LinkupTooManyRequestsError": (429, "TOO_MANY_REQUESTS", "provider.rate_limited"),
    "LinkupRequestDeadlineExceededError": (504, "REQUEST_DEADLINE_EXCEEDED", "provider.outcome_unknown"),
    "LinkupUnknownError": (500, "INTERNAL", "provider.unavailable"),
}
"""Class → the reply it is raised for, and what it is. A time-out has no reply."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server that answers with the status and the code that its path names."""

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            _, status, code, *_ = self.path.split("/")
            text = dumps({"error": {"code": code, "message": "no", "details": []}}).encode()
            self.send_response(int(status))
            self.send_header("content-length", str(len(text)))
            self.send_header("retry-after", "7")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the name it has there)
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.acceptance("pipelex 38")
@pytest.mark.parametrize("name", REPLIES)
def test_each_class_is_raised_and_known(url: str, name: str) -> None:
    status, code, kind = REPLIES[name]
    client = linkup.LinkupClient(api_key="lab", base_url=f"{url}/{status}/{code}")

    with pytest.raises(Exception) as caught:
        client.search("q", depth="standard", output_type="searchResults")
    report = describe(caught.value)

    assert type(caught.value).__name__ == name
    assert report.kind == kind
    assert report.provider == "linkup"
    assert report.provider_metadata is not None
    assert report.provider_metadata.status_code == status
    assert report.not_before is not None
    assert report.not_before.after == 7.0


@pytest.mark.acceptance("pipelex 38")
def test_no_class_of_linkup_is_left_out() -> None:
    listed = inspect.getmembers(linkup, inspect.isclass)
    found = {cls.__name__ for _, cls in listed if issubclass(cls, Exception)}

    assert found == {*REPLIES, "LinkupTimeoutError"}


def test_a_forbidden_call_is_no_wrong_key(url: str) -> None:
    client = linkup.LinkupClient(api_key="lab", base_url=f"{url}/403/FORBIDDEN")

    with pytest.raises(linkup.LinkupAuthenticationError) as caught:
        client.search("q", depth="standard", output_type="searchResults")

    assert describe(caught.value).kind == "provider.permission"


def test_a_client_without_a_key_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LINKUP_API_KEY", raising=False)

    with pytest.raises(ValueError) as caught:
        linkup.LinkupClient()

    assert describe(caught.value).kind == "provider.auth"
