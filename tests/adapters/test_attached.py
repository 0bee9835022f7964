"""A report that exists is shown as it is: never built again, never under a second id."""

import pickle
from dataclasses import replace

import pytest

from failwell.adapters.describe import attach_report, describe
from failwell.adapters.revival import revive
from failwell.errors import redact
from failwell.errors.fault import Fault
from failwell.errors.report import Scene
from failwell.testing.builders import make_report


@pytest.mark.parametrize("error", [ValueError("boom"), Fault(kind="tool.failed")], ids=["foreign", "fault"])
def test_an_exception_that_carries_its_report_is_described_as_that_report(error: BaseException) -> None:
    report = make_report()
    attach_report(error, report)

    assert describe(error) is report


def test_a_revived_report_is_the_same_object_here_and_the_same_report_elsewhere() -> None:
    report = make_report()
    fault = revive(report)

    assert describe(fault) is report
    assert describe(pickle.loads(pickle.dumps(fault))) == report


def test_what_only_this_side_knows_completes_the_report_under_its_id() -> None:
    report = replace(make_report(), scene=Scene(run="r1"))
    error = ValueError("boom")
    attach_report(error, report)

    completed = describe(error, scene=Scene(node="n1"))

    assert (completed.id, completed.scene.run, completed.scene.node) == (report.id, "r1", "n1")


def test_a_cause_that_carries_its_report_is_listed_by_it() -> None:
    cause = ValueError("boom")
    attach_report(cause, replace(make_report(), error_type="Elsewhere"))
    error = RuntimeError("around")
    error.__cause__ = cause

    assert describe(error).causes[0].type == "Elsewhere"


def test_a_secret_is_known_at_once_however_the_environment_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "first-value-of-the-key")
    assert redact.redact_text("is first-value-of-the-key") == f"is {redact.MARK}"

    monkeypatch.setenv("SOME_API_KEY", "other-value-of-the-key")
    assert redact.redact_text("is other-value-of-the-key") == f"is {redact.MARK}"

    monkeypatch.delenv("SOME_API_KEY")
    monkeypatch.setenv("ANOTHER_TOKEN", "third-value-of-the-key")
    assert redact.redact_text("is third-value-of-the-key") == f"is {redact.MARK}"


def test_the_whole_environment_is_compared_again_after_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARMLESS", "1")
    redact.refresh()
    monkeypatch.setattr("failwell.errors.redact._checked_at", float("-inf"))

    # As many variables as before, and none that held a secret has changed.
    monkeypatch.delenv("HARMLESS")
    monkeypatch.setenv("NEW_PASSWORD", "hidden-value-of-it")

    assert redact.redact_text("is hidden-value-of-it") == f"is {redact.MARK}"
