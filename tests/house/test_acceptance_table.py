"""The acceptance table is complete, current, and notices what is missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.acceptance import (
    ROOT,
    BadMark,
    acceptance_page,
    main,
    problems,
    read_decided,
    read_items,
    read_marks,
    read_outcomes,
    read_sections,
    read_waiting,
)


def a_tree(root: Path, tests: str, *, file: str = "test_some.py") -> Path:
    (root / "docs").mkdir()
    (root / "tests/room").mkdir(parents=True)
    (root / "docs/acceptance-items.toml").write_text('[system]\n1 = "it stands"\n2 = "it falls"\n')
    (root / "tests/room" / file).write_text(tests)
    return root


def test_every_listed_item_has_a_test_and_every_mark_an_item() -> None:
    assert main(["--check"]) == 0


def test_the_published_table_is_current() -> None:
    published = (ROOT / "docs/reference/acceptance.md").read_text(encoding="utf-8")

    assert published.endswith(acceptance_page()), "run `make docs`"


def test_marks_are_found_on_functions_classes_and_methods(tmp_path: Path) -> None:
    tree = a_tree(
        tmp_path,
        "import pytest\n"
        '@pytest.mark.acceptance("system 1", "system 2")\n'
        "async def test_both(): ...\n"
        '@pytest.mark.acceptance("system 1")\n'
        "class TestMany:\n"
        '    @pytest.mark.acceptance("system 2")\n'
        "    def test_inner(self): ...\n",
    )

    found = [(mark.item, mark.test) for mark in read_marks(tree)]

    assert found == [
        ("system 1", "tests/room/test_some.py::test_both"),
        ("system 2", "tests/room/test_some.py::test_both"),
        ("system 1", "tests/room/test_some.py::TestMany"),
        ("system 2", "tests/room/test_some.py::TestMany::test_inner"),
    ]


def test_an_item_without_a_test_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = a_tree(tmp_path, 'import pytest\n@pytest.mark.acceptance("system 1")\ndef test_it(): ...\n')

    status = main(["--check", "--root", str(tree)])

    assert status == 1
    assert capsys.readouterr().err == "system 2 has no test: it falls\n"


def test_a_mark_for_an_item_that_nobody_listed_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = a_tree(
        tmp_path,
        'import pytest\n@pytest.mark.acceptance("system 1", "system 2", "system 3")\ndef test_it(): ...\n',
    )

    status = main(["--check", "--root", str(tree)])

    assert status == 1
    assert (
        capsys.readouterr().err == "tests/room/test_some.py::test_it claims `system 3`, which is not listed\n"
    )


@pytest.mark.parametrize(
    ("file", "function"), [("test_some.py", "check_it"), ("builders.py", "test_it")], ids=["name", "file"]
)
def test_a_mark_on_something_pytest_does_not_run_shows_nothing(
    tmp_path: Path, file: str, function: str
) -> None:
    tree = a_tree(
        tmp_path, f'import pytest\n@pytest.mark.acceptance("system 1")\ndef {function}(): ...\n', file=file
    )

    found = problems(read_items(tree), read_marks(tree))

    assert "system 1 has no test: it stands" in found
    assert f"tests/room/{file}::{function} claims `system 1`, but pytest would not run it" in found


@pytest.mark.parametrize("arguments", ["", "()", "(ITEM)", "(7)", '(item="system 1")'])
def test_a_mark_that_must_be_run_to_be_read_is_refused(tmp_path: Path, arguments: str) -> None:
    tree = a_tree(tmp_path, f"import pytest\n@pytest.mark.acceptance{arguments}\ndef test_it(): ...\n")

    with pytest.raises(BadMark, match="write the items as plain strings"):
        read_marks(tree)


def test_a_complete_table_passes_and_lists_every_test(tmp_path: Path) -> None:
    tree = a_tree(
        tmp_path,
        "import pytest\n"
        '@pytest.mark.acceptance("system 1")\ndef test_one(): ...\n'
        '@pytest.mark.acceptance("system 1", "system 2")\ndef test_two(): ...\n',
    )

    status = main(["--check", "--root", str(tree)])

    assert status == 0
    assert (
        "| 1 | it stands | `tests/room/test_some.py::test_one`<br>`tests/room/test_some.py::test_two` |"
        in acceptance_page(tree)
    )


def test_a_test_that_is_always_skipped_shows_nothing(tmp_path: Path) -> None:
    tree = a_tree(
        tmp_path,
        "import pytest\n"
        '@pytest.mark.skip\n@pytest.mark.acceptance("system 1")\ndef test_it(): ...\n'
        '@pytest.mark.xfail(reason="x")\n@pytest.mark.acceptance("system 2")\ndef test_other(): ...\n',
    )

    found = problems(read_items(tree), read_marks(tree))

    assert "system 1 has no test: it stands" in found
    assert "tests/room/test_some.py::test_it claims `system 1`, but it is always skipped" in found
    assert "system 2 has no test: it falls" in found


def test_a_test_that_a_run_skipped_does_not_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = a_tree(
        tmp_path,
        "import pytest\n"
        '@pytest.mark.acceptance("system 1")\ndef test_one(): ...\n'
        '@pytest.mark.acceptance("system 2")\ndef test_two(): ...\n',
    )
    outcomes = tree / "outcomes.jsonl"
    name = "tests/room/test_some.py::"
    outcomes.write_text(
        f'{{"test": "{name}test_one[a]", "outcome": "skipped"}}\n{{"test": "{name}test_one[b]", "outcome": "passed"}}\n'
        f'{{"test": "{name}test_two", "outcome": "skipped"}}\n'
    )

    status = main(["--check", "--root", str(tree), "--outcomes", str(outcomes)])

    assert status == 1
    assert capsys.readouterr().err == f"system 2 was not shown ({name}test_two: skipped): it falls\n"


@pytest.mark.slow
def test_a_run_notes_how_the_tests_of_items_ended(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text(encoding="utf-8"))
    (tmp_path / "test_some.py").write_text(
        "import pytest\n"
        '@pytest.mark.acceptance("system 1")\ndef test_one(): ...\n'
        '@pytest.mark.acceptance("system 1")\ndef test_two(): pytest.skip("not here")\n'
        "def test_three(): ...\n"
    )
    outcomes = tmp_path / "outcomes.jsonl"
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}

    for workers in ("0", "1"):
        arguments = [
            "-q",
            "-n",
            workers,
            "-p",
            "no:cacheprovider",
            "--rootdir",
            str(tmp_path),
            "test_some.py",
        ]
        subprocess.run(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=tmp_path,
            env={**outside, "FAILWELL_ACCEPTANCE": str(outcomes)},
            capture_output=True,
            check=True,
        )

        assert read_outcomes([outcomes]) == {
            "test_some.py::test_one": {"passed"},
            "test_some.py::test_two": {"skipped"},
        }
        outcomes.unlink()


def test_what_is_decided_otherwise_names_a_section_and_has_a_list_of_its_own(tmp_path: Path) -> None:
    tree = a_tree(
        tmp_path,
        'import pytest\n@pytest.mark.acceptance("system 1", "system 2")\ndef test_it(): ...\n',
    )
    with (tree / "docs/acceptance-items.toml").open("a") as items:
        items.write('[decided]\n"system 2" = { instead = "it leans", decisions = ["towers#on-leaning"] }\n')
    (tree / "docs/decisions").mkdir()
    (tree / "docs/decisions/towers.md").write_text("# Towers\n\n## On leaning\n")

    found = problems(read_items(tree), read_marks(tree), (), read_decided(tree), read_sections(tree))
    without = problems(read_items(tree), read_marks(tree), (), read_decided(tree), {"towers#on-falling"})

    assert found == []
    assert without == ["system 2 names the decision `towers#on-leaning`, which is not in docs/decisions"]
    page = acceptance_page(tree)
    assert page.index("| 1 | it stands |") < page.index("## Decided otherwise") < page.index("| system 2 |")
    assert "| it falls | it leans | [on leaning](../decisions/towers.md#on-leaning) |" in page


def test_an_item_that_waits_needs_no_test_and_one_that_is_shown_may_not_wait(tmp_path: Path) -> None:
    tree = a_tree(tmp_path, 'import pytest\n@pytest.mark.acceptance("system 1")\ndef test_it(): ...\n')
    with (tree / "docs/acceptance-items.toml").open("a") as items:
        items.write('[waiting]\n"system 1" = "nothing"\n"system 2" = "a roof"\n"system 9" = "a moat"\n')

    found = problems(read_items(tree), read_marks(tree), read_waiting(tree))

    assert found == [
        "system 1 waits for nothing: a test shows it",
        "system 9 is waited for and not listed",
    ]
    assert "| 2 | it falls | waits for a roof |" in acceptance_page(tree)
