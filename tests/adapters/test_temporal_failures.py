"""Failures that crossed Temporal: the report comes back whole, or what the server kept is read.

Every failure here made the trip through Temporal's own converter to a message and back.
"""

import json
from datetime import timedelta
from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.errors.axes import Certainty
from failwell.errors.faults import ProviderTransient
from failwell.errors.report import ErrorReport


def temporal_errors() -> Any:
    return pytest.importorskip("temporalio.exceptions")


def activity(cause: BaseException) -> BaseException:
    """What a workflow catches when its activity failed with `cause`, after a trip over the wire."""
    converter: Any = pytest.importorskip("temporalio.converter")
    api: Any = pytest.importorskip("temporalio.api.failure.v1")
    failure = api.Failure()
    default = converter.DataConverter.default
    default.failure_converter.to_failure(cause, default.payload_converter, failure)
    outer = api.Failure(message="Activity task failed", cause=failure)
    outer.activity_failure_info.activity_type.name = "greet"
    return default.failure_converter.from_failure(outer, default.payload_converter)


def test_a_report_in_the_details_comes_back_as_it_was_written() -> None:
    written = describe(
        ProviderTransient(kind="provider.rate_limited", provider="openai", model="m", message="slow down")
    )
    sent = temporal_errors().ApplicationError(
        "x", json.loads(written.to_json()), type="X", non_retryable=True
    )

    arrived = describe(activity(sent))

    assert arrived == ErrorReport.from_json(written.to_json())
    assert arrived.id == written.id


def test_details_that_are_no_report_are_passed_over() -> None:
    odd = {"schema": "failwell.error/1", "kind": 7}
    sent = temporal_errors().ApplicationError("x", odd, {"a": 1}, "b", type="ValueError")

    assert describe(activity(sent)).kind == "validation.input_invalid"


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (ValueError("x"), "validation.input_invalid"),
        (AttributeError("x"), "internal.bug"),
        (MemoryError(), "resource.system_memory"),
        (type("RateLimitError", (Exception,), {})("x"), "provider.rate_limited"),
        (type("AuthenticationError", (Exception,), {})("x"), "provider.auth"),
        (type("OddError", (Exception,), {})("x"), "internal.unknown"),
    ],
)
def test_an_activitys_exception_is_known_by_the_name_that_temporal_kept(
    cause: BaseException, kind: str
) -> None:
    assert describe(activity(cause)).kind == kind


def test_a_cause_further_down_speaks_where_the_type_says_nothing() -> None:
    odd: BaseException = type("OddError", (Exception,), {})("x")
    odd.__cause__ = TypeError("y")

    assert describe(activity(odd)).kind == "validation.input_invalid"


def test_what_must_not_be_repeated_is_not_and_a_wait_is_kept() -> None:
    final = temporal_errors().ApplicationError("x", type="RateLimitError", non_retryable=True)
    later = temporal_errors().ApplicationError(
        "x", type="RateLimitError", next_retry_delay=timedelta(seconds=9)
    )

    assert describe(activity(final)).retryable is False
    report = describe(activity(later))
    assert report.retryable is True
    assert report.not_before is not None
    assert report.not_before.after == 9.0


@pytest.mark.parametrize(
    ("word", "kind", "certainty"),
    [
        ("START_TO_CLOSE", "worker.timeout", Certainty.UNKNOWN),
        ("HEARTBEAT", "worker.stalled", Certainty.UNKNOWN),
        ("SCHEDULE_TO_START", "worker.timeout", Certainty.NOT_SENT),
        ("SCHEDULE_TO_CLOSE", "limit.run_timeout", Certainty.UNKNOWN),
    ],
)
def test_each_timeout_says_what_ran(word: str, kind: str, certainty: Certainty) -> None:
    which = temporal_errors().TimeoutType[word]
    error = temporal_errors().TimeoutError("late", type=which, last_heartbeat_details=[])

    report = describe(activity(error))

    assert (report.kind, report.certainty) == (kind, certainty)


def test_cancelling_and_terminating_are_told_apart() -> None:
    assert describe(activity(temporal_errors().CancelledError("x"))).kind == "cancel.run"
    assert describe(activity(temporal_errors().TerminatedError("x"))).kind == "subworkflow.terminated"


def test_a_service_that_is_not_there_was_sent_nothing() -> None:
    client: Any = pytest.importorskip("temporalio.client")
    service: Any = pytest.importorskip("temporalio.service")
    error = service.RPCError("tcp connect error", service.RPCStatusCode.UNAVAILABLE, b"")
    missing = service.RPCError("workflow not found", service.RPCStatusCode.NOT_FOUND, b"")

    report = describe(error)

    assert client.RPCError is service.RPCError
    assert (report.kind, report.certainty, report.provider) == (
        "provider.connection", Certainty.NOT_SENT, "temporal",
    )  # fmt: skip
    assert describe(missing).kind == "provider.bad_request"
