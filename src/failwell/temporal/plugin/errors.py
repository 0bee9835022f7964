"""Reports in Temporal's failures: how a failure is written into an `ApplicationError`, and read out of one."""

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

from failwell.adapters.describe import attach_report, describe
from failwell.adapters.replies import take
from failwell.adapters.traceback_frames import innermost
from failwell.adapters.vendors.temporalio import MODEL_ERROR, report_in
from failwell.errors.axes import Category, Domain
from failwell.errors.causes import links
from failwell.errors.fault import Fault, is_fault
from failwell.errors.foreign_objects import safe_call, safe_getattr
from failwell.errors.missing_extra import need
from failwell.errors.redact import cut, masked, redact_value, refresh
from failwell.errors.report import ErrorReport
from failwell.errors.safe_str import words_of
from failwell.errors.wire import read_masked

HEADER = "failwell"
"""The header of an activity: the attempts before a park, what its policy says, its idempotency key."""
_BENIGN = (Category.CANCELLED, Category.DENIED)
_OPENAI_AGENTS = ("temporalio.openai_agents", "temporalio.contrib.openai_agents")


def to_application_error(
    error: BaseException, *, idempotent: bool | None = None, at: datetime | None = None
) -> Any:
    """Temporal's `ApplicationError` for `error`: its kind as the type, its report in the details.

    It is non-retryable unless the failure is transient, and carries the delay that the provider requested. An application
    error that somebody raised from another exception is described by that exception; one that holds a
    report, or was raised without a cause, is returned as it is. Do not pass a cancel: let it through, since
    Temporal has its own way of reporting one.

    Args:
        error: What was raised.
        idempotent: Whether a repeat is harmless although the outcome is unknown.
        at: When it happened; now, by default.

    Raises:
        MissingExtra: temporalio is not installed.
    """
    if is_decided(error):
        return error
    with outside_sandbox():
        report = describe(subject_of(error), idempotent=idempotent, at=at)
    delay = report.not_before
    return application_error(
        report,
        error,
        # Nobody frees a resource between the attempts that the server makes.
        non_retryable=not report.retryable or report.category is Category.RESOURCE,
        delay=None if delay is None else delay.after,
    )


def recover(error: BaseException, *, at: datetime | None = None) -> ErrorReport:
    """The report of a failure that crossed Temporal. It never raises.

    A report in the details of any failure in the chain is returned as it was written, also one of a newer or an older
    version. For a failure without one, the kind is what its type says, and the message is the deepest in the chain that is not
    blank, masked and cut. Only the views of operators show that message.

    Args:
        error: What `handle.result()` or `execute_activity` raised: `WorkflowFailureError`, `ActivityError`, or anything else.
        at: When it happened, for a failure without a report; now, by default.
    """
    report = None if is_fault(error) else safe_call(recorded_in, None, error)
    if report is not None:
        return report
    with outside_sandbox():
        report = describe(error, at=at)
    if is_fault(error) or safe_call(_holds_application_error, None, error) is not True:
        return report
    text = safe_call(_deepest_message, "", error)
    if report.domain is Domain.INPUT:
        # The name of a plain Python exception in another process does not put the blame on this caller.
        report = describe(Fault(kind="subworkflow.failed"), at=at)
    if not text:
        return report
    return replace(report, message=text, caller_facing=False, error_type=type(error).__name__)


def outside_sandbox() -> AbstractContextManager[None]:
    """Lets code of a workflow describe an exception: the first of its library loads adapters, which the sandbox forbids."""
    workflow = sys.modules.get("temporalio.workflow")
    return nullcontext() if workflow is None else workflow.unsafe.sandbox_unrestricted()


def is_decided(error: BaseException) -> bool:
    """Whether `error` is an application error that says all: it holds a report, or its author gave it no cause."""
    application = need("temporalio.exceptions").ApplicationError
    if not isinstance(error, application):
        return False
    return error.__cause__ is None or holds_report(error)


