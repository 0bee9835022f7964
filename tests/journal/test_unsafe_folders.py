"""A state folder in which others could put files, and files that somebody else put there."""

from collections.abc import Callable
from pathlib import Path

import pytest

from failwell.files.private import append_private, create_private, replace_private
from failwell.journal.folder import append_line
from failwell.journal.journal_faults import StoreUnavailable
from failwell.journal.lock import exclusive
from failwell.journal.sqlite.run_store import SqliteStore
from tests.apps.running import failwell


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o702, 0o1777])
def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(mode)

    with pytest.raises(StoreUnavailable, match=rf"others can write to it \(mode {mode:04o}\)"):
        SqliteStore(folder)

    assert list(folder.iterdir()) == []


def test_the_command_says_what_to_do_about_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)

    done = failwell("runs", "prune", "--keep", "1", "--store", str(tmp_path), "--json")

    assert done.code == 0, "there is no store, so there is nothing to delete"
    (tmp_path / "journal.db").touch()
    done = failwell("runs", "list", "--store", str(tmp_path), "--json")
    assert done.code != 0
    assert f"chmod go-w {tmp_path}" in done.error["hint"]
    assert "--store DIR" in done.error["hint"]


def test_a_folder_that_others_can_read_is_taken(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    SqliteStore(tmp_path).close()

    assert (tmp_path / "journal.db").stat().st_mode & 0o777 == 0o600


def link_to(target: Path, link: Path) -> Path:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)
    return link


def test_a_journal_that_is_a_link_is_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    link_to(victim, tmp_path / "state/journal.db")
    (tmp_path / "state").chmod(0o700)

    with pytest.raises(StoreUnavailable):
        SqliteStore(tmp_path / "state")

    assert not victim.exists()


WRITERS: dict[str, Callable[[Path], object]] = {
    "a line": lambda path: append_line(path, {"a": 1}),
    "a lock": lambda path: exclusive(path).__enter__(),
    "appended": append_private,
    "created": create_private,
}


@pytest.mark.parametrize("name", WRITERS)
def test_no_file_is_written_through_a_link(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    path = link_to(victim, tmp_path / "state/file")
    (tmp_path / "state").chmod(0o700)

    with pytest.raises((StoreUnavailable, OSError)):
        WRITERS[name](path)

    assert victim.read_text() == "as it was"


def test_a_file_that_is_replaced_replaces_the_link_and_not_its_target(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    path = link_to(victim, tmp_path / "state/file")

    replace_private(path, "new")

    assert victim.read_text() == "as it was"
    assert path.read_text() == "new"
    assert not path.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_replaced_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()

    with pytest.raises(OSError, match="directory"):
        replace_private(tmp_path / "file", "new")

    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
