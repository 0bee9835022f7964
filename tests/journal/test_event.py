"""An event, a line of JSON, and back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwell.journal.event import TERMINAL, Draft, Event, decoded, encoded

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(
    event=st.builds(
        Event,
        st.integers(0, 2**40),
        st.text(min_size=1),
        st.floats(0, 4e9),
        st.dictionaries(st.text(), JSON, max_size=4),
    )
)
def test_an_event_survives_its_line(event: Event) -> None:
    line = event.to_line()

    assert Event.from_line(line) == event
    assert line.isascii()
    assert "\n" not in line


@given(value=JSON)
def test_the_fast_encoder_writes_what_the_standard_one_writes(value: object) -> None:
    assert encoded(value) == json.dumps(value, separators=(",", ":"))
    assert decoded(encoded(value)) == value


@pytest.mark.parametrize(
    "line", ["", "[]", "null", '{"seq":1}', '{"seq":"1","type":"a","at":1,"data":{}}', "{"]
)
def test_a_line_that_is_no_event_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Event.from_line(line)


def test_a_line_of_a_newer_version_still_reads() -> None:
    line = '{"seq":1,"type":"node:started","at":2,"data":{"path":"a"},"sender":"b"}'

    assert Event.from_line(line) == Event(1, "node:started", 2.0, {"path": "a"})


def test_four_types_end_a_run_or_a_session() -> None:
    assert {"run:completed", "run:failed", "run:cancelled", "session:cancelled"} == TERMINAL
    assert not Event(0, "run:timeout", 1.0, {}).is_terminal


def test_an_event_and_a_draft_cannot_be_changed() -> None:
    event = Event(0, "a", 1.0, {})
    draft = Draft(type="a", at=1.0, data={}, session="s1")

    with pytest.raises(AttributeError):
        event.seq = 3  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError):
        draft.type = "b"  # pyright: ignore[reportAttributeAccessIssue]
    assert (draft.stream, draft.fact) == ("s1", ("a", 1.0, {}))
