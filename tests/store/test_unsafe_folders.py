"""A state folder in which others could put files, and files that somebody else put there."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from failwell.store.faults import StoreUnavailable
from failwell.store.folder import append_line
from failwell.store.locks import exclusive
from failwell.store.private_files import append_private, create_private, replace_private
from failwell.store.sqlite.run_store import SqliteStore
from tests.cli.running import failwell

ROOT = Path(__file__).resolve().parents[2]


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


def test_a_file_that_somebody_else_has_created_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("as it was")

    with pytest.raises(FileExistsError):
        create_private(path)

    assert path.read_text() == "as it was"


WATCHED = """
import json, os, sys
from pathlib import Path

folder, opened = Path(sys.argv[1]), []

def watch(event, arguments):
    if event == "open" and str(arguments[0]).startswith(str(folder / "state")):
        path, _, flags = arguments
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            opened.append([path, bool(flags & os.O_NOFOLLOW), bool(flags & os.O_TRUNC)])

sys.addaudithook(watch)

from tests.cli.job_place import Place

place = Place(folder, "echo", "fails")
codes = [
    place("jobs", "submit", "echo", "value=1", "--wait").code,
    place("jobs", "submit", "fails", "--wait").code,
    place("run", str(folder / "w.yaml")).code,
]
print(json.dumps([codes, opened]))
"""
"""Notes every file of the state folder that Python opens for writing; the database is opened by SQLite."""


def test_every_file_that_a_job_and_a_run_write_is_opened_without_following_links(tmp_path: Path) -> None:
    envelope = json.dumps({"kind": "external.shop.closed", "message": "m"})
    step = {
        "name": "a",
        "type": "script",
        "command": "sh",
        "args": ["-c", f"echo x; echo '{envelope}' > $FAILWELL_ERROR_OUT; exit 3"],
        "raises": ["external.shop.closed"],
    }
    kinds = {"external.shop.closed": {"category": "configuration"}}
    document = {"workflow": {"name": "w", "entry_point": "a"}, "kinds": kinds, "agents": [step]}
    (tmp_path / "w.yaml").write_text(yaml.safe_dump(document))

    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
        capture_output=True,
        text=True,
        check=True,
    )

    codes, opened = json.loads(done.stdout)
    assert codes == [0, 1, 3]
    assert [path for path, without_links, _ in opened if not without_links] == []
    assert [path for path, _, truncated in opened if truncated] == [], "it may be somebody else's"
    assert {Path(path).name for path, _, _ in opened} >= {"lock", "output.jsonl", "errors.jsonl"}


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
