"""What a caller of a service may know of a failure inside it.

A failure of a call that the service made is not the caller's mistake and not the caller's account. What the caller did wrong, and
what the application says to its caller in its own words, stays as it is.
"""

from collections.abc import Callable
from dataclasses import replace
from http.client import responses
from typing import Any, cast

from failwell.adapters.describe import describe
from failwell.adapters.traceback_frames import innermost
from failwell.errors.axes import ActionKind, Blame, Category, Certainty
from failwell.errors.causes import below, cause_of, members
from failwell.errors.facts import Evidence, Origin, UserAction
from failwell.errors.fault import Fault
from failwell.errors.faults import OOM_ASSUMED, OOM_CONFIRMED
from failwell.errors.foreign_objects import safe_getattr
from failwell.errors.kind_registry import find_kind, http_status_of
from failwell.errors.report import Cause, ErrorReport, origin_of

_DEEPEST = 16

_BY_STATUS = {
    401: ("unauthorized", Category.DENIED, ActionKind.CHECK_CREDENTIALS, "Sign in, then repeat it."),
    403: ("forbidden", Category.DENIED, ActionKind.REQUEST_ACCESS, "Ask for access."),
    404: ("not_found", Category.USER_INPUT, ActionKind.CHANGE_INPUT, "Check the address."),
    405: ("method_not_allowed", Category.USER_INPUT, ActionKind.CHANGE_INPUT, "Use another method."),
    429: ("too_many_requests", Category.TRANSIENT, ActionKind.WAIT_AND_RETRY, "Wait, then repeat it."),
    503: ("unavailable", Category.TRANSIENT, ActionKind.WAIT_AND_RETRY, "Wait, then repeat it."),
}
_REJECTED = ("rejected", Category.USER_INPUT, ActionKind.CHANGE_INPUT, "Correct the request.")
_FAILED = ("failed", Category.UNKNOWN, ActionKind.CONTACT_SUPPORT, "Report it with its id.")
_SUMMARY = ("The request was not accepted.", "The request could not be served.")

_UPSTREAM = {
    502: ("http.bad_gateway", "Bad gateway", "A service that this one depends on failed."),
    503: ("http.unavailable", "Unavailable", "A service that this one depends on is not available."),
    504: ("http.gateway_timeout", "Gateway timeout", "A service that this one depends on did not answer in time."),
}  # fmt: skip
_DEFECT = ("internal.bug", "Program error", "The program did something it was not written for.")
"""For a library that refused what this program gave it."""
_CALLERS_CONTENT = frozenset({"provider.content_refused", "provider.context_too_long"})
"""What a provider refuses for its content, which is the caller's."""
_LATER = UserAction(ActionKind.WAIT_AND_RETRY, "Try again later.")
_TELL_US = UserAction(ActionKind.CONTACT_SUPPORT, "Report it with its id.")
_CHECK = UserAction(ActionKind.CHECK_OUTCOME, "Check whether it was done before you repeat it.")
_NEUTRAL = {
    Category.RESOURCE: _LATER,
    Category.CONFIGURATION: _TELL_US,
    Category.FATAL: _TELL_US,
    Category.UNKNOWN: _TELL_US,
}
"""Whose advice is for the operator, and what a caller can do."""
_OPERATORS_ADVICE = (OOM_CONFIRMED.detail, OOM_ASSUMED.detail)
_PARKED = "Parked"
"""The fault of a call that waits: its message names the provider's header, which is for the operator."""
_TOO_LONG = UserAction(ActionKind.CHANGE_INPUT, "Shorten the request.")


class HTTPRefusal(Fault):
    """A route answered with a status of its own choice."""


def report_for_caller(error: BaseException) -> ErrorReport:
    """The report of what a route raised.

    It arose in the program or in a call that the program made. Only a fault can say that the request was at fault.
    """
    refusal = refusal_in(error)
    return describe(error) if refusal is None else refused(*refusal)


def for_caller(report: ErrorReport) -> tuple[ErrorReport, int | None]:
    """What the caller may know of `report`, and the status if it is not the kind's own.

    A failed call of this service is not the caller's business: its kind, its advice and whose account is empty stay
    with the operator. Refused content and a text that is too long are the caller's all the same. Advice to free memory or to
    correct a configuration is for the operator, too.
    """
    known = find_kind(report.kind)
    if not is_upstream(report):
        if report.kind.startswith("validation.") and arose_in(report) == "code":
            return _neutral(report, _DEFECT, Category.FATAL, _TELL_US), 500
        advised = known is not None and report.user_action.detail in (known.advice, *_OPERATORS_ADVICE)
        neutral = _NEUTRAL.get(report.category) if advised else None
        return (report if neutral is None else replace(report, user_action=neutral)), None
    if report.kind in _CALLERS_CONTENT:
        too_long = report.kind == "provider.context_too_long"
        return (replace(report, user_action=_TOO_LONG) if too_long else report), None
    status = _upstream_status(report)
    if report.retryable:
        return _neutral(report, _UPSTREAM[status], Category.TRANSIENT, _LATER), status
    if report.category is Category.AMBIGUOUS:
        return _neutral(report, _UPSTREAM[status], Category.AMBIGUOUS, _CHECK), status
    return _neutral(report, _UPSTREAM[status], Category.UNKNOWN, _TELL_US), status


