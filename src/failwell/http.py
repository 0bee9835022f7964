"""Failures over HTTP: problem documents (RFC 9457), the ASGI and WSGI middleware, and the way back to a report.

Example:
    >>> from failwell import describe
    >>> from failwell.errors import Validation
    >>> from failwell.http import from_problem, problem
    >>> fault = Validation(kind="validation.input_invalid", fields_invalid=["email"])
    >>> document = problem(describe(fault), instance="/users")
    >>> document["status"], document["fields_invalid"]
    (422, ['email'])
    >>> from_problem(document).kind
    'validation.input_invalid'
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    from failwell.delivery.http.asgi import FailwellMiddleware as FailwellMiddleware
    from failwell.delivery.http.caller_report import report_for_caller as report_for_caller
    from failwell.delivery.http.problem_details import MEDIA_TYPE as MEDIA_TYPE
    from failwell.delivery.http.problem_details import Disclosure as Disclosure
    from failwell.delivery.http.problem_details import from_problem as from_problem
    from failwell.delivery.http.problem_details import problem as problem
    from failwell.delivery.http.problem_details import problem_json as problem_json
    from failwell.delivery.http.problem_details import retry_after_header as retry_after_header
    from failwell.delivery.http.request import OnReport as OnReport
    from failwell.delivery.http.request import ResponseInterrupted as ResponseInterrupted
    from failwell.delivery.http.request import Upstream as Upstream
    from failwell.delivery.http.wsgi import FailwellWSGIMiddleware as FailwellWSGIMiddleware
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "failwell.delivery.http.asgi": "FailwellMiddleware",
            "failwell.delivery.http.caller_report": "report_for_caller",
            "failwell.delivery.http.problem_details": (
                "Disclosure MEDIA_TYPE from_problem problem problem_json retry_after_header"
            ),
            "failwell.delivery.http.request": "OnReport ResponseInterrupted Upstream",
            "failwell.delivery.http.wsgi": "FailwellWSGIMiddleware",
        },
    )
