"""One walk through JSON, for all who need one."""

from typing import Any

from failwell.fault.json_values import map_texts, walk_json


def test_every_value_is_visited_with_its_place() -> None:
    value = {"items": [{"name": "a"}, 2], "more": None}

    assert dict(walk_json(value)) == {
        "": value,
        ".items": value["items"],
        ".items[0]": {"name": "a"},
        ".items[0].name": "a",
        ".items[1]": 2,
        ".more": None,
    }


def test_texts_are_changed_and_everything_else_stays() -> None:
    value: Any = {"a": ["b", 1, ("c",)], 3: True}

    assert map_texts(value, str.upper) == {"A": ["B", 1, ["C"]], 3: True}
    assert map_texts(value, str.upper, keys=False) == {"a": ["B", 1, ["C"]], 3: True}


def test_a_value_that_contains_itself_ends() -> None:
    value: list[Any] = []
    value.append(value)

    assert sum(1 for _ in walk_json(value)) == 301
    assert "too deep" in str(map_texts(value, str.upper))
