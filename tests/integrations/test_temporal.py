"""What Temporal is told, with its own objects and its own converter."""

import asyncio
from datetime import timedelta
from traceback import format_exception
from typing import Any

import pytest

import failwell
from failwell.adapters.describe import describe
from failwell.calls.backoff import Backoff
from failwell.calls.policy import Schedule
from failwell.errors.axes import Category, Domain
from failwell.errors.kind_registry import KINDS
from failwell.testing.builders import make_fault
from tests.calls.acting import told

pytest.importorskip("temporalio", reason="temporalio is in requirements/sdks/newest.txt")

from temporalio.api.common.v1 import RetryPolicy as Sent
from temporalio.api.failure.v1 import Failure
from temporalio.client import WorkflowFailureError
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from examples.bridges.with_temporal import main
from failwell.temporal.plugin import recover, reliability, retry_policy, to_application_error


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
    fault = make_fault(provider="acme", not_before=told(90), details={"window": "minute"})
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
    [
        make_fault(kind="provider.auth"),
        make_fault(kind="provider.outcome_unknown"),
        ValueError("a secret value"),
    ],
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


@pytest.mark.acceptance("pipelex 54")
def test_only_a_transient_failure_is_repeated_also_under_three_wrappers() -> None:
    for kind in KINDS.values():
        fault: Exception = failwell.Fault(kind=kind.name)
        for wrapper in (
            failwell.Fault(message="a"),
            failwell.Fault(message="b"),
            failwell.Fault(message="c"),
        ):
            plain = to_application_error(fault)
            assert plain.non_retryable is (kind.category is not Category.TRANSIENT), kind.name
            wrapper.__cause__ = fault
            fault = wrapper
        assert to_application_error(fault).non_retryable is plain.non_retryable, kind.name
        benign = plain.category is ApplicationErrorCategory.BENIGN
        assert benign is (kind.category in (Category.CANCELLED, Category.DENIED)), kind.name


def test_an_application_error_is_described_by_its_cause_unless_it_holds_a_report() -> None:
    decided = ApplicationError("the author has decided", type="Mine", non_retryable=True)
    assert to_application_error(decided) is decided
    reported = to_application_error(make_fault())
    reported.__cause__ = ValueError("x")
    assert to_application_error(reported) is reported

    quota = ApplicationError("Retryable OpenAI status code: 429", type="APIStatusError")
    quota.__cause__ = make_fault(kind="provider.quota_exhausted")
    vetoed = ApplicationError("x", type="APIStatusError", non_retryable=True)
    vetoed.__cause__ = make_fault(kind="provider.overloaded")

    made = to_application_error(quota)
    assert (made.type, made.non_retryable) == ("provider.quota_exhausted", True)
    # What somebody else has forbidden stays forbidden.
    assert to_application_error(vetoed).non_retryable is True


def model_error(status: int, body: Any, **state: Any) -> ApplicationError:
    """What an activity of pydantic-ai raises: the exception of the model call is encoded in the first detail."""
    encoded = {
        "module": "pydantic_ai.exceptions",
        "qualname": "ModelHTTPError",
        "args": [status, "gpt-4o", body],
        "state": {"body": body, "headers": None, "retry_after": None, **state},
    }
    return ApplicationError(
        "status_code: 429, body: …", {"pydantic_ai_model_error": encoded}, type="ModelHTTPError"
    )


def test_what_pydantic_ai_encodes_in_the_details_is_decoded() -> None:
    quota = describe(
        over_the_wire(model_error(429, {"error": {"code": "insufficient_quota", "message": "x"}}))
    )
    later = describe(over_the_wire(model_error(503, "down", headers={"retry-after": "7"})))

    assert (quota.kind, quota.retryable, quota.model) == ("provider.quota_exhausted", False, "gpt-4o")
    assert (later.kind, later.not_before and later.not_before.after) == ("provider.overloaded", 7.0)
    odds: list[Any] = [
        {},
        {"args": 3},
        {"args": [], "qualname": "no name"},
        {"args": [400], "qualname": "X", "state": 7},
    ]
    for odd in odds:
        error = ApplicationError("x", {"pydantic_ai_model_error": odd}, type="ModelHTTPError")
        assert describe(over_the_wire(error)).retryable is False


@pytest.mark.acceptance("pipelex 60")
def test_however_long_the_texts_are_the_payload_is_not() -> None:
    long = "x" * 1_000_000
    wrapper = model_error(400, {"error": {"message": long}})
    wrapper.__cause__ = make_fault(kind="provider.bad_request", message=long)
    group = ExceptionGroup(long, [RuntimeError(long) for _ in range(200)])

    for error in (make_fault(message=long, details={"all": long}), RuntimeError(long), group, wrapper):
        made = to_application_error(error)
        failure = Failure()
        asyncio.run(DataConverter.default.encode_failure(made, failure))
        assert len(failure.SerializeToString()) < 100_000
    assert "more characters cut]" in to_application_error(make_fault(message=long)).message


