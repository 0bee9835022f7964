"""Problem documents for Flask: one call, and every failure answers alike, streams included.

Example:
    >>> from flask import Flask
    >>> from failwell.integrations.flask import install
    >>> install(Flask("shop"))
"""

from typing import TYPE_CHECKING, Any, cast

from failwell.delivery.http.caller_report import HTTPRefusal
from failwell.delivery.http.problem_details import KINDS_URI, Disclosure
from failwell.delivery.http.request import REQUEST_ID_HEADER, Border, OnReport, Reply, Upstream
from failwell.delivery.http.wsgi import FailwellWSGIMiddleware, request_state_of
from failwell.errors.missing_extra import need

if TYPE_CHECKING:
    from flask import Flask
    from werkzeug.wrappers import Response

__all__ = ["HTTPRefusal", "install"]


def install(
    app: "Flask",
    *,
    disclosure: Disclosure = "strict",
    on_report: OnReport | None = None,
    request_id_header: str = REQUEST_ID_HEADER,
    type_base: str = KINDS_URI,
    upstream: Upstream = "neutral",
) -> None:
    """Let `app` answer every failure with a problem document. Call it where the app is made.

    Args:
        app: The application.
        disclosure: `verbose` also shows callers which provider was called and what it answered.
        on_report: Called with every report; without it, reports go to the log `failwell.http`.
        request_id_header: Where a caller's id is read from and where it is echoed.
        type_base: The beginning of a problem's `type`; the kind follows it.
        upstream: `transparent` answers a failed call of the service with its own kind and status, for a
            gateway whose callers bring their own account.

    Raises:
        MissingExtra: `flask` is not installed.
    """
    need("flask")
    from flask import request
    from werkzeug.exceptions import HTTPException

    border = Border(
        disclosure=disclosure,
        on_report=on_report,
        request_id_header=request_id_header,
        type_base=type_base,
        upstream=upstream,
    )

    def any_failure(error: Exception) -> "Response":
        request_state = request_state_of(request.environ, border)
        if not issubclass(type(error), HTTPException):
            return _response(border.reply(request_state, border.report(request_state, error)))
        assert isinstance(error, HTTPException)
        own = error.get_response(request.environ)
        if error.response is not None or (error.code or 500) < 400:
            # A redirect, or a whole answer that the application made.
            return own
        kept = [(name, value) for name, value in own.headers if name.lower() != "content-length"]
        return _response(border.reply(request_state, border.report(request_state, error), headers=kept))

    # The handler answers for views; the middleware for streams, and for whatever is outside of the views.
    app.register_error_handler(Exception, any_failure)
    cast("Any", app).wsgi_app = FailwellWSGIMiddleware.around(app.wsgi_app, border)


def _response(reply: Reply) -> "Response":
    from werkzeug.wrappers import Response

    return Response(reply.body, reply.status, list(reply.headers))
