"""Problem documents for Starlette and FastAPI: one call, and every failure answers alike.

Routes may raise faults, anything else, or the framework's own `HTTPException`; a request that
fails validation names its fields and never repeats their values.

Example:
    >>> from starlette.applications import Starlette
    >>> from failwell.integrations.starlette import install
    >>> install(Starlette())
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from http.client import responses
from typing import TYPE_CHECKING, Any, cast

from failwell._extras import need
from failwell.delivery.middleware import (
    REQUEST_ID_HEADER,
    FailwellMiddleware,
    OnReport,
    answer_headers,
    deliver,
    instance_of,
    report_for_caller,
    request_id_of,
)
from failwell.delivery.plain_text import bounded_str
from failwell.delivery.problem_details import Disclosure, problem, problem_json
from failwell.fault.axes import ActionKind, Blame, Category, Certainty
from failwell.fault.base import Fault
from failwell.fault.classes import Validation
from failwell.fault.facts import UserAction
from failwell.report.describe import describe
from failwell.report.record import ErrorReport
from failwell.report.redact import redact_text

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["HTTPRefusal", "install"]

_BY_STATUS = {
    401: ("unauthorized", Category.DENIED, ActionKind.CHECK_CREDENTIALS, "Sign in, then repeat it."),
    403: ("forbidden", Category.DENIED, ActionKind.REQUEST_ACCESS, "Ask for access."),
    404: ("not_found", Category.USER_INPUT, ActionKind.CHANGE_INPUT, "Check the address."),
    405: ("method_not_allowed", Category.USER_INPUT, ActionKind.CHANGE_INPUT, "Use another method."),
    429: ("too_many_requests", Category.TRANSIENT, ActionKind.WAIT_AND_RETRY, "Wait, then repeat it."),
    503: ("unavailable", Category.TRANSIENT, ActionKind.WAIT_AND_RETRY, "Wait, then repeat it."),
}
_REJECTED = ("rejected", Category.USER_INPUT, ActionKind.CHANGE_INPUT, "Correct the request.")
_SUMMARY = ("The request was not accepted.", "The request could not be served.")
_FAILED = ("failed", Category.UNKNOWN, ActionKind.CONTACT_SUPPORT, "Report it with its id.")


class HTTPRefusal(Fault):
    """A route answered with a status of its own choice."""


def install(
    app: "Starlette",
    *,
    disclosure: Disclosure = "strict",
    on_report: OnReport | None = None,
    request_id_header: str = REQUEST_ID_HEADER,
) -> None:
    """Let `app` answer every failure with a problem document. Call it before the app starts.

    Raises:
        MissingExtra: `starlette` is not installed.
    """
    need("starlette.exceptions", "http")
    from starlette.exceptions import HTTPException
    from starlette.responses import Response

    def answer(
        request: "Request",
        report: ErrorReport,
        status: int | None = None,
        more: Mapping[str, str] | None = None,
    ) -> "Response":
        deliver(on_report, report)
        document = problem(
            report,
            instance=instance_of(request.scope),
            request_id=request_id_of(request.scope, request_id_header),
            disclosure=disclosure,
            status=status,
        )
        reply = Response(problem_json(document), document["status"], more)
        for name, value in answer_headers(report):
            reply.headers[name.decode()] = value.decode()
        reply.headers[request_id_header] = document["request_id"]
        return reply

    async def any_failure(request: "Request", error: Exception) -> "Response":
        return answer(request, report_for_caller(error))

    async def refusal(request: "Request", error: Exception) -> "Response":
        assert isinstance(error, HTTPException)
        if error.status_code < 400:
            return Response(status_code=error.status_code, headers=error.headers)
        report = _refusal(error.status_code, error.detail, open_minded=disclosure == "verbose")
        return answer(request, report, error.status_code, error.headers)

    async def invalid(request: "Request", error: Exception) -> "Response":
        fields = list(_fields(cast("Any", error).errors()))
        return answer(request, describe(Validation(kind="validation.input_invalid", fields_invalid=fields)))

    # The middleware answers without raising again; the framework's own catch-all does, and then the
    # server prints the traceback. That one is left for what lies outside of the middleware.
    app.add_middleware(
        FailwellMiddleware,
        disclosure=disclosure,
        on_report=on_report,
        request_id_header=request_id_header,
    )
    app.add_exception_handler(Exception, any_failure)
    app.add_exception_handler(Fault, any_failure)
    app.add_exception_handler(HTTPException, refusal)
    if any(cls.__module__.partition(".")[0] == "fastapi" for cls in type(app).__mro__):
        from fastapi.exceptions import RequestValidationError

        app.add_exception_handler(RequestValidationError, invalid)


def _refusal(status: int, detail: object, *, open_minded: bool) -> ErrorReport:
    name, category, action, advice = _BY_STATUS.get(status, _REJECTED if status < 500 else _FAILED)
    # A route writes the detail of a 4xx for its caller. That of a 5xx is too often `str(exc)`.
    worded = isinstance(detail, str) and detail not in ("", responses.get(status))
    is_shown = worded and (status < 500 or open_minded)
    fault = HTTPRefusal(
        kind=f"http.{name}",
        message=str(detail) if is_shown else _SUMMARY[status >= 500],
        certainty=Certainty.REJECTED,
        blame=Blame.REQUEST if status < 500 else Blame.OURSELVES,
        user_action=UserAction(action, advice),
        details={"status": status},
    )
    # These kinds are the framework's and not in the registry, so what follows from them is set here.
    return replace(
        describe(fault),
        category=category,
        retryable=category.retryable,
        title=name.replace("_", " ").capitalize(),
    )


def _fields(errors: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    # `loc` alone: `input`, `msg` and `ctx` hold what the caller sent.
    for error in errors:
        yield redact_text(".".join(bounded_str(part) for part in error.get("loc", ())), 200)
