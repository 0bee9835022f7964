"""Cases that share one test are all tried, and those that fail are named."""

from pathlib import Path

import pytest

from tests.specimens import each


def test_every_case_is_tried_and_those_that_fail_are_named(tmp_path: Path) -> None:
    tried: list[tuple[str, int, Path]] = []

    @each("letter", ["a", "b"])
    @each("number", [1, 2, 3])
    def odd(letter: str, number: int, folder: Path) -> None:
        tried.append((letter, number, folder))
        assert number % 2, f"{letter} has an even number"

    with pytest.raises(pytest.fail.Exception) as told:
        odd(folder=tmp_path)

    assert tried == [(letter, number, tmp_path) for letter in "ab" for number in (1, 2, 3)]
    assert "2 of 2 cases failed" in str(told.value)
    assert "1 of 3 cases failed:\n1: 2: AssertionError: b has an even number" in str(told.value)
