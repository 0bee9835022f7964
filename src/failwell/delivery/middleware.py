"""ASGI middleware: whatever an application raises becomes a problem document.

It answers only while nothing was sent yet. After that it reports the failure and raises it
again, because half an answer cannot be taken back. Cancellation passes through untouched, and so
does everything that is not an HTTP request.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import replace
from typing import Any, cast
from urllib.parse import quote
from uuid import uuid4

from failwell.delivery.logs import log_report
from failwell.delivery.plain_text import text_or
from failwell.delivery.problem_details import (
    MEDIA_TYPE,
    Disclosure,
    problem,
    problem_json,
    retry_after_header,
)
from failwell.fault.base import Fault, is_fault
from failwell.report.describe import describe
from failwell.report.record import ErrorReport

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
OnReport = Callable[[ErrorReport], object]
Headers = list[tuple[bytes, bytes]]

REQUEST_ID_HEADER = "x-request-id"
REQUEST_ID_KEY = "failwell.request_id"
"""Key of the request's id in the ASGI scope."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
_LONGEST_INSTANCE = 500

_log = logging.getLogger("failwell.http")


class FailwellMiddleware:
    """Answers for an application that raised, and puts a request id on every answer.

    Args:
        app: The application inside.
        disclosure: `verbose` also shows callers which provider was called and what it answered.
        on_report: Called with every report; without it, reports go to the log `failwell.http`.
        request_id_header: Where a caller's id is read from and where it is echoed.
    """

    def __init__(
        self,
        app: App,
        *,
        disclosure: Disclosure = "strict",
        on_report: OnReport | None = None,
        request_id_header: str = REQUEST_ID_HEADER,
    ) -> None:
        self.app = app
        self.disclosure: Disclosure = disclosure
        self.on_report = on_report
        self.request_id_header = request_id_header.lower()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        name = self.request_id_header.encode("latin-1")
        request_id = request_id_of(scope, self.request_id_header)
        started = False

        async def tracked(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers: Headers = list(message.get("headers") or ())
                if all(key.lower() != name for key, _ in headers):
                    message = {**message, "headers": [*headers, (name, request_id.encode())]}
            await send(message)

        try:
            await self.app(scope, receive, tracked)
        except Exception as error:
            # This is the edge: what is not answered here ends as the server's bare 500.
            report = report_for_caller(error)
            deliver(self.on_report, report)
            if started:
                raise
            await self._answer(report, scope, tracked, request_id)

    async def _answer(
        self, report: ErrorReport, scope: MutableMapping[str, Any], send: Send, request_id: str
    ) -> None:
        document = problem(
            report, instance=instance_of(scope), request_id=request_id, disclosure=self.disclosure
        )
        body = problem_json(document)
        start = {
            "type": "http.response.start",
            "status": document["status"],
            "headers": [*answer_headers(report), (b"content-length", str(len(body)).encode())],
        }
        await send(start)
        await send({"type": "http.response.body", "body": body})


def report_for_caller(error: BaseException) -> ErrorReport:
    """The report of what a route raised.

    A `ValueError` or an unreadable file inside the server is not the caller's mistake: only a
    fault can say that the request was at fault.
    """
    report = describe(error, untyped="internal.bug")
    if is_fault(error) or not report.kind.startswith("validation."):
        return report
    bug = Fault.wrap(error, kind="internal.bug", caller_facing=False)
    return replace(describe(bug), error_type=report.error_type)


def answer_headers(report: ErrorReport) -> Headers:
    """The headers of a problem reply, without its length and its request id."""
    headers: Headers = [(b"content-type", MEDIA_TYPE.encode()), (b"cache-control", b"no-store")]
    wait = retry_after_header(report)
    return headers if wait is None else [*headers, (b"retry-after", wait.encode())]


def request_id_of(scope: MutableMapping[str, Any], header: str = REQUEST_ID_HEADER) -> str:
    """The caller's id for the request if it is well-formed, else a new one; stored in the scope."""
    known = scope.get(REQUEST_ID_KEY)
    if isinstance(known, str):
        return known
    name = header.lower().encode("latin-1")
    pairs = cast("Iterable[tuple[bytes, bytes]]", scope.get("headers") or ())
    supplied = next((value.decode("latin-1") for key, value in pairs if key.lower() == name), "")
    # It is written into headers and logs, so anything but a plain id is replaced.
    request_id = supplied if _REQUEST_ID.fullmatch(supplied) else uuid4().hex
    scope[REQUEST_ID_KEY] = request_id
    return request_id


def instance_of(scope: MutableMapping[str, Any]) -> str:
    """The request's path as a URI reference; never its query, where callers put keys."""
    return quote(text_or(scope.get("path"), "/"), safe="/:@!$&'()*+,;=~-._")[:_LONGEST_INSTANCE]


def deliver(on_report: OnReport | None, report: ErrorReport) -> None:
    """Call `on_report`, or write to the log if there is none."""
    if on_report is None:
        log_report(_log, report)
        return
    try:
        on_report(report)
    except Exception as error:  # noqa: BLE001  (an observer's mistake must not cost the caller the answer)
        log_report(_log, report)
        log_report(_log, describe(error))
