"""The table of promises names tests that exist and run."""

import re
from pathlib import Path

import pytest

from tools.acceptance import ROOT, read_tests

PAGE = ROOT / "docs/decisions/promises.md"
ROW = re.compile(
    r"^\| (\d+)\.(\d+) \| (.+) \| (.+) \| (.+) \| (test|script|was missing|was right) \|$", re.MULTILINE
)
TEST = re.compile(r"`(tests/[\w/]+\.py)(::test_\w+)`")


def missing_tests(text: str, root: Path) -> list[str]:
    """The tests that a page names and pytest would not run."""
    named = sorted(set(TEST.findall(text)))
    return [
        f"{file}{test}"
        for file, test in named
        if not (root / file).is_file() or f"{file}{test}" not in read_tests(root, file)
    ]


def test_every_promise_names_tests_that_exist_and_run() -> None:
    text = PAGE.read_text(encoding="utf-8")

    rows = ROW.findall(text)

    assert len(rows) == text.count("\n| ") - 2 > 100, "a row of the table has another form"
    assert [promise for _, _, promise, tests, _, _ in rows if not TEST.findall(tests)] == []
    assert missing_tests(text, ROOT) == []


def test_promises_are_numbered_without_gaps_and_counted() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = ROW.findall(text)

    numbers = [(int(group), int(number)) for group, number, *_ in rows]
    following = [
        second in ((first[0], first[1] + 1), (first[0] + 1, 1))
        for first, second in zip([(0, 0), *numbers], numbers, strict=False)
    ]

    assert all(following)
    for seen in ("test", "script", "was missing", "was right"):
        assert f"**{seen}** ({sum(row[-1] == seen for row in rows)})" in text


@pytest.mark.parametrize(
    "test", ["def test_other(): ...", "@pytest.mark.skip\ndef test_it(): ...", "def helper_test_it(): ..."]
)
def test_a_test_that_is_gone_or_always_skipped_is_named(tmp_path: Path, test: str) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_some.py").write_text(f"import pytest\n{test}\n")

    found = missing_tests("| `tests/test_some.py::test_it`, `tests/test_gone.py::test_it` |", tmp_path)

    assert found == ["tests/test_gone.py::test_it", "tests/test_some.py::test_it"]
