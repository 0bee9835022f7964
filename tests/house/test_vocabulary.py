"""The private vocabulary that the project once had is gone from names, documentation and messages."""

import ast

import pytest

from tools import vocabulary


@pytest.mark.slow
def test_no_word_occurs_that_the_project_does_not_use() -> None:
    assert sorted(set(vocabulary.findings())) == []


@pytest.mark.parametrize(
    "text",
    [
        "hand the job in",
        "it is handed in",
        "a run is taken\nup",
        "a told wait",
        "the Purse",
        "# to go on\n# with it",
    ],
)
def test_the_search_finds_a_phrase_also_across_lines(text: str) -> None:
    assert list(vocabulary.phrases("src/some.py", text))


@pytest.mark.parametrize("text", ["hand it over", "go on", "microsoft/conductor", "take up to five", "hands"])
def test_the_search_leaves_other_words_alone(text: str) -> None:
    assert list(vocabulary.phrases("src/some.py", text)) == []


@pytest.mark.parametrize("code", ["asked = 1", "def f(asked): ...", "class Desk: ...", "def telling(): ..."])
def test_the_search_finds_a_name(code: str) -> None:
    assert vocabulary.may_hold_names(code, in_tests=False)
    assert list(vocabulary.names("src/some.py", ast.parse(code), in_tests=False))
