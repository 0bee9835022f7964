"""The standard library's own HTTP: a reply is read by its status, a lost one leaves the outcome open."""

import http.client
import socket
import urllib.error
import urllib.request
from collections.abc import Callable

import pytest

import failwell
from failwell.adapters.vendors.urllib import TABLES
from tests.adapters.raisers import CANARY, Action, caught, closed_port, listening

RAISED_HERE = {
    ("urllib", "URLError"),
    ("urllib", "HTTPError"),
    ("http", "RemoteDisconnected"),
    ("http", "IncompleteRead"),
    ("http", "InvalidURL"),
    ("http", "ImproperConnectionState"),
    ("http", "HTTPException"),
}


def ask(port: int) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{CANARY}", timeout=5) as reply:
        return reply.read()


def ask_without_ceremony(port: int) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", f"/{CANARY}")
        return connection.getresponse().read()
    finally:
        connection.close()


def a_reply(status: int) -> bytes:
    return f"HTTP/1.1 {status} {CANARY}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()


def report_of(action: Action) -> failwell.ErrorReport:
    error = caught(action)
    if isinstance(error, urllib.error.HTTPError):
        error.close()
    report = failwell.describe(error)
    assert CANARY not in report.to_json()
    return report


def test_every_row_of_the_table_is_raised_below() -> None:
    assert {(top, name) for top, table in TABLES.items() for name in table} == RAISED_HERE


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "provider.bad_request", False),
        (401, "provider.auth", False),
        (402, "provider.quota_exhausted", False),
        (403, "provider.permission", False),
        (404, "provider.rejected", False),
        (408, "provider.outcome_unknown", False),
        (409, "provider.unavailable", True),
        (425, "provider.unavailable", True),
        (429, "provider.rate_limited", True),
        (500, "provider.unavailable", True),
        (503, "provider.overloaded", True),
        (504, "provider.outcome_unknown", False),
    ],
)
def test_a_reply_is_read_by_its_status(status: int, kind: str, retryable: bool) -> None:
    with listening(a_reply(status)) as port:
        report = report_of(lambda: ask(port))

    assert (report.kind, report.retryable) == (kind, retryable)
    assert report.provider_metadata is not None
    assert report.provider_metadata.status_code == status
    assert f"(HTTP {status})" in report.message


def test_a_reply_without_a_status_is_unknown() -> None:
    error = urllib.error.HTTPError("http://x", 500, "x", http.client.HTTPMessage(), None)
    error.code = None  # pyright: ignore[reportAttributeAccessIssue]

    assert failwell.describe(error).kind == "provider.unknown"


def test_what_happened_is_the_reason_inside_the_envelope() -> None:
    port = closed_port()

    report = report_of(lambda: ask(port))

    assert (report.kind, report.certainty, report.error_type) == (
        "provider.connection",
        "not_sent",
        "URLError",
    )


def test_an_envelope_with_words_for_a_reason_is_a_failure_of_the_system() -> None:
    report = report_of(lambda: urllib.request.urlopen(f"{CANARY}://x"))

    assert (report.kind, report.evidence[0].rule) == ("internal.io_error", "python.OSError")


@pytest.mark.parametrize("action", [ask, ask_without_ceremony])
def test_a_server_that_hangs_up_without_a_word_leaves_the_outcome_unknown(
    action: Callable[[int], bytes],
) -> None:
    with listening(None) as port:
        report = report_of(lambda: action(port))

    assert (report.kind, report.category, report.certainty) == (
        "provider.outcome_unknown",
        "ambiguous",
        "unknown",
    )


def test_a_body_that_breaks_off_was_partly_received() -> None:
    with listening(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + CANARY.encode()) as port:
        report = report_of(lambda: ask_without_ceremony(port))

    assert (report.kind, report.certainty) == ("provider.stream_interrupted", "partial")


def test_a_reply_that_is_not_http_leaves_the_outcome_unknown() -> None:
    with listening(f"{CANARY}\r\n\r\n".encode()) as port:
        report = report_of(lambda: ask_without_ceremony(port))

    assert (report.kind, report.error_type) == ("provider.outcome_unknown", "BadStatusLine")


def test_an_address_that_cannot_be_asked_was_never_sent() -> None:
    connection = http.client.HTTPConnection("127.0.0.1", 9)

    report = report_of(lambda: connection.request("GET", f"/{CANARY}\x00"))

    assert (report.kind, report.certainty) == ("validation.input_invalid", "not_sent")


def test_using_a_connection_in_the_wrong_order_is_a_bug() -> None:
    report = report_of(http.client.HTTPConnection("127.0.0.1", 9).getresponse)

    assert (report.kind, report.error_type) == ("internal.bug", "ResponseNotReady")


def test_a_server_that_is_silent_for_too_long_leaves_the_outcome_unknown() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        report = report_of(lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}", timeout=0.05))

    assert (report.kind, report.retryable) == ("provider.outcome_unknown", False)
