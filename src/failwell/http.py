"""Failures over HTTP: problem documents (RFC 9457), the ASGI and WSGI middleware, and the way back to a report.

Example:
    >>> from failwell import describe
    >>> from failwell.faults import Validation
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
    from failwell.delivery.border import OnReport as OnReport
    from failwell.delivery.border import ResponseInterrupted as ResponseInterrupted
    from failwell.delivery.border import Upstream as Upstream
    from failwell.delivery.caller_report import report_for_caller as report_for_caller
    from failwell.delivery.middleware import FailwellMiddleware as FailwellMiddleware
    from failwell.delivery.problem_details import MEDIA_TYPE as MEDIA_TYPE
    from failwell.delivery.problem_details import Disclosure as Disclosure
    from failwell.delivery.problem_details import from_problem as from_problem
    from failwell.delivery.problem_details import problem as problem
    from failwell.delivery.problem_details import problem_json as problem_json
    from failwell.delivery.problem_details import retry_after_header as retry_after_header
    from failwell.delivery.wsgi import FailwellWSGIMiddleware as FailwellWSGIMiddleware
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "Disclosure": "failwell.delivery.problem_details",
            "FailwellMiddleware": "failwell.delivery.middleware",
            "FailwellWSGIMiddleware": "failwell.delivery.wsgi",
            "MEDIA_TYPE": "failwell.delivery.problem_details",
            "OnReport": "failwell.delivery.border",
            "ResponseInterrupted": "failwell.delivery.border",
            "Upstream": "failwell.delivery.border",
            "from_problem": "failwell.delivery.problem_details",
            "problem": "failwell.delivery.problem_details",
            "problem_json": "failwell.delivery.problem_details",
            "report_for_caller": "failwell.delivery.caller_report",
            "retry_after_header": "failwell.delivery.problem_details",
        },
    )
