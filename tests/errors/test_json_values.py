"""One walk through JSON, for all who need one."""

from typing import Any

from failwell.errors.json_walk import map_texts, map_values, texts_in


def test_texts_are_changed_and_everything_else_stays() -> None:
    value: Any = {"a": ["b", 1, ("c",)], 3: True}

    assert map_texts(value, str.upper) == {"A": ["B", 1, ["C"]], 3: True}
    assert map_texts(value, str.upper, keys=False) == {"a": ["B", 1, ["C"]], 3: True}


def test_a_value_that_contains_itself_ends() -> None:
    value: list[Any] = []
    value.append(value)

    assert "too deep" in str(map_texts(value, str.upper))


def test_what_is_no_container_is_changed_within_bounds() -> None:
    value: Any = {"one": [1, 2, 3], "two": {"deep": {"deeper": 4}}, "three": 5}

    changed = map_values(value, lambda leaf: leaf * 10, key=str.upper, deepest=2, most=2)

    assert changed == {"ONE": [10, 20], "TWO": {"DEEP": "… [too deep]"}}


def test_every_text_is_found() -> None:
    value: Any = {"a": ["b", 1, ("c",)], 3: "d"}

    assert list(texts_in(value)) == ["a", "b", "c", "d"]
    assert list(texts_in(value, keys=False)) == ["b", "c", "d"]


def test_methods_of_a_mapping_of_an_unknown_author_are_not_called() -> None:
    class Trap(dict[str, str]):
        def items(self) -> Any:
            raise AssertionError("called")

    assert map_texts(Trap(a="b"), str.upper) == {"A": "B"}
