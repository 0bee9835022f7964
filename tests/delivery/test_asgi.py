"""The middleware: what an application raises is answered, as long as an answer is possible."""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from failwell.delivery.http.asgi import App, FailwellMiddleware, Receive, Send
from failwell.delivery.http.request import ResponseInterrupted
from failwell.errors.fault import Fault
from failwell.errors.report import ErrorReport
from tests.delivery.builders import a_wait, make_fault

Scope = Any


def raising(error: BaseException) -> App:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise error

    return app


def answering(*headers: tuple[bytes, bytes], then: BaseException | None = None) -> App:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [*headers]})
        if then is not None:
            raise then
        await send({"type": "http.response.body", "body": b"fine"})

    return app


def get(app: Any, path: str = "/", **headers: str) -> httpx.Response:
    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get(path, headers={name.replace("_", "-"): v for name, v in headers.items()})

    return asyncio.run(call())


def kept() -> tuple[list[ErrorReport], Callable[[ErrorReport], None]]:
    reports: list[ErrorReport] = []
    return reports, reports.append


def test_a_fault_is_answered_with_a_problem_document() -> None:
    reports, keep = kept()
    fault = make_fault(not_before=a_wait(3.2), provider="acme")

    reply = get(FailwellMiddleware(raising(fault), on_report=keep), "/chat?key=abc", x_request_id="q-1")

    assert reply.status_code == 503
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.headers["retry-after"] == "4"
    assert reply.headers["x-request-id"] == "q-1"
    assert reply.headers["cache-control"] == "no-store"
    assert reply.json()["instance"] == "/chat"
    assert reply.json()["request_id"] == "q-1"
    assert "acme" not in reply.text
    assert (reply.json()["id"], reports[0].kind) == (reports[0].id, "provider.rate_limited")


def test_verbose_tells_who_was_called() -> None:
    reports, keep = kept()
    app = FailwellMiddleware(raising(make_fault(provider="acme")), disclosure="verbose", on_report=keep)

    assert get(app).json()["provider"] == "acme"
    assert len(reports) == 1


@pytest.mark.acceptance("pipelex 65")
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("x"), "internal.bug"),
        (KeyError("x"), "internal.bug"),
        (PermissionError(13, "x"), "internal.file_unavailable"),
        (json.JSONDecodeError("x", "", 0), "internal.unknown"),
        (type("InvalidURL", (ValueError,), {"__module__": "requests.exceptions"})("x"), "internal.bug"),
    ],
)
def test_an_unforeseen_exception_is_not_called_the_callers_mistake(error: Exception, kind: str) -> None:
    reports, keep = kept()

    reply = get(FailwellMiddleware(raising(error), on_report=keep))

    assert reply.status_code == 500
    assert reply.json()["kind"] == kind
    assert reports[0].error_type == type(error).__name__


def test_a_wrapper_around_an_unforeseen_exception_blames_nobody_else() -> None:
    reports, keep = kept()
    wrapped = Fault.wrap(KeyError("x"), "the page could not be written")

    reply = get(FailwellMiddleware(raising(wrapped), on_report=keep))

    assert reply.status_code == 500
    assert [report.kind for report in reports] == ["internal.bug"]


def test_a_request_id_is_made_when_the_caller_gave_none() -> None:
    reply = get(FailwellMiddleware(answering()))

    assert reply.status_code == 200
    assert len(reply.headers["x-request-id"]) == 32


@pytest.mark.parametrize("given", ["a b", "x" * 129, "<script>"])
def test_a_request_id_that_is_none_is_replaced(given: str) -> None:
    reply = get(FailwellMiddleware(answering()), x_request_id=given)

    assert len(reply.headers["x-request-id"]) == 32


def test_the_applications_own_request_id_is_kept() -> None:
    app = answering((b"X-Request-ID", b"mine"))

    reply = get(FailwellMiddleware(app), x_request_id="yours")

    assert reply.headers.get_list("x-request-id") == ["mine"]


def test_the_header_of_the_request_id_can_be_chosen() -> None:
    reply = get(FailwellMiddleware(answering(), request_id_header="X-Trace"), x_trace="t-1")

    assert reply.headers["x-trace"] == "t-1"
    assert "x-request-id" not in reply.headers


def test_a_failure_after_the_answer_began_is_reported_and_cuts_the_answer_off() -> None:
    reports, keep = kept()

    with pytest.raises(ResponseInterrupted) as caught:
        get(FailwellMiddleware(answering(then=RuntimeError("half way")), on_report=keep))

    assert [report.kind for report in reports] == ["internal.bug"]
    assert reports[0].id in str(caught.value)
    assert "half way" not in str(caught.value)


def test_cancellation_passes_through_unreported() -> None:
    reports, keep = kept()
    app = FailwellMiddleware(raising(asyncio.CancelledError()), on_report=keep)
    sent: list[Any] = []

    async def receive() -> Any: ...

    async def send(message: Any) -> None:
        sent.append(message)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(app({"type": "http", "path": "/", "headers": []}, receive, send))

    assert reports == []
    assert sent == []


@pytest.mark.parametrize("kind", ["websocket", "lifespan"])
def test_what_is_not_an_http_request_is_left_alone(kind: str) -> None:
    reports, keep = kept()
    seen: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append((scope, receive, send))
        raise RuntimeError("theirs")

    async def receive() -> Any: ...

    async def send(message: Any) -> None: ...

    with pytest.raises(RuntimeError):
        asyncio.run(FailwellMiddleware(app, on_report=keep)({"type": kind}, receive, send))

    assert seen == [({"type": kind}, receive, send)]
    assert reports == []


def test_without_an_observer_the_log_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="failwell.http"):
        get(FailwellMiddleware(raising(RuntimeError("secret words"))))
        get(FailwellMiddleware(raising(Fault(kind="validation.input_invalid"))))

    assert [(record.levelname, record.failwell["kind"]) for record in caplog.records] == [  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        ("CRITICAL", "internal.bug"),
        ("WARNING", "validation.input_invalid"),
    ]
    assert "secret words" not in caplog.text


def test_an_observer_that_fails_costs_the_caller_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(report: ErrorReport) -> None:
        raise RuntimeError("observer words")

    reply = get(FailwellMiddleware(raising(make_fault()), on_report=broken))

    assert reply.status_code == 503
    assert len(caplog.records) == 2
    assert "observer words" not in caplog.text


def test_a_path_with_odd_characters_is_written_as_an_address() -> None:
    reply = get(FailwellMiddleware(raising(make_fault())), "/a%0d%0ab/%C3%A9%22")

    assert reply.json()["instance"] == "/a%0D%0Ab/%C3%A9%22"
