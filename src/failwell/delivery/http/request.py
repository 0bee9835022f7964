"""The border of an HTTP service: what a failure inside becomes outside, whatever the framework.

The operator gets the report as it was classified. The caller gets a problem document that never blames the
caller for a call that this service made: such a failure is answered with 502, 503 or 504 and a neutral sentence.
ASGI, WSGI, Flask and Django differ only in how they send the answer.
"""

import logging
import re
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import iscoroutinefunction
from typing import Any, Literal
from urllib.parse import quote
from uuid import uuid4

from failwell.adapters.describe import attach_report, describe
from failwell.delivery.http.caller_report import (
    behind,
    for_caller,
    refusal_in,
    refused,
    report_for_caller,
)
from failwell.delivery.http.problem_details import (
    KINDS_URI,
    MEDIA_TYPE,
    Disclosure,
    problem,
    problem_json,
    retry_after_header,
)
from failwell.delivery.logging import level_of, log_report
from failwell.errors.fault import Fault
from failwell.errors.report import ErrorReport

OnReport = Callable[[ErrorReport], object]
Upstream = Literal["neutral", "transparent"]
"""How a failure of a call that the service made is answered: with a neutral sentence, or as what it is."""

REQUEST_ID_HEADER = "x-request-id"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
_TYPE_BASE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!-~]+")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LONGEST_INSTANCE = 500
_SERVER_LOGS = (
    "uvicorn.error",
    "hypercorn.error",
    "gunicorn.error",
    "daphne.server",
    "django.request",
    "werkzeug",
)
_CUT_SHORT = "the response was cut short: "
_EVENT_STREAM = "text/event-stream"

_log = logging.getLogger("failwell.http")


class ResponseInterrupted(Fault):
    """A response was cut short after it had begun, and the server has to close the connection.

    Its failure is reported already. It carries that report, and no text of the exception behind it.
    """


