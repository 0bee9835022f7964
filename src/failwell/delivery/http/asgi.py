"""ASGI middleware: whatever an application raises becomes a problem document, or ends its stream properly.

While nothing was sent, the failure is answered. After that an event stream gets an `error` event and a clean end; any other
response is cut off, so that its reader notices. A client that leaves is no failure. Cancellation passes through untouched, and so
does everything that is not an HTTP request.
"""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from functools import partial
from typing import Any, cast

from failwell.adapters.traceback_frames import innermost
from failwell.delivery.http.caller_report import behind, is_client_disconnect
from failwell.delivery.http.problem_details import KINDS_URI, Disclosure
from failwell.delivery.http.request import (
    REQUEST_ID_HEADER,
    Border,
    OnReport,
    RequestState,
    Upstream,
    ends_with_event,
)
from failwell.delivery.plain_text import text_or
from failwell.errors.report import ErrorReport

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

REQUEST_STATE_KEY = "failwell.request_state"
"""Key of the request's `RequestState` in the ASGI scope."""


class FailwellMiddleware:
    """Answers for an application that raised, and puts a request id on every answer.

    Args:
        app: The application inside.
        disclosure: `verbose` also shows callers which provider was called and what it answered.
        on_report: Called with every report; without it, reports go to the log `failwell.http`.
        request_id_header: Where a caller's id is read from and where it is echoed.
        type_base: The beginning of a problem's `type`; the kind follows it.
        upstream: `transparent` answers a failed call of the service with its own kind and status.
    """

    def __init__(
        self,
        app: App,
        *,
        disclosure: Disclosure = "strict",
        on_report: OnReport | None = None,
        request_id_header: str = REQUEST_ID_HEADER,
        type_base: str = KINDS_URI,
        upstream: Upstream = "neutral",
    ) -> None:
        self.app = app
        self.border = Border(
            disclosure=disclosure,
            on_report=on_report,
            request_id_header=request_id_header.lower(),
            type_base=type_base,
            upstream=upstream,
        )

    @classmethod
    def around(cls, app: App, border: Border) -> "FailwellMiddleware":
        """The middleware with settings that other layers share."""
        layer = cls(app)
        layer.border = border
        return layer

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_state = request_state_of(scope, self.border)
        response = _Response(request_state, self.border.request_id_header, send)

        async def watched() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                request_state.client_left = True
            return message

        with self.border.guard(request_state, ignores=partial(_client_left, request_state)) as failed:
            await self.app(scope, watched, response.send)
        if failed.report is None:
            return
        try:
            await self._end(request_state, failed.report, response)
        except OSError as error:
            if error is not request_state.send_error:
                raise

    async def _end(self, request_state: RequestState, report: ErrorReport, response: "_Response") -> None:
        if response.is_complete:
            return
        if not response.has_started:
            reply = self.border.reply(request_state, report)
            headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers]
            await response.send({"type": "http.response.start", "status": reply.status, "headers": headers})
            await response.send({"type": "http.response.body", "body": reply.body})
        elif response.takes_events and not request_state.is_interrupted:
            event = self.border.last_event(request_state, report, response.tail)
            await response.send({"type": "http.response.body", "body": event})
        else:
            # A server closes the connection for whatever is raised, and the reader sees that the body is not whole.
            raise self.border.interrupt(request_state) from None


class _Response:
    """What was sent of one response so far."""

    def __init__(self, request_state: RequestState, id_header: str, send: Send) -> None:
        self._exchange = request_state
        self._id_header = id_header.encode("latin-1")
        self._send = send
        self.has_started = False
        self.is_complete = False
        self.takes_events = False
        self.tail = b""
        """The last bytes that were sent: an event ends with an empty line."""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message = self._started(message)
        elif message["type"] == "http.response.body":
            if not message.get("more_body", False):
                if self._exchange.is_interrupted:
                    # A layer in between ends the body although the application failed in the middle of it.
                    return
                self.is_complete = True
            if self.takes_events:
                self.tail = (self.tail + bytes(message.get("body", b"")))[-4:]
        try:
            await self._send(message)
        except OSError as error:
            self._exchange.send_error = error
            raise

    def _started(self, message: Message) -> Message:
        self.has_started = True
        headers: Headers = list(message.get("headers") or ())
        pairs = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)
        self.takes_events = ends_with_event(message["status"], pairs)
        if any(name.lower() == self._id_header for name, _ in headers):
            return message
        return {**message, "headers": [*headers, (self._id_header, self._exchange.request_id.encode())]}


def request_state_of(scope: MutableMapping[str, Any], border: Border) -> RequestState:
    """The request_state of a request, shared by every layer that sees it."""
    known = scope.get(REQUEST_STATE_KEY)
    if isinstance(known, RequestState):
        return known
    name = border.request_id_header.encode("latin-1")
    pairs = cast("Iterable[tuple[bytes, bytes]]", scope.get("headers") or ())
    supplied = next((value.decode("latin-1") for key, value in pairs if key.lower() == name), "")
    request_state = border.open(text_or(scope.get("path"), "/"), supplied)
    scope[REQUEST_STATE_KEY] = request_state
    return request_state


def _client_left(request_state: RequestState, error: BaseException) -> bool:
    """Whether `error` says nothing but that the client closed the connection."""
    failure = behind(error)
    if failure is request_state.send_error or is_client_disconnect(failure):
        return True
    # A layer waited for a response of an application that was cancelled.
    return request_state.client_left and innermost(failure) == "starlette.middleware.base"
