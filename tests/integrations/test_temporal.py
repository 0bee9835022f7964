"""What Temporal is told, with its own objects and its own converter."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

import failwell
from failwell.decision.backoff import Backoff
from failwell.decision.policy import Schedule
from failwell.testing.builders import a_fault
from tests.runtime.acting import told

pytest.importorskip("temporalio", reason="temporalio is in requirements/sdks/newest.txt")

from temporalio.api.common.v1 import RetryPolicy as Sent
from temporalio.api.failure.v1 import Failure
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError

from examples.bridges.with_temporal import main
from failwell.integrations.temporal import retry_policy, to_application_error


def over_the_wire(error: BaseException) -> Any:
    """`error` as it arrives in the workflow, through Temporal's own encoding."""

    async def sent() -> BaseException:
        failure = Failure()
        await DataConverter.default.encode_failure(error, failure)
        return await DataConverter.default.decode_failure(Failure.FromString(failure.SerializeToString()))

    return asyncio.run(sent())


def test_the_example_shows_what_temporal_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    main()

    assert capsys.readouterr().out.splitlines() == [
        "type: provider.overloaded",
        "may be repeated: True",
        "next attempt after: 0:00:08",
        "the report in the workflow: provider.overloaded of acme",
    ]


def test_the_default_policy_has_our_numbers_and_temporal_accepts_it() -> None:
    policy = retry_policy()
    sent = Sent()
    policy.apply_to_proto(sent)

    assert (sent.initial_interval.ToSeconds(), sent.maximum_interval.ToSeconds()) == (1, 300)
    assert (sent.backoff_coefficient, sent.maximum_attempts) == (2.0, 3)


@pytest.mark.parametrize(
    ("schedule", "first", "coefficient", "attempts"),
    [
        ("rate_limit", 5.0, 2.0, 6),
        ("none", 0.0, 1.0, 1),
        (Schedule(max_attempts=4, backoff=Backoff(curve="fixed", first=9.0, longest=1.0)), 9.0, 1.0, 4),
    ],
    ids=["by name", "once", "of one's own"],
)
def test_any_schedule_that_temporal_can_follow_becomes_a_policy(
    schedule: Schedule | str, first: float, coefficient: float, attempts: int
) -> None:
    policy = retry_policy(schedule)
    policy.apply_to_proto(Sent())

    assert policy.initial_interval == timedelta(seconds=first)
    assert (policy.backoff_coefficient, policy.maximum_attempts) == (coefficient, attempts)


@pytest.mark.parametrize(
    ("schedule", "said"), [("store", "no linear back-off"), ("stoer", "use one of evict")]
)
def test_a_schedule_that_temporal_cannot_follow_is_refused(schedule: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        retry_policy(schedule)


def test_the_report_arrives_whole_on_the_other_side() -> None:
    fault = a_fault(provider="acme", not_before=told(90), details={"window": "minute"})
    report = failwell.describe(fault)

    arrived = over_the_wire(to_application_error(fault))

    assert isinstance(arrived, ApplicationError)
    assert (arrived.type, arrived.non_retryable) == ("provider.rate_limited", False)
    assert arrived.next_retry_delay == timedelta(seconds=90)
    received = failwell.describe(arrived)
    assert (received.kind, received.provider, received.details) == (
        report.kind,
        report.provider,
        report.details,
    )
    assert received.retryable


@pytest.mark.parametrize(
    "failure",
    [a_fault(kind="provider.auth"), a_fault(kind="provider.outcome_unknown"), ValueError("a secret value")],
    ids=["wrong key", "unknown outcome", "somebody else's"],
)
def test_what_must_not_be_repeated_is_final(failure: Exception) -> None:
    error = to_application_error(failure)

    assert error.non_retryable
    assert error.next_retry_delay is None
    assert "a secret value" not in str(error)


def test_an_activity_declared_idempotent_is_repeated_after_a_lost_reply() -> None:
    error = to_application_error(TimeoutError("the read operation timed out"), idempotent=True)

    assert not error.non_retryable


def test_an_error_that_is_already_temporals_is_left_as_it_is() -> None:
    decided = ApplicationError("the author has decided", type="Mine", non_retryable=True)

    assert to_application_error(decided) is decided
