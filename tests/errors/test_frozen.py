"""`@frozen`: as strict as a frozen dataclass, only cheaper to make."""

import pickle
from dataclasses import FrozenInstanceError, field, fields, replace

import pytest

from failwell.errors.frozen import frozen


@frozen
class Point:
    """Two numbers and a list of names."""

    x: int
    y: int = 0
    names: list[str] = field(default_factory=list[str])


@frozen
class Positive:
    """A number that is checked when it is made."""

    value: int

    def __post_init__(self) -> None:
        if self.value <= 0:
            raise ValueError("must be positive")


def test_fields_are_given_by_name_and_have_their_defaults() -> None:
    point = Point(x=1)

    assert (point.x, point.y, point.names) == (1, 0, [])
    assert [one.name for one in fields(point)] == ["x", "y", "names"]


def test_a_default_that_is_made_is_made_for_each() -> None:
    assert Point(x=1).names is not Point(x=1).names


def test_positions_unknown_names_and_missing_ones_are_refused() -> None:
    with pytest.raises(TypeError):
        Point(1)  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match="z"):
        Point(x=1, z=2)  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match="x"):
        Point()  # pyright: ignore[reportCallIssue]


def test_nothing_can_be_set_added_or_deleted() -> None:
    point = Point(x=1)

    with pytest.raises(FrozenInstanceError):
        point.x = 2  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises((FrozenInstanceError, TypeError)):
        point.z = 2  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(FrozenInstanceError):
        del point.x  # pyright: ignore[reportAttributeAccessIssue]


def test_it_has_no_dictionary() -> None:
    assert not hasattr(Point(x=1), "__dict__")


def test_equality_replacement_and_pickling_are_those_of_a_dataclass() -> None:
    point = Point(x=1, names=["a"])

    assert point == Point(x=1, names=["a"])
    assert replace(point, y=5) == Point(x=1, y=5, names=["a"])
    assert pickle.loads(pickle.dumps(point)) == point


def test_a_check_after_making_still_runs() -> None:
    assert Positive(value=1).value == 1

    with pytest.raises(ValueError, match="must be positive"):
        Positive(value=0)


@frozen
class Square:
    """A side, and the area that follows from it."""

    side: int
    area: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "area", self.side**2)


def test_a_derived_field_is_set_once_and_follows_a_replacement() -> None:
    square = Square(side=3)

    assert square.area == 9
    assert replace(square, side=4).area == 16
    assert repr(square) == "Square(side=3)"
    assert pickle.loads(pickle.dumps(square)) == square
    with pytest.raises(TypeError):
        Square(side=3, area=1)  # pyright: ignore[reportCallIssue]
