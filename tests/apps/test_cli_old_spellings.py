"""Commands, actions and options as they were called before: they still work, and a line says what is new."""

from pathlib import Path

import pytest

from failwell.cli.raw_arguments import OLD_ACTIONS, OLD_COMMANDS, OLD_OPTIONS, current_spelling
from tests.apps.running import failwell

CASES: list[tuple[list[str], list[str], str]] = [
    (["job", "list"], ["jobs", "list"], "`failwell job` is now `failwell jobs`"),
    (["job", "--json"], ["jobs", "list", "--json"], "`failwell job` is now `failwell jobs`"),
    (["gate"], ["gates", "list"], "`failwell gate` is now `failwell gates`"),
    (
        ["gates", "respond", "r", "g", "yes"],
        ["gates", "answer", "r", "g", "yes"],
        "`failwell gates respond` is now `failwell gates answer`",
    ),
    (
        ["capability", "add", "x.toml"],
        ["capabilities", "add", "x.toml"],
        "`failwell capability` is now `failwell capabilities`",
    ),
    (
        ["--color", "never", "gate", "list"],
        ["--color", "never", "gates", "list"],
        "`failwell gates`",
    ),
    (
        ["jobs", "list", "--state", "failed"],
        ["jobs", "list", "--status", "failed"],
        "`--state` is now `--status`",
    ),
    (
        ["resume", "r", "--limit", "max_iterations=5"],
        ["resume", "r", "--raise-limit", "max_iterations=5"],
        "`--limit` is now `--raise-limit`",
    ),
    (["show", "x.yaml", "--as=svg"], ["show", "x.yaml", "--picture=svg"], "`--as` is now `--picture`"),
    (["jobs", "--state=failed"], ["jobs", "list", "--status=failed"], "`--state` is now `--status`"),
    (["jobs", "--state", "failed", "prune"], ["jobs", "prune", "--status", "failed"], "`--status`"),
    (
        ["jobs", "submit", "x", "--do", "y"],
        ["jobs", "submit", "x", "--action", "y"],
        "`--do` is now `--action`",
    ),
    (
        ["capabilities", "add", "x", "--replace"],
        ["capabilities", "add", "x", "--force"],
        "`--replace` is now `--force`",
    ),
]


@pytest.mark.parametrize(("old", "new", "note"), CASES, ids=[" ".join(old) for old, _, _ in CASES])
def test_an_old_spelling_means_the_new_one_and_says_so(old: list[str], new: list[str], note: str) -> None:
    arguments, notes = current_spelling(old)

    assert arguments == new
    assert any(note in line for line in notes)
    assert all(line.startswith("note: ") and "still works" in line for line in notes)


def test_every_old_spelling_has_a_case() -> None:
    words = {word for old, _, _ in CASES for word in old}

    assert set(OLD_COMMANDS) <= words
    assert {action for _, action in OLD_ACTIONS} <= words
    assert all(any(word.startswith(option) for word in words) for _, option in OLD_OPTIONS)


def test_the_note_goes_to_stderr_and_the_data_to_stdout(tmp_path: Path) -> None:
    store = ["--store", str(tmp_path)]

    old = failwell("job", "list", "--format", "markdown", *store)
    new = failwell("jobs", "list", "--format", "markdown", *store)

    assert (old.code, old.out) == (new.code, new.out) == (0, new.out)
    assert old.err == "note: `failwell job` is now `failwell jobs`; the old spelling still works\n"
    assert new.err == ""


def test_a_program_that_reads_errors_as_json_is_not_disturbed(tmp_path: Path) -> None:
    done = failwell("job", "show", "last", "--json", "--store", str(tmp_path))

    assert done.error["kind"] == "session.no_snapshot"


def test_what_follows_two_dashes_is_left_alone() -> None:
    assert current_spelling(["jobs", "submit", "x", "--", "--state"])[1] == []