@pytest.mark.acceptance("pipelex 57")
def test_a_report_is_found_below_failures_that_have_none() -> None:
    fault = make_fault(provider="acme")
    inner = to_application_error(fault)
    # The outer one has a type that is known, and says less.
    outer = ApplicationError("wrapped", {"mine": 1}, type="ValueError")
    outer.__cause__ = inner

    report = recover(WorkflowFailureError(cause=over_the_wire(outer)))

    assert report.to_dict() == failwell.describe(inner).to_dict()


@pytest.mark.acceptance("pipelex 57")
def test_a_failure_of_others_gets_a_report_with_its_deepest_message() -> None:
    def chain(*messages: str) -> ApplicationError:
        error: BaseException | None = None
        for message in reversed(messages):
            outer = ApplicationError(message, type="ValueError")
            outer.__cause__ = error
            error = outer
        assert isinstance(error, ApplicationError)
        return error

    foreign = over_the_wire(
        chain("outer", " ", "the disk of node 7 is full: sk-live-51HG8sJKd83hKJHd73hdKJHs83", "")
    )
    report = recover(WorkflowFailureError(cause=foreign))

    assert (report.domain, report.kind, report.retryable) == (Domain.RUNTIME, "subworkflow.failed", False)
    assert report.message.startswith("the disk of node 7 is full")
    assert "sk-live" not in report.to_json()
    # Others wrote it, so only operators see it.
    assert "node 7" not in str(report.view("user")) + str(report.view("model"))
    long = recover(WorkflowFailureError(cause=over_the_wire(chain("x" * 9_000))))
    assert len(long.message) <= 2_000


class Hostile(Exception):
    """An exception whose every attribute raises."""

    def __getattribute__(self, name: str) -> Any:
        raise SystemError("no")

    def __str__(self) -> str:
        raise SystemError("no")


@pytest.mark.acceptance("pipelex 57")
def test_recovery_never_raises() -> None:
    odd: dict[str, Any] = {"schema": "failwell.error/1", "kind": "provider.auth", "category": 7, "scene": "x"}
    loop = ApplicationError("x")
    loop.__cause__ = loop
    details: list[Any] = [
        odd,
        {"schema": "failwell.error/1", "kind": "…"},
        {"schema": 3},
        None,
        "x",
        [],
        {1: 2},
    ]

    errors = [Hostile(), loop, KeyError(), *(ApplicationError("x", detail) for detail in details)]

    for error in errors:
        assert recover(error).kind
        assert recover(WorkflowFailureError(cause=error)).kind


def test_what_temporal_itself_refuses_stays_what_it_is() -> None:
    taken = recover(WorkflowAlreadyStartedError("flow-7", "Flow"))
    gone = recover(RPCError("tcp connect error", RPCStatusCode.UNAVAILABLE, b""))

    assert (taken.kind, gone.kind) == ("validation.input_invalid", "provider.connection")
    assert "tcp" not in gone.message


def test_the_log_of_a_worker_shows_where_it_failed_and_the_server_is_not_told() -> None:
    try:
        raise RuntimeError("the-text-nobody-may-see")
    except RuntimeError as error:
        made = to_application_error(error)

    logged = "".join(format_exception(made))
    stored = Failure()
    asyncio.run(DataConverter.default.encode_failure(made, stored))
    assert "test_temporal.py" in logged
    assert "RuntimeError" in logged
    assert "the-text-nobody-may-see" not in logged + str(stored)


@pytest.mark.acceptance("pipelex 58")
def test_the_report_of_a_newer_or_older_peer_keeps_what_is_known() -> None:
    written = failwell.describe(make_fault(provider="acme")).to_dict()
    newer = {
        **written,
        "schema": "failwell.error/2",
        "severity": "wobbly",
        "blame": "satellite",
        "certainty": "perhaps",
        "scene": {"orbit": 7},
    }
    unheard = {**newer, "kind": "provider.beamed_away", "category": "cosmic"}
    older = {key: written[key] for key in ("schema", "kind", "category", "message", "retryable")}

    for peer in (newer, older):
        sent = ApplicationError("x", peer, type="provider.rate_limited")
        report = recover(WorkflowFailureError(cause=over_the_wire(sent)))
        assert (report.kind, report.category, report.retryable) == (
            "provider.rate_limited", Category.TRANSIENT, True,
        )  # fmt: skip
        assert report.message == written["message"]
    strange = recover(over_the_wire(ApplicationError("x", unheard)))
    assert (strange.kind, strange.category, strange.retryable) == (
        "provider.beamed_away", Category.UNKNOWN, False,
    )  # fmt: skip


def test_a_plugin_says_which_parameter_is_wrong() -> None:
    with pytest.raises(TypeError, match="no parameter `atempts`"):
        reliability(atempts=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"non_retryable=\['OddError'\]"):
        reliability(non_retryable="OddError")
