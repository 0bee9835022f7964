"""A run at a glance, folded from its events."""

from typing import Any

import pytest

from failwell.store.event import Event
from failwell.workflows.run_details import run_details

FAILURE: dict[str, Any] = {"envelope": {"kind": "external.git.drift", "message": "moved", "details": {}}}


def events(*facts: tuple[str, dict[str, Any]]) -> list[Event]:
    return [Event(seq, type_, float(seq), data) for seq, (type_, data) in enumerate(facts)]


def started(path: str, visit: int = 1, **more: Any) -> tuple[str, dict[str, Any]]:
    return ("node:started", {"path": path, "node": path, "type": "script", "visit": visit, **more})


def test_a_node_that_was_tried_again_and_went_well_shows_both_tries_and_no_failure() -> None:
    details = run_details(
        events(
            ("run:started", {"inputs": {"a": 1}}),
            started("build"),
            ("node:retrying", {"path": "build", "failure": FAILURE, "until": 9.0}),
            started("build"),
            ("node:completed", {"path": "build"}),
        )
    )

    row = details.nodes["build"]
    assert (row.status, row.attempts, row.visits, row.seconds) == ("completed", 2, 1, 3.0)
    assert (row.kind, row.message, row.until) == (None, None, None)
    assert details.inputs == {"a": 1}


def test_a_second_visit_counts_its_tries_from_one() -> None:
    details = run_details(events(started("a"), started("a"), started("a", visit=2)))

    assert (details.nodes["a"].visits, details.nodes["a"].attempts) == (2, 1)


NOTHING: list[Any] = []


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        (NOTHING, "running"),
        ([("node:failed", {"path": "a", "failure": FAILURE})], "failed"),
        (
            [
                ("node:failed", {"path": "a", "failure": FAILURE}),
                ("route:taken", {"path": "a", "to": "b", "on_error": "external.git.drift"}),
            ],
            "handled",
        ),
        ([("node:completed", {"path": "a"}), ("route:taken", {"path": "a", "to": "b"})], "completed"),
        ([("node:waiting", {"path": "a", "until": 7})], "waiting"),
        ([("node:retrying", {"path": "a", "failure": FAILURE, "until": 7})], "retrying"),
    ],
)
def test_a_node_stands_where_its_last_event_left_it(facts: list[Any], status: str) -> None:
    details = run_details(events(started("a"), *facts))

    assert details.nodes["a"].status == status


def test_a_skipped_node_says_why() -> None:
    row = run_details(events(("node:skipped", {"path": "a", "reason": "branch_not_taken"}))).nodes["a"]

    assert (row.status, row.message, row.seconds) == ("skipped", "branch_not_taken", None)


def test_a_question_is_open_until_it_is_answered() -> None:
    asked = [
        ("human_gate:paused", {"path": name, "node": name, "type": "human_gate", "gate": name})
        for name in ("first", "second")
    ]
    answered = ("human_gate:resumed", {"path": "first", "gate": "first", "decision": "yes"})

    details = run_details(events(*asked, answered))

    assert list(details.gates) == ["second"]
    assert [row.status for row in details.nodes.values()] == ["completed", "asking"]


def test_an_answer_that_was_kept_closes_the_question() -> None:
    asked = ("human_gate:paused", {"path": "ask", "node": "ask", "type": "human_gate", "gate": "ask"})

    details = run_details(
        events(asked, ("human_gate:answered", {"path": "ask", "gate": "ask", "decision": "yes"}))
    )

    assert details.gates == {}
    assert (details.nodes["ask"].status, details.nodes["ask"].message) == ("asking", "answered")


def test_the_end_tells_the_failure_and_where_it_was_written() -> None:
    details = run_details(
        events(
            ("run:started", {"continues": {"run": "r0", "seq": 4}}),
            ("run:resumed", {}),
            ("run:failed", {"failure": FAILURE, "errors_file": "errors.jsonl"}),
        )
    )

    assert (details.failure, details.errors_file) == (FAILURE, "errors.jsonl")
    assert (details.continues, details.resumed) == ("r0", 1)


def test_facts_of_other_versions_are_passed_over() -> None:
    details = run_details(
        events(("moon:risen", {"path": 3}), ("node:failed", {"failure": "odd"}), ("run:started", {}))
    )

    assert list(details.nodes) == [""]
    assert details.end is None


def test_inputs_that_are_not_recorded_are_named() -> None:
    secret = {"secret": True, "ref": "workflow.input.token"}
    details = run_details(events(("run:started", {"inputs": {"token": secret, "day": "today"}})))

    assert details.secret_inputs == ["token"]