def _neutral(
    report: ErrorReport, words: tuple[str, str, str], category: Category, action: UserAction
) -> ErrorReport:
    """`report` under another kind, in words that name nobody."""
    kind, title, sentence = words
    known = find_kind(report.kind)
    # A fault without a message says what its kind says, and that is for the operator.
    is_worded = (
        report.caller_facing
        and report.error_type != _PARKED
        and (known is None or report.message != known.summary)
    )
    wait = report.not_before if report.retryable else None
    cause = Cause(type=report.error_type, kind=report.kind)
    return replace(
        report,
        kind=kind,
        title=title,
        category=category,
        message=report.message if is_worded else sentence,
        caller_facing=True,
        user_action=action,
        # Which header of the provider's named the delay is not for the caller.
        not_before=None if wait is None else replace(wait, source="declared"),
        fields_invalid=None,
        resource_shortfall=None,
        causes=(cause, *(replace(below, level=below.level + 1) for below in report.causes)),
        evidence=(Evidence(rule=f"border.{arose_in(report)}", basis="origin", saw=report.kind),),
    )


def is_upstream(report: ErrorReport) -> bool:
    """Whether `report` is about a call that this service made, or about a tool that it used."""
    return arose_in(report) in ("call", "tool")


def arose_in(report: ErrorReport) -> Origin:
    """Where the failure arose; for a report of an earlier version as far as its kind says it."""
    return report.origin or origin_of(report.kind, caller_facing=report.caller_facing)


def _upstream_status(report: ErrorReport) -> int:
    own = http_status_of(report.kind, report.category)
    if own in (502, 504):
        return own
    waits = report.retryable or report.category in (Category.CAPACITY, Category.TRANSIENT, Category.RESOURCE)
    return 503 if waits else 502


def behind(error: BaseException) -> BaseException:
    """The failure itself, where a framework or a task group wrapped it on its way."""
    for _ in range(_DEEPEST):
        inner = _wrapped(error)
        if inner is None:
            break
        error = inner
    return error


def _wrapped(error: BaseException) -> BaseException | None:
    held = members(error)
    if held:
        return held[0] if len(held) == 1 else None
    cause = cause_of(error)
    if (
        type(error) is RuntimeError
        and cause is not None
        and innermost(error) == "starlette._exception_handler"
    ):
        # "Caught handled exception, but response already started."
        return cause
    under = below(error)
    if is_client_disconnect(error) and under is not None and issubclass(type(under[0]), OSError):
        # A stream that raised an `OSError` of its own is taken for a client that left.
        return under[0]
    return None


def is_client_disconnect(error: BaseException) -> bool:
    """Whether `error` says that the client of an HTTP request closed the connection."""
    return ("starlette.requests", "ClientDisconnect") in _names(error)


_mro: Any = type.__dict__["__mro__"].__get__
_name: Any = type.__dict__["__name__"].__get__
_dict: Any = type.__dict__["__dict__"].__get__


def _names(error: BaseException) -> list[tuple[object, str]]:
    """Module and name of the exception's classes, whatever a metaclass pretends."""
    modules = [(_dict(cls).get("__module__"), _name(cls)) for cls in _mro(type(error))]
    return [(module, name) for module, name in modules if type(module) is str]


def refusal_in(error: BaseException) -> tuple[int, object] | None:
    """Status and detail of a framework's own exception for an answer, as `HTTPException` is; `None` for any other."""
    for name in _names(error):
        read = _REFUSALS.get(name)
        if read is not None:
            status, detail = read(error)
            return (status, detail) if isinstance(status, int) and status >= 400 else None
    return None


def _worded(error: BaseException) -> object:
    """The text of a refusal of werkzeug's, unless it is the one that its class has."""
    text = safe_getattr(error, "description")
    return None if text == safe_getattr(type(error), "description") else text


def _first_argument(error: BaseException) -> object:
    arguments: tuple[object, ...] = BaseException.__dict__["args"].__get__(error)
    return next(iter(arguments), None)


_REFUSALS: dict[tuple[object, str], Callable[[Any], tuple[object, object]]] = {
    ("starlette.exceptions", "HTTPException"): lambda error: (
        safe_getattr(error, "status_code"),
        safe_getattr(error, "detail"),
    ),
    ("werkzeug.exceptions", "HTTPException"): lambda error: (safe_getattr(error, "code"), _worded(error)),
    ("django.http.response", "Http404"): lambda error: (404, _first_argument(error)),
    ("django.core.exceptions", "PermissionDenied"): lambda error: (403, _first_argument(error)),
    # Django shows the texts of the two above to callers, and of these it does not.
    ("django.core.exceptions", "SuspiciousOperation"): lambda _: (400, None),
    ("django.core.exceptions", "BadRequest"): lambda _: (400, None),
    ("django.http.multipartparser", "MultiPartParserError"): lambda _: (400, None),
}
"""The exceptions by which frameworks answer with a status: module and class → status and detail."""


def refused(status: int, detail: object, *, is_open: bool = False) -> ErrorReport:
    """The report of an answer with `status` that the application chose itself."""
    name, category, action, advice = _BY_STATUS.get(status, _REJECTED if status < 500 else _FAILED)
    # A route writes the detail of a 4xx for its caller. That of a 5xx is too often `str(exc)`.
    worded = isinstance(detail, str) and detail not in ("", responses.get(status))
    is_shown = worded and (status < 500 or is_open)
    fault = HTTPRefusal(
        kind=f"http.{name}",
        message=str.__str__(cast("str", detail)) if is_shown else _SUMMARY[status >= 500],
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
