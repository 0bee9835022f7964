"""An event, a line of JSON, and back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwell.store.event import TERMINAL, Event, from_json, to_json

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

    assert json.loads(line) == event.to_dict()
    assert line.isascii()
    assert "\n" not in line


@given(value=JSON)
def test_the_fast_encoder_writes_what_the_standard_one_writes(value: object) -> None:
    assert to_json(value) == json.dumps(value, separators=(",", ":"))
    assert from_json(to_json(value)) == value


def test_four_types_end_a_run_or_a_session() -> None:
    assert {"run:completed", "run:failed", "run:cancelled", "session:cancelled"} == TERMINAL
    assert not Event(0, "run:timeout", 1.0, {}).is_terminal


def test_an_event_cannot_be_changed() -> None:
    event = Event(0, "a", 1.0, {})

    with pytest.raises(AttributeError):
        event.seq = 3  # pyright: ignore[reportAttributeAccessIssue]
