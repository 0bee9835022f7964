"""The journeys can be measured: what they come to is recorded in a decision record, not asserted."""

from tools import journeys


def test_a_described_error_is_followed_through_its_rooms_and_boxes() -> None:
    counts = journeys.delivered()

    described = counts["describe(openai.RateLimitError)"]
    assert described.calls >= len(described.functions) >= described.files > 1
    assert sum(described.between.values()) == described.room_changes
    assert list(described.boxes)[-1] == "ErrorReport"
    assert counts["problem document of it"].calls


def test_what_does_not_hold_the_fact_is_no_box() -> None:
    with journeys.Observer(("no such words",), None) as count:
        journeys.failwell.describe(journeys.rate_limit())

    assert count.calls
    assert not count.boxes
