"""A failure as it travels: what its report says, and what the journal keeps of it."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from failwell.adapters.describe import describe
from failwell.errors.axes import Blame, Category
from failwell.errors.facts import NotBefore
from failwell.errors.fault import Fault
from failwell.errors.report import Scene
from failwell.workflows.failure import Failure, node_frame

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
FRAME = node_frame(workflow="w", node="n", type="script", kind="external.x", visit=1, item=None)


def test_an_authors_kind_blames_the_work_and_takes_its_category_from_the_file() -> None:
    failed = Failure.of("external.crm.quota", "no calls left", category=Category.CAPACITY, details={"n": 1})

    report = failed.report

    assert (report.blame, report.category, report.retryable) == ("workflow", "capacity", False)
    assert failed.envelope == {
        "kind": "external.crm.quota",
        "message": "no calls left",
        "details": {"n": 1},
    }


def test_a_runtime_kind_keeps_what_the_registry_says_of_it() -> None:
    report = Failure.of("internal.spawn_failed", "no such command", category=Category.TRANSIENT).report

    assert (report.blame, report.category) == ("host", "configuration")


@pytest.mark.parametrize("kind", ["external.x", "internal.script_error", "provider.rate_limited"])
def test_the_report_of_a_kind_is_the_one_that_describe_makes_of_a_fault(kind: str) -> None:
    delay = NotBefore(after=3.5, source="details retry_after")
    details = {"password": "hunter2", "n": 1}
    fault = Fault(kind=kind, message="token sk-ant-api03-abcdefghijklmnop", details=details, not_before=delay)
    described = describe(fault, scene=Scene(run="r", node="n"), at=AT)

    made = Failure.of(
        kind,
        "token sk-ant-api03-abcdefghijklmnop",
        details=details,
        not_before=delay,
        scene=Scene(run="r", node="n"),
        at=AT,
        error_id=described.id,
    ).report

    # An author's own kind speaks of the workflow, which `describe` cannot know.
    assert made == replace(described, blame=Blame.WORKFLOW if kind == "external.x" else described.blame)


def test_a_stored_failure_comes_back_as_it_was() -> None:
    other = Failure.of("external.y", "o", at=AT)
    failed = replace(
        Failure.of("external.x", "m", details={"a": [1]}, typed=True, at=AT).with_frames(FRAME, FRAME),
        others=(other,),
    )

    assert Failure.from_dict(json.loads(json.dumps(failed.to_dict()))) == failed


def test_a_stored_failure_has_the_shape_that_earlier_versions_wrote() -> None:
    failed = Failure.of("external.x", "m", details={"a": 1}, at=AT, error_id="err_1").with_frames(FRAME)

    stored = failed.to_dict()

    assert list(stored) == ["envelope", "report", "typed", "frames"]
    assert stored["frames"] == [
        {"workflow": "w", "node": "n", "type": "script", "kind": "external.x", "iteration": 1}
    ]
    assert "frames" not in stored["report"]
    assert stored["report"]["id"] == "err_1"


def test_frames_are_boundaries_of_the_report_and_change_nothing_else() -> None:
    failed = Failure.of("external.x", "m")

    crossed = failed.with_frames(FRAME)

    (frame,) = crossed.report.frames
    assert (frame.boundary, frame.name, frame.workflow) == ("node", "n", "w")
    assert replace(crossed.report, frames=()) == failed.report
