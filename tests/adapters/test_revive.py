"""A report that arrives can be raised, and describes as itself."""

import pickle
from typing import Any

import pytest

import failwell
from failwell import ErrorReport, Fault, adapters, errors
from failwell.adapters.revival import portable
from failwell.errors import NotBefore, Scene, scene
from failwell.errors.report import Attempt
from failwell.testing.builders import make_fault, make_report


def over_the_wire(report: ErrorReport) -> ErrorReport:
    return ErrorReport.from_json(report.to_json())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"kind": "validation.input_invalid", "fields_invalid": ("size",), "caller_facing": False},
        {"retryable": False},
        {"kind": "external.git.drift", "details": {"commit": "abc"}},
        {"scene": Scene(run="r1", attempt=2), "not_before": NotBefore(after=3.0)},
        {"attempts": (Attempt(number=1, cost=4),), "provider": "acme", "model": "large"},
    ],
)
def test_describing_a_revived_fault_gives_the_same_report(changes: dict[str, Any]) -> None:
    report = make_report(**changes)

    assert failwell.describe(adapters.revive(over_the_wire(report))) == report


def test_where_and_how_it_is_described_again_changes_nothing() -> None:
    report = make_report(scene=Scene(run="r1"))

    with scene(run="r2", node="here"):
        again = failwell.describe(adapters.revive(report), policy="full")

    assert again == report


def test_what_only_this_side_knows_is_added_where_the_report_leaves_it_open() -> None:
    fault = adapters.revive(make_report(scene=Scene(run="r1"), model="large"))

    report = failwell.describe(
        fault, provider="acme", model="small", scene=Scene(run="r2", node="n"), attempts=[Attempt(number=1)]
    )

    assert (report.provider, report.model) == ("acme", "large")
    assert (report.scene, report.attempts) == (Scene(run="r1", node="n"), (Attempt(number=1),))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("provider.auth", "ProviderCapability"),
        ("tool.failed", "ToolTerminal"),
        ("external.git.drift", "Fault"),
    ],
)
def test_a_revived_fault_has_the_name_that_users_know(kind: str, name: str) -> None:
    fault = adapters.revive(make_report(kind=kind))

    assert type(fault).__name__ == name
    assert isinstance(fault, getattr(errors, name, Fault))
    assert type(pickle.loads(pickle.dumps(fault))) is type(fault)


def test_a_revived_fault_reads_like_one_of_ours() -> None:
    fault = adapters.revive(make_report(kind="provider.auth", message="no such key", provider="acme"))

    assert isinstance(fault, Fault)
    assert (str(fault), fault.kind, fault.provider) == ("no such key", "provider.auth", "acme")


def test_a_revived_fault_can_be_raised_wrapped_and_keeps_its_classification() -> None:
    revived = adapters.revive(make_report(retryable=False, provider="acme", details={"batch": 3}))

    report = failwell.describe(Fault.wrap(revived, "over here"))

    assert (report.kind, report.retryable, report.provider) == ("provider.rate_limited", False, "acme")
    assert (report.message, report.details) == ("over here", {"batch": 3})


def test_a_revived_fault_survives_pickling() -> None:
    report = make_report(details={"batch": 3})

    assert failwell.describe(pickle.loads(pickle.dumps(adapters.revive(report)))) == report


def test_a_report_of_a_newer_peer_keeps_its_unknown_keys_when_it_is_revived() -> None:
    newer = {**make_report().to_dict(), "schema": "failwell.error/2", "weather": "rain"}

    report = failwell.describe(adapters.revive(ErrorReport.read(newer)))

    assert (report.extra, report.schema) == ({"weather": "rain"}, "failwell.error/2")


def test_translating_a_fault_gives_the_fault() -> None:
    fault = make_fault()

    assert adapters.translate(fault) is fault


def test_translating_a_foreign_exception_keeps_it_as_the_cause() -> None:
    error = ConnectionRefusedError("x")

    fault = adapters.translate(error, provider="acme", model="large")

    assert fault.__cause__ is error
    assert (fault.kind, fault.provider, fault.model) == ("provider.connection", "acme", "large")
    assert failwell.describe(fault).error_type == "ConnectionRefusedError"


def test_a_lost_reply_to_a_call_that_may_be_repeated_is_a_passing_failure() -> None:
    open_question = failwell.describe(adapters.translate(TimeoutError()))
    declared = failwell.describe(adapters.translate(TimeoutError(), idempotent=True))

    assert (open_question.category, open_question.retryable) == ("ambiguous", False)
    assert (declared.category, declared.retryable, declared.certainty) == ("transient", True, "unknown")


def test_a_stand_in_for_a_foreign_exception_has_none_of_its_words() -> None:
    stand_in = portable(ValueError("hunter2"))

    assert b"hunter2" not in pickle.dumps(stand_in)
    assert failwell.describe(stand_in).error_type == "ValueError"
