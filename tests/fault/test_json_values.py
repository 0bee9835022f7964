"""One walk through JSON, for all who need one."""

from typing import Any

from failwell.errors.json_walk import map_texts


def test_texts_are_changed_and_everything_else_stays() -> None:
    value: Any = {"a": ["b", 1, ("c",)], 3: True}

    assert map_texts(value, str.upper) == {"A": ["B", 1, ["C"]], 3: True}
    assert map_texts(value, str.upper, keys=False) == {"a": ["B", 1, ["C"]], 3: True}


def test_a_value_that_contains_itself_ends() -> None:
    value: list[Any] = []
    value.append(value)

    assert "too deep" in str(map_texts(value, str.upper))
