"""A failure as it travels: what its report says of an author's own kind."""

from failwell.fault.axes import Category
from failwell.workflow.failure import failure, report_of


def test_an_authors_kind_blames_the_work_and_takes_its_category_from_the_file() -> None:
    failed = failure("external.crm.quota", "no calls left", category=Category.CAPACITY, details={"n": 1})

    report = report_of(failed)

    assert (report.blame, report.category, report.retryable) == ("workflow", "capacity", False)
    assert failed["envelope"] == {
        "kind": "external.crm.quota",
        "message": "no calls left",
        "details": {"n": 1},
    }


def test_a_runtime_kind_keeps_what_the_registry_says_of_it() -> None:
    report = report_of(failure("internal.spawn_failed", "no such command", category=Category.TRANSIENT))

    assert (report.blame, report.category) == ("host", "configuration")


def test_frames_are_boundaries_of_the_report() -> None:
    failed = failure("external.x", "m")
    failed["frames"] = [
        {"workflow": "w", "node": "n", "type": "script", "kind": "external.x", "iteration": 1}
    ]

    (frame,) = report_of(failed).frames

    assert (frame.boundary, frame.name, frame.workflow) == ("node", "n", "w")
