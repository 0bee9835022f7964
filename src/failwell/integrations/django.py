"""Problem documents for Django: a middleware for views and streams, and handlers for what Django answers itself.

In the settings, as the first entry, so that it sees every answer:

    MIDDLEWARE = ["failwell.integrations.django.FailwellMiddleware", ...]
    CSRF_FAILURE_VIEW = "failwell.integrations.django.csrf_failure"
    FAILWELL = {"type_base": "https://errors.example.com/"}

In the root URL configuration, for addresses that no view serves and for failures in other middleware:

    from failwell.integrations.django import handler400, handler403, handler404, handler500

`FAILWELL` is optional. It takes `disclosure`, `on_report` (a function or its dotted path), `request_id_header`,
`type_base` and `upstream`, as `failwell.http.FailwellMiddleware` does.

Example:
    >>> from failwell.integrations.django import handler404
    >>> callable(handler404)
    True
"""

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

from failwell.delivery.http.request import Border, Reply, RequestState, ends_with_event
from failwell.errors.foreign_objects import safe_getattr
from failwell.errors.missing_extra import need
from failwell.errors.report import ErrorReport

__all__ = ["FailwellMiddleware", "csrf_failure", "handler400", "handler403", "handler404", "handler500"]

_EXCHANGE = "failwell_exchange"
_HAS_BEEN_LOGGED = "_has_been_logged"
"""Django's mark on a response that it must not log again."""
_OPTIONS = frozenset({"disclosure", "on_report", "request_id_header", "type_base", "upstream"})

Request = Any
Response = Any
"""Django's own classes. It has no type hints."""


class FailwellMiddleware:
    """Django's middleware: answers for views that raised, gives streams their end, and puts a request id on every answer."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[Request], Any]) -> None:
        need("django")
        from importlib import import_module

        sync = cast("Any", import_module("asgiref.sync"))
        self.get_response = get_response
        self.border = _border()
        self._is_async = sync.iscoroutinefunction(get_response)
        if self._is_async:
            sync.markcoroutinefunction(self)

    def __call__(self, request: Request) -> Any:
        if self._is_async:
            return self._call(request)
        return self._finish(request, self.get_response(request))

    async def _call(self, request: Request) -> Response:
        return self._finish(request, await self.get_response(request))

    def process_exception(self, request: Request, exception: Exception) -> Response:
        """The answer to what a view raised. Django calls it."""
        request_state = _request_state_of(request, self.border)
        return _response(self.border.reply(request_state, self.border.report(request_state, exception)))

    def _finish(self, request: Request, response: Response) -> Response:
        request_state = _request_state_of(request, self.border)
        if not response.has_header(self.border.request_id_header):
            response[self.border.request_id_header] = request_state.request_id
        if response.streaming:
            stream = _Stream(self.border, request_state, request, response)
            body = response.streaming_content
            response.streaming_content = stream.read_async(body) if response.is_async else stream.read(body)
        return response


class _Stream:
    """The body of a Django response, which ends in its protocol's way if it fails."""

    def __init__(
        self, border: Border, request_state: RequestState, request: Request, response: Response
    ) -> None:
        self._border = border
        self._exchange = request_state
        self._request = request
        self._takes_events = ends_with_event(response.status_code, response.items())
        self._tail = b""

    def read(self, body: Iterator[bytes]) -> Iterator[bytes]:
        with self._border.guard(self._exchange) as failed:
            for piece in body:
                yield self._seen(piece)
        if failed.report is not None:
            yield self._end(failed.report)

    async def read_async(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        with self._border.guard(self._exchange) as failed:
            async for piece in body:
                yield self._seen(piece)
        if failed.report is not None:
            yield self._end(failed.report)

    def _seen(self, piece: bytes) -> bytes:
        if self._takes_events:
            self._tail = (self._tail + piece)[-4:]
        return piece

    def _end(self, report: ErrorReport) -> bytes:
        if not self._takes_events:
            # A server closes the connection for whatever is raised. Behind ASGI, Django then forgets the file of the request's body.
            self._request.close()
            raise self._border.interrupt(self._exchange) from None
        return self._border.last_event(self._exchange, report, self._tail)


def handler400(request: Request, exception: Exception | None = None) -> Response:
    """The problem document for a request that Django refused."""
    return _handled(request, exception, 400)


def handler403(request: Request, exception: Exception | None = None) -> Response:
    """Django's answer to a request that is not allowed, as a problem document."""
    return _handled(request, exception, 403)


def handler404(request: Request, exception: Exception | None = None) -> Response:
    """Django's answer to an address that nothing serves, as a problem document."""
    return _handled(request, exception, 404)


def handler500(request: Request) -> Response:
    """The problem document for a failure outside of the views."""
    # Django calls this while it handles the exception, and does not hand it over.
    return _handled(request, cast("Exception | None", sys.exc_info()[1]), 500)


def csrf_failure(request: Request, reason: str = "") -> Response:
    """Django's answer to a request without a valid CSRF token, as a problem document; for `CSRF_FAILURE_VIEW`."""
    del reason
    return _handled(request, None, 403)


def _handled(request: Request, error: Exception | None, status: int) -> Response:
    border = _border()
    request_state = _request_state_of(request, border)
    report = border.refuse(request_state, status) if error is None else border.report(request_state, error)
    return _response(border.reply(request_state, report))


def _request_state_of(request: Request, border: Border) -> RequestState:
    known = safe_getattr(request, _EXCHANGE)
    if isinstance(known, RequestState):
        return known
    request_state = border.open(request.path, request.headers.get(border.request_id_header) or "")
    setattr(request, _EXCHANGE, request_state)
    return request_state


def _border() -> Border:
    from importlib import import_module

    settings = cast("Any", import_module("django.conf")).settings
    options: dict[str, Any] = dict(getattr(settings, "FAILWELL", None) or {})
    unknown = sorted(options.keys() - _OPTIONS)
    if unknown:
        wrong = cast("Any", import_module("django.core.exceptions")).ImproperlyConfigured
        raise wrong(f"FAILWELL has no option {unknown[0]!r}; use one of {', '.join(sorted(_OPTIONS))}")
    if isinstance(options.get("on_report"), str):
        options["on_report"] = cast("Any", import_module("django.utils.module_loading")).import_string(
            options["on_report"]
        )
    return Border(**options)


def _response(reply: Reply) -> Response:
    from importlib import import_module

    response = cast("Any", import_module("django.http")).HttpResponse(reply.body, status=reply.status)
    for name, value in reply.headers:
        response[name] = value
    # It is in the log already, under its own kind.
    setattr(response, _HAS_BEEN_LOGGED, True)
    return response
