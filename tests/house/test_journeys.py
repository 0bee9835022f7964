"""The journeys can be measured, and none of them enters more functions or files than are allowed."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tools import journeys


def excess(measure: Callable[[Path], Mapping[str, journeys.Count]], folder: Path) -> list[str]:
    """What exceeds a limit each of three times.

    A host looks at its store and publishes a snapshot from time to time. A journey that takes longer holds more of these rounds.
    """
    lines: list[str] = []
    for attempt in range(3):
        place = folder / str(attempt)
        place.mkdir()
        lines = [line for name, count in measure(place).items() for line in count.excess(name)]
        if not lines:
            break
    return lines


def test_a_described_error_is_followed_through_its_rooms_and_boxes() -> None:
    counts = journeys.delivered()

    described = counts["describe(openai.RateLimitError)"]
    assert described.calls >= len(described.functions) >= described.files > 1
    assert sum(described.between.values()) == described.room_changes
    assert list(described.boxes)[-1] == "ErrorReport"
    assert counts["problem document of it"].calls
    assert not [line for name, count in counts.items() for line in count.excess(name)]


def test_what_does_not_hold_the_fact_is_no_box() -> None:
    with journeys.Observer(("no such words",), None) as count:
        journeys.failwell.describe(journeys.rate_limit())

    assert count.calls
    assert not count.boxes


def test_what_exceeds_a_limit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(journeys.LIMITS, "problem document of it", (1, 5))
    crowded = journeys.Count()
    crowded.functions.update({excess.__code__, test_what_does_not_hold_the_fact_is_no_box.__code__})

    assert crowded.excess("problem document of it") == [
        "problem document of it: 2 functions, at most 1 are allowed",
    ]


def test_a_run_and_its_resume_stay_within_their_limits(tmp_path: Path) -> None:
    assert excess(journeys.run_and_resumed, tmp_path) == []


def test_an_agent_that_calls_a_tool_stays_within_its_limit(tmp_path: Path) -> None:
    pytest.importorskip("pydantic_ai")

    assert excess(journeys.agent_turn, tmp_path) == []


def test_a_submitted_job_and_one_whose_worker_is_killed_stay_within_their_limits(tmp_path: Path) -> None:
    assert excess(journeys.jobs, tmp_path) == []