@dataclass(frozen=True, slots=True)
class Reply:
    """A problem document as a server sends it."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(slots=True)
class RequestState:
    """One request: its id, and what is known of its failure in every layer that sees it."""

    request_id: str
    instance: str
    report: ErrorReport | None = None
    """What was reported last."""
    failure: BaseException | None = None
    """The exception behind it. Each is reported once, in however many layers it is seen."""
    status: int | None = None
    """The status of a refusal, which a route chose."""
    is_interrupted: bool = False
    """Whether the response must not be ended as if it were whole."""
    client_left: bool = False
    send_error: OSError | None = None
    """What the server raised because nobody reads the response any more."""


@dataclass(slots=True)
class Failed:
    """How a block of `Border.guard` ended: what it raised, if that is a failure, and the report of it."""

    error: Exception | None = None
    report: ErrorReport | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Border:
    """The settings of one service, and everything that follows from them.

    Args:
        disclosure: `verbose` also shows callers which provider was called and what it answered.
        on_report: Called with every report; without it, reports go to the log `failwell.http`.
        request_id_header: Where a caller's id is read from and where it is echoed.
        type_base: The beginning of a problem's `type`; the kind follows it.
        upstream: `transparent` answers a failed call of the service with its own kind and status, for a
            gateway whose callers bring their own account.
    """

    disclosure: Disclosure = "strict"
    on_report: OnReport | None = None
    request_id_header: str = REQUEST_ID_HEADER
    type_base: str = KINDS_URI
    upstream: Upstream = "neutral"

    def __post_init__(self) -> None:
        if not _TYPE_BASE.fullmatch(self.type_base):
            raise ValueError(
                f"`type_base` is {self.type_base!r}, which is not the beginning of a URI such as {KINDS_URI!r}"
            )
        if not _HEADER_NAME.fullmatch(self.request_id_header):
            raise ValueError(
                f"`request_id_header` is {self.request_id_header!r}, which is not the name of a header"
            )
        if self.on_report is not None and (
            not callable(self.on_report) or iscoroutinefunction(self.on_report)
        ):
            raise ValueError(
                "`on_report` must be a function that is not async: it is called while the answer waits"
            )
        for name, value, valid in (
            ("disclosure", self.disclosure, ("strict", "verbose")),
            ("upstream", self.upstream, ("neutral", "transparent")),
        ):
            if value not in valid:
                raise ValueError(f"`{name}` is {value!r}; use {' or '.join(map(repr, valid))}")

    def open(self, path: str, supplied_id: str = "") -> RequestState:
        """A new request_state. A caller's id is taken over if it is well-formed."""
        # It is written into headers and logs, so anything but a plain id is replaced.
        request_id = supplied_id if _REQUEST_ID.fullmatch(supplied_id) else uuid4().hex
        return RequestState(request_id, instance_of(path))

    def report(self, request_state: RequestState, error: BaseException) -> ErrorReport:
        """The report of what was raised, delivered once however many layers ask."""
        failure = behind(error)
        known = request_state.report
        # After an interruption, layers in between raise what they like; it all follows from the first failure.
        follows = (
            request_state.is_interrupted or failure is request_state.failure or _is_interruption(failure)
        )
        if known is not None and follows:
            return known
        request_state.failure = failure
        refusal = refusal_in(failure)
        if refusal is not None:
            return self.refuse(request_state, *refusal, error=failure)
        request_state.status = None
        return self.deliver(request_state, report_for_caller(failure))

    @contextmanager
    def guard(
        self, request_state: RequestState, *, ignores: Callable[[Exception], bool] = lambda _error: False
    ) -> Generator[Failed]:
        """A block of the application's code. What it raises ends here, and is reported unless `ignores` calls it no failure."""
        failed = Failed()
        try:
            yield failed
        except Exception as error:  # noqa: BLE001  (the edge: what is not answered here ends as a server's bare 500)
            if not ignores(error):
                failed.error, failed.report = error, self.report(request_state, error)

    def refuse(
        self,
        request_state: RequestState,
        status: int,
        detail: object = None,
        error: BaseException | None = None,
    ) -> ErrorReport:
        """The report of an answer whose status the application or its framework chose, delivered.

        A 5xx is a failure of the service, so its report has the stack and the causes of `error`.
        """
        request_state.status = status
        report = refused(status, detail, is_open=self.disclosure == "verbose")
        if status >= 500 and error is not None:
            behind_it = describe(error)
            report = replace(
                report,
                error_type=behind_it.error_type,
                internal=behind_it.internal,
                causes=behind_it.causes,
            )
        return self.deliver(request_state, report)

    def deliver(self, request_state: RequestState, report: ErrorReport) -> ErrorReport:
        """Hand `report` to the observer, or write it to the log."""
        request_state.report = report
        if self.on_report is None:
            self._log(request_state, report)
            return report
        try:
            self.on_report(report)
        except Exception as error:  # noqa: BLE001  (an observer's mistake must not cost the caller the answer)
            self._log(request_state, report)
            self._log(request_state, describe(error))
        return report

    def _log(self, request_state: RequestState, report: ErrorReport) -> None:
        # A provider's 400 is bad input, but not the caller's: the service made that call.
        ours = self.upstream == "neutral" and for_caller(report)[1] is not None
        request = {"request_id": request_state.request_id, "path": request_state.instance}
        is_raised = ours and level_of(report) < logging.ERROR
        log_report(_log, report, level=logging.ERROR if is_raised else None, extra=request)

    def reply(
        self,
        request_state: RequestState,
        report: ErrorReport,
        *,
        headers: Iterable[tuple[str, str]] = (),
        extra: Mapping[str, Any] | None = None,
    ) -> Reply:
        """The problem document that answers `report`.

        Args:
            request_state: The request.
            report: What was reported.
            headers: Headers of the application's own answer that are kept.
            extra: Members that are added to the document.
        """
        document = self.document(request_state, report) | dict(extra or {})
        body = problem_json(document)
        ours = {
            "content-type": MEDIA_TYPE,
            "cache-control": "no-store",
            self.request_id_header: request_state.request_id,
            "content-length": str(len(body)),
        }
        wait = retry_after_header(report)
        if wait is not None and document["retryable"]:
            ours["retry-after"] = wait
        names = {name.lower() for name in ours} - {"retry-after"}
        kept = [(name, value) for name, value in headers if name.lower() not in names]
        if any(name.lower() == "retry-after" for name, _ in kept):
            ours.pop("retry-after", None)
        return Reply(document["status"], (*kept, *ours.items()), body)

    def document(self, request_state: RequestState, report: ErrorReport) -> dict[str, Any]:
        """What the caller may know of `report`, as a problem document."""
        shown, status = (report, None) if self.upstream == "transparent" else for_caller(report)
        return problem(
            shown,
            instance=request_state.instance,
            request_id=request_state.request_id,
            disclosure=self.disclosure,
            status=request_state.status if status is None else status,
            type_base=self.type_base,
        )

    def last_event(self, request_state: RequestState, report: ErrorReport, before: bytes) -> bytes:
        """The `error` event that ends an event stream, after what was sent `before`."""
        gap = b"" if not before or before.endswith((b"\n\n", b"\r\n\r\n", b"\r\r")) else b"\n\n"
        return gap + b"event: error\ndata: " + problem_json(self.document(request_state, report)) + b"\n\n"

    def interrupt(self, request_state: RequestState) -> ResponseInterrupted:
        """The exception that makes a server close the connection; its log does not repeat the report."""
        request_state.is_interrupted = True
        report = request_state.report
        assert report is not None
        _quieten_servers()
        fault = ResponseInterrupted(message=f"{_CUT_SHORT}{report.kind} [{report.id}]")
        fault.set_own_kind(report.kind)
        attach_report(fault, report)
        return fault


def instance_of(path: str) -> str:
    """A request's path as a URI reference; never its query, where callers put keys."""
    return quote(path or "/", safe="/:@!$&'()*+,;=~-._")[:_LONGEST_INSTANCE]


def ends_with_event(status: int, headers: Iterable[tuple[str, str]]) -> bool:
    """Whether a response that has begun is an event stream to which one more event can be written."""
    found = {name.lower(): value for name, value in headers}
    media = found.get("content-type", "").partition(";")[0].strip().lower()
    plain = found.get("content-encoding", "identity").strip().lower() in ("", "identity")
    return 200 <= status < 300 and media == _EVENT_STREAM and plain and "content-length" not in found


def _is_interruption(error: BaseException) -> bool:
    # `isinstance` asks the object, which may lie, or raise.
    return issubclass(type(error), ResponseInterrupted)


class _NotRepeated(logging.Filter):
    """Drops a server's record about a failure that the border has reported."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            return not _is_interruption(behind(error))
        # Werkzeug puts the printed exception into its message.
        return not (
            isinstance(record.msg, str) and f"{ResponseInterrupted.__name__}: {_CUT_SHORT}" in record.msg
        )


_not_repeated = _NotRepeated()


def _quieten_servers() -> None:
    for name in _SERVER_LOGS:
        logging.getLogger(name).addFilter(_not_repeated)
