"""A store that version 0.1.0 left behind is taken over: runs are resumed and jobs run, and nothing finished runs again.

The store is recorded text (see `record.py`); each test builds its own copy of it and drives the shipped command.
"""

import json
import shutil
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from failwell.apps.cli.main import main
from tests.apps.running import Done, failwell

VERSION = Path(__file__).with_name("v0_1")
RECORDED = VERSION / "recorded"


class Store:
    """A recorded state folder, built again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        # A process that has ended, as the one that wrote this.
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        self._values = {
            "@FOLDER@": str(folder),
            "@SOURCE@": str(folder / "src"),
            "@HOST@": socket.gethostname(),
            "@PID@": str(ended.pid),
        }
        for part in ("workflows", "capabilities"):
            shutil.copytree(VERSION / part, folder / part)
        for path in sorted(RECORDED.rglob("*")):
            if path.is_file() and path.name != "journal.sql":
                copy = folder / path.relative_to(RECORDED)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(self._built(path), encoding="utf-8")
        with closing(sqlite3.connect(self.state / "journal.db")) as database:
            database.executescript(self._built(RECORDED / "journal.sql"))

    def _built(self, path: Path) -> str:
        text = path.read_text(encoding="utf-8")
        for placeholder, value in self._values.items():
            text = text.replace(placeholder, value)
        return text

    def __call__(self, *arguments: str) -> Done:
        return failwell(*arguments, "--store", str(self.state))

    def ran(self, ledger: str) -> list[str]:
        """What was begun so far, by the old version and by this one."""
        return (self.folder / ledger / "ran").read_text().split()

    def unlock(self, ledger: str, name: str) -> None:
        (self.folder / ledger / f"{name}.go").touch()

    def jobs(self) -> dict[str, Any]:
        """Every job by the name that it writes into the ledger."""
        shown = [self._shown("show", job["id"]) for job in self._shown("list")]
        return {job["arguments"]["name"]: job for job in shown}

    def _shown(self, *arguments: str) -> Any:
        with redirect_stdout(StringIO()) as out:
            assert main(["jobs", *arguments, "--json", "--store", str(self.state)]) == 0
        return json.loads(out.getvalue())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_the_recorded_store_names_no_machine() -> None:
    for path in RECORDED.rglob("*"):
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        assert not any(folder in text for folder in ("/tmp/", "/home/", "/Users/")), path


def test_a_run_that_halted_is_resumed_where_it_failed(store: Store) -> None:
    store.unlock("halted", "check")

    resumed = store("resume", "halted")

    assert resumed.code == 0, resumed.err
    assert resumed.data == {"fetched": 5, "published": 7}
    assert store.ran("halted") == ["fetch", "check", "check", "publish"]


def test_a_recorded_failure_is_shown_as_it_was_recorded(store: Store) -> None:
    shown = store("runs", "show", "halted")

    assert shown.code == 0, shown.err
    assert "external.ledger.locked" in shown.out
    assert "the ledger is locked" in shown.out


def test_a_run_whose_process_was_killed_is_resumed_without_what_was_done(store: Store) -> None:
    store.unlock("killed", "orders")

    resumed = store("resume", "killed")

    assert resumed.code == 0, resumed.err
    assert resumed.data == {"exported": 3, "total": 5}
    assert store.ran("killed") == ["users", "orders", "orders", "invoices", "total"]


def test_a_run_that_waits_at_a_gate_is_answered_and_resumed(store: Store) -> None:
    responded = store("gates", "answer", "gate", "approve", "publish")
    resumed = store("resume", "gate")

    assert responded.code == 0, responded.err
    assert resumed.code == 0, resumed.err
    assert resumed.data == {"approved": "publish", "published": 7}
    assert store.ran("gate") == ["fetch", "publish"]


def test_a_queue_is_worked_off_without_what_was_over(store: Store) -> None:
    before = store.jobs()
    store.unlock("jobs", "interrupted")

    worked = store("workers", "run", "--until-empty")
    after = store.jobs()

    assert worked.code == 0, worked.err
    assert {name: job["state"] for name, job in after.items()} == {
        "completed": "completed",
        "failed": "failed",
        "cancelled": "cancelled",
        "interrupted": "completed",
        "later": "completed",
        "first": "completed",
        "refused": "failed",
    }
    ran = store.ran("jobs")
    assert ran[:3] == ["completed", "failed", "interrupted"]
    assert sorted(ran[3:]) == ["first", "interrupted", "later", "refused"]
    assert ran.index("first") < ran.index("later")
    assert {name: after[name] for name in ("completed", "failed", "cancelled")} == {
        name: before[name] for name in ("completed", "failed", "cancelled")
    }
    assert after["interrupted"]["attempts"] == 2


def test_the_result_of_a_job_and_its_failure_are_kept(store: Store) -> None:
    jobs = store.jobs()

    assert jobs["completed"]["result"] == {"noted": "completed"}
    assert jobs["failed"]["error"]["kind"] == "internal.bug"
    assert jobs["failed"]["error"]["id"].startswith("err_")


def test_a_key_of_an_old_job_finds_it(store: Store) -> None:
    kept = store.jobs()["completed"]

    again = store("jobs", "submit", "note", "ledger=elsewhere", "name=again", "--key", "order-1", "--json")

    assert again.code == 0, again.err
    assert again.data["id"] == kept["id"]
    assert store.ran("jobs") == ["completed", "failed", "interrupted"]
