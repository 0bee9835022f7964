"""WSGI middleware: the same answers and the same ends of streams as its ASGI sibling.

A failure before the first piece of the body is answered with a problem document. Later an event stream gets an `error` event and a
clean end, and any other response is cut off.
"""

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from http.client import responses
from typing import Any

from failwell.delivery.http.problem_details import KINDS_URI, Disclosure
from failwell.delivery.http.request import (
    REQUEST_ID_HEADER,
    Border,
    OnReport,
    Reply,
    RequestState,
    Upstream,
    ends_with_event,
)
from failwell.delivery.plain_text import text_or
from failwell.errors.foreign_objects import safe_getattr

Environ = MutableMapping[str, Any]
StartResponse = Callable[..., Callable[[bytes], object]]
WSGIApp = Callable[[Any, Any], Iterable[bytes]]

REQUEST_STATE_KEY = "failwell.request_state"
"""Key of the request's `RequestState` in the WSGI environment."""


class FailwellWSGIMiddleware:
    """Answers for a WSGI application that raised, and puts a request id on every answer.

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
        app: WSGIApp,
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
            request_id_header=request_id_header,
            type_base=type_base,
            upstream=upstream,
        )

    @classmethod
    def around(cls, app: WSGIApp, border: Border) -> "FailwellWSGIMiddleware":
        """The middleware with settings that other layers share."""
        layer = cls(app)
        layer.border = border
        return layer

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        request_state = request_state_of(environ, self.border)
        response = _Response(request_state, self.border.request_id_header, start_response)
        with self.border.guard(request_state) as failed:
            body = self.app(environ, response.start)
        if failed.report is not None:
            if response.was_written:
                raise self.border.interrupt(request_state) from None
            return [response.replace(self.border.reply(request_state, failed.report), failed.error)]
        wrapper = environ.get("wsgi.file_wrapper")
        if type(body) in (list, tuple) or (isinstance(wrapper, type) and isinstance(body, wrapper)):
            # Nothing can fail any more, and servers have quick ways for these.
            return body
        return self._pieces(request_state, response, body)

    def _pieces(
        self, request_state: RequestState, response: "_Response", body: Iterable[bytes]
    ) -> Iterator[bytes]:
        tail = b""
        try:
            with self.border.guard(request_state) as failed:
                for piece in body:
                    response.was_written = True
                    if response.takes_events:
                        tail = (tail + piece)[-4:]
                    yield piece
            if failed.report is None:
                return
            if not response.was_written:
                yield response.replace(self.border.reply(request_state, failed.report), failed.error)
            elif response.takes_events:
                yield self.border.last_event(request_state, failed.report, tail)
            else:
                # A server closes the connection for whatever is raised.
                raise self.border.interrupt(request_state) from None
        finally:
            close = safe_getattr(body, "close")
            if close is not None:
                close()


class _Response:
    """The beginning of one response."""

    def __init__(self, request_state: RequestState, id_header: str, start: StartResponse) -> None:
        self._exchange = request_state
        self._id_header = id_header
        self._start = start
        self._has_started = False
        self.was_written = False
        self.takes_events = False

    def start(
        self, status: str, headers: list[tuple[str, str]], exc_info: object = None
    ) -> Callable[[bytes], object]:
        """`start_response` for the application inside."""
        code = status.partition(" ")[0]
        self.takes_events = ends_with_event(int(code) if code.isdecimal() else 0, headers)
        if all(name.lower() != self._id_header.lower() for name, _ in headers):
            headers = [*headers, (self._id_header, self._exchange.request_id)]
        self._has_started = True
        write = self._start(status, headers) if exc_info is None else self._start(status, headers, exc_info)

        def written(data: bytes) -> object:
            self.was_written = True
            return write(data)

        return written

    def replace(self, reply: Reply, error: BaseException | None) -> bytes:
        """Begin with `reply` in place of whatever the application began with before it raised `error`; the body to send."""
        status = f"{reply.status} {responses.get(reply.status, 'Unknown')}"
        if self._has_started and error is not None:
            self._start(status, list(reply.headers), (type(error), error, error.__traceback__))
        else:
            self._start(status, list(reply.headers))
        return reply.body


def request_state_of(environ: Environ, border: Border) -> RequestState:
    """The request_state of a request, shared by every layer that sees it."""
    known = environ.get(REQUEST_STATE_KEY)
    if isinstance(known, RequestState):
        return known
    name = f"HTTP_{border.request_id_header.upper().replace('-', '_')}"
    # A server decodes the path as Latin-1, whatever the client encoded.
    path = f"{text_or(environ.get('SCRIPT_NAME'), '')}{text_or(environ.get('PATH_INFO'), '')}"
    path = path.encode("latin-1", "replace").decode("utf-8", "replace")
    request_state = border.open(path, text_or(environ.get(name), ""))
    environ[REQUEST_STATE_KEY] = request_state
    return request_state