def holds_report(error: BaseException) -> bool:
    """Whether a report is among the details of `error`."""
    return report_in(safe_getattr(error, "details")) is not None


def subject_of(error: BaseException) -> BaseException:
    """The exception to describe: below an `ApplicationError` that stands for another one, that other one."""
    application = need("temporalio.exceptions").ApplicationError
    for _ in range(8):
        if isinstance(error, application):
            if is_decided(error) or error.__cause__ is None:
                return error
            error = error.__cause__
            continue
        hidden = error.__context__
        # Temporal's converter for OpenAI raises it while it reads the headers of a reply, such as a date.
        if type(error) is ValueError and hidden is not None and innermost(error).startswith(_OPENAI_AGENTS):
            error = hidden
            continue
        break
    return error


def application_error(
    report: ErrorReport,
    error: BaseException | None,
    *,
    non_retryable: bool = False,
    delay: float | None = None,
    parked: float | None = None,
) -> Any:
    """The `ApplicationError` that carries `report` in the place of `error`.

    A non-retryable one with a delay is `parked`: the workflow waits and calls the activity again. Temporal itself makes no
    use of such a delay.
    """
    exceptions = need("temporalio.exceptions")
    foreign = isinstance(error, exceptions.ApplicationError)
    final = non_retryable or (foreign and safe_getattr(error, "non_retryable") is True)
    wait = None if parked is None else timedelta(seconds=parked)
    if parked is None and not final:
        wait = safe_getattr(error, "next_retry_delay") if delay is None and foreign else None
        wait = wait if delay is None else timedelta(seconds=delay)
    details: Sequence[Any] = _details(error) if foreign else ()
    benign = exceptions.ApplicationErrorCategory.BENIGN
    made = exceptions.ApplicationError(
        report.message,
        *details,
        report.to_dict(),
        type=report.kind,
        non_retryable=final or parked is not None,
        next_retry_delay=wait,
        category=benign if report.category in _BENIGN else exceptions.ApplicationErrorCategory.UNSPECIFIED,
    )
    attach_report(made, report)
    if report.internal is not None and report.internal.traceback:
        # For the worker's log: Temporal logs what is raised, and does not send its notes.
        made.add_note(report.internal.traceback)
    return made


def recorded_in(error: BaseException) -> ErrorReport | None:
    """The report in the details of `error` or of an exception below it; the outermost one."""
    for link in (error, *(link.error for link in links(error)[0])):
        written = report_in(safe_getattr(link, "details"))
        if written is not None:
            report = safe_call(read_masked, None, written)
            if isinstance(report, ErrorReport):
                return report
    return None


def _details(error: BaseException | None) -> Sequence[Any]:
    """The details that others put there, in their places: pydantic-ai builds its exception from the first one.

    It holds the provider's reply, so its texts are masked and cut.
    """
    details = safe_getattr(error, "details")
    if not isinstance(details, list | tuple):
        return ()
    return [
        redact_value(detail) if take(detail, MODEL_ERROR) is not None else detail
        for detail in cast("Sequence[Any]", details)
        if report_in([detail]) is None
    ]


def _deepest_message(error: BaseException) -> str:
    """The last message of the chain that is not blank, masked and cut."""
    refresh()
    chain = [error, *(link.error for link in links(error)[0])]
    for link in reversed(chain):
        text = safe_getattr(link, "message")
        text = text if isinstance(text, str) else safe_call(words_of, "", link)
        # Temporal writes the second in the place of an empty message.
        if text.strip() not in ("", "Application error"):
            return cut(masked(text.strip()))
    return ""


def _holds_application_error(error: BaseException) -> bool:
    """Whether code of somebody else has failed, as opposed to Temporal itself."""
    chain = (error, *(link.error for link in links(error)[0]))
    return any(
        (cls.__module__.partition(".")[0], cls.__name__) == ("temporalio", "ApplicationError")
        for link in chain
        for cls in type(link).__mro__
    )
