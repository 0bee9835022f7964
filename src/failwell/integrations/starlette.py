"""Problem documents for Starlette and FastAPI: one call, and every failure answers alike.

Routes may raise faults, anything else, or the framework's own `HTTPException`; a request that
fails validation names its fields and never repeats their values.

Example:
    >>> from starlette.applications import Starlette
    >>> from failwell.integrations.starlette import install
    >>> install(Starlette())
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from failwell.adapters.describe import describe
from failwell.delivery.http.asgi import App, FailwellMiddleware, request_state_of
from failwell.delivery.http.caller_report import HTTPRefusal
from failwell.delivery.http.problem_details import KINDS_URI, Disclosure
from failwell.delivery.http.request import REQUEST_ID_HEADER, Border, OnReport, Reply, RequestState, Upstream
from failwell.delivery.plain_text import bounded_str
from failwell.errors.faults import Validation
from failwell.errors.missing_extra import need
from failwell.errors.redact import redact_text

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["HTTPRefusal", "install"]

_MOST_REASONS = 50


def install(
    app: "Starlette",
    *,
    disclosure: Disclosure = "strict",
    on_report: OnReport | None = None,
    request_id_header: str = REQUEST_ID_HEADER,
    type_base: str = KINDS_URI,
    upstream: Upstream = "neutral",
) -> None:
    """Let `app` answer every failure with a problem document. Call it before the app starts.

    A failure of a call that the service made (a provider's 400, an empty account) is answered with 502, 503 or 504 and a neutral
    sentence; its kind and its advice go to the log. A FastAPI application also documents the problem in its OpenAPI schema.

    Args:
        app: The application.
        disclosure: `verbose` also shows callers which provider was called and what it answered.
        on_report: Called with every report; without it, reports go to the log `failwell.http`.
        request_id_header: Where a caller's id is read from and where it is echoed.
        type_base: The beginning of a problem's `type`; the kind follows it.
        upstream: `transparent` answers a failed call of the service with its own kind and status, for a
            gateway whose callers bring their own account.

    Raises:
        MissingExtra: `starlette` is not installed.
        RuntimeError: The app has started.
    """
    need("starlette.exceptions", "http")
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware

    border = Border(
        disclosure=disclosure,
        on_report=on_report,
        request_id_header=request_id_header.lower(),
        type_base=type_base,
        upstream=upstream,
    )
    if app.middleware_stack is not None:
        raise RuntimeError("`install` was called after the app has started; call it where the app is made")

    async def any_failure(request: "Request", error: Exception) -> "Response":
        request_state = request_state_of(request.scope, border)
        return _response(border.reply(request_state, border.report(request_state, error)))

    async def refusal(request: "Request", error: Exception) -> "Response":
        from starlette.responses import Response

        assert isinstance(error, HTTPException)
        if error.status_code < 400:
            return Response(status_code=error.status_code, headers=error.headers)
        request_state = request_state_of(request.scope, border)
        report = border.report(request_state, error)
        return _response(border.reply(request_state, report, headers=(error.headers or {}).items()))

    async def invalid(request: "Request", error: Exception) -> "Response":
        return _response(
            _validation(request_state_of(request.scope, border), border, cast("Any", error).errors())
        )

    # Two layers. The innermost sees a failure first, so that its answer passes through every other middleware, as the answers of
    # routes do. The outermost sees what middleware raises, and that a response which was cut off is not ended as if it were whole.
    app.user_middleware.append(Middleware(cast("Any", FailwellMiddleware.around), border=border))
    build = app.build_middleware_stack

    def build_with_border() -> App:
        return FailwellMiddleware.around(build(), border)

    app.build_middleware_stack = cast("Any", build_with_border)
    app.add_exception_handler(Exception, any_failure)
    app.add_exception_handler(HTTPException, refusal)
    if any(cls.__module__.partition(".")[0] == "fastapi" for cls in type(app).__mro__):
        from fastapi.exceptions import RequestValidationError

        app.add_exception_handler(RequestValidationError, invalid)
        _document(app)


def _document(app: Any) -> None:
    """Let the OpenAPI schema of a FastAPI application show problem documents."""
    from failwell.delivery.http.problem_details import with_problems

    make = app.openapi

    def openapi() -> dict[str, Any]:
        return with_problems(make())

    app.openapi = openapi


def _response(reply: Reply) -> "Response":
    from starlette.responses import Response

    response = Response(reply.body, reply.status)
    response.raw_headers = [
        (name.encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers
    ]
    return response


def _validation(request_state: RequestState, border: Border, errors: Iterable[Mapping[str, Any]]) -> Reply:
    """The reply to a request that FastAPI refused: every field with the reason, never with its value."""
    reasons = [_reason(error) for _, error in zip(range(_MOST_REASONS), errors, strict=False)]
    fields = [redact_text(".".join(map(str, reason["loc"])), 200) for reason in reasons]
    report = describe(Validation(kind="validation.input_invalid", fields_invalid=fields))
    border.deliver(request_state, report)
    return border.reply(request_state, report, extra={"errors": reasons})


def _reason(error: Mapping[str, Any]) -> dict[str, Any]:
    # `input` and `ctx` hold what the caller sent. A message is the validator's own, and goes to nobody but the caller.
    return {
        "type": redact_text(bounded_str(error.get("type", "")), 100),
        "loc": [
            part if type(part) is int else redact_text(bounded_str(part), 200)
            for part in error.get("loc", ())
        ],
        "msg": redact_text(bounded_str(error.get("msg", "")), 500),
    }
