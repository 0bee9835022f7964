"""Records what one version leaves behind: `python tests/compatibility/record.py VERSION SRC`.

`SRC` is the `src` folder of that version's tree. Its command line is driven in processes of its own; some of them are killed.
The state folder that it leaves is written below `tests/compatibility/VERSION/recorded` as text: a dump of the database, and the
files beside it. What belongs to this machine becomes a placeholder that is replaced when the store is built again: `@FOLDER@`
(the state, the ledgers and the version's own files), `@SOURCE@` (that version's code), `@HOST@` and `@PID@` (processes that
were killed).
"""

import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

HERE = Path(__file__).resolve().parent
LEDGERS = ("halted", "killed", "gate", "jobs")


class Recorder:
    """Runs the commands of one version in a folder."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.folder = folder
        self.replaced = {
            re.escape(str(folder)): "@FOLDER@",
            re.escape(str(source)): "@SOURCE@",
            rf"(?<=[\"'']){re.escape(socket.gethostname())}(?=[\"''])": "@HOST@",
        }
        """Pattern of this machine to its placeholder."""
        self._environ = {**os.environ, "PYTHONPATH": str(source), "FAILWELL_STORE": str(folder / "state")}

    def start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-m", "failwell", *arguments],
            cwd=self.folder,
            env=self._environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def __call__(self, *arguments: str, code: int = 0) -> str:
        process = self.start(*arguments)
        printed = process.communicate(timeout=60)[0].decode()
        if process.returncode != code:
            raise SystemExit(f"{arguments} ended with {process.returncode}, not {code}:\n{printed}")
        return printed

    def kill_when(self, process: "subprocess.Popen[bytes]", ledger: str, line: str) -> None:
        """Kill it once that step was begun."""
        ran = self.folder / ledger / "ran"
        while not (ran.exists() and line in ran.read_text().split()):
            time.sleep(0.02)
        # What has begun is on record a moment before; this is the moment after.
        time.sleep(0.5)
        process.kill()
        process.communicate()
        self.replaced[rf"(?<![\d.]){process.pid}(?![\d.])"] = "@PID@"

    def portable(self, text: str) -> str:
        """The text without anything of this machine."""
        for pattern, placeholder in self.replaced.items():
            text = re.sub(pattern, placeholder, text)
        return text


def runs(failwell: Recorder) -> None:
    """A run that ended with an error, one whose host was killed, one that waits at a gate."""
    for name, code in (("halted", 3), ("gate", 4)):
        ledger = f"ledger={failwell.folder / name}"
        failwell("run", f"workflows/{name}.yaml", "-i", ledger, "--run-id", name, "--no-input", code=code)
    host = failwell.start(
        "run", "workflows/killed.yaml", "-i", f"ledger={failwell.folder / 'killed'}", "--run-id", "killed"
    )
    failwell.kill_when(host, "killed", "orders")


def jobs(failwell: Recorder) -> None:
    """Jobs that completed, failed, were cancelled, wait, and were running when their host was killed."""
    ledger = f"ledger={failwell.folder / 'jobs'}"
    for name in ("note", "refuse", "slow"):
        failwell("capability", "add", f"capabilities/{name}.toml")
    failwell("job", "submit", "note", ledger, "name=completed", "--key", "order-1", "--wait")
    failwell("job", "submit", "refuse", ledger, "name=failed", "--wait", code=1)
    cancelled = failwell("job", "submit", "note", ledger, "name=cancelled").split()[0]
    failwell("job", "cancel", cancelled)
    failwell("job", "submit", "slow", ledger, "name=interrupted", "--key", "order-2")
    host = failwell.start("workers", "run")
    failwell.kill_when(host, "jobs", "interrupted")
    failwell("job", "submit", "note", ledger, "name=later")
    failwell("job", "submit", "note", ledger, "name=first", "--priority", "5", "--key", "order-3")
    failwell("job", "submit", "refuse", ledger, "name=refused", "--attempts", "1")


def write_down(failwell: Recorder, target: Path) -> None:
    """The state folder as text."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    folder = failwell.folder
    state = folder / "state"
    with closing(sqlite3.connect(state / "journal.db")) as database:
        lines = [f"PRAGMA user_version = {database.execute('PRAGMA user_version').fetchone()[0]};"]
        lines += [f"PRAGMA application_id = {database.execute('PRAGMA application_id').fetchone()[0]};"]
        lines += database.iterdump()
    (target / "journal.sql").write_text(failwell.portable("\n".join(lines)) + "\n", encoding="utf-8")
    for root in (state, *(folder / name for name in LEDGERS)):
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.stat().st_size and not path.name.startswith("journal.db"):
                copy = target / path.relative_to(folder)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(failwell.portable(path.read_text(encoding="utf-8")), encoding="utf-8")


def main() -> None:
    """Record one version."""
    version, source = sys.argv[1], Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for part in ("workflows", "capabilities"):
            shutil.copytree(HERE / version / part, folder / part)
        for ledger in LEDGERS:
            (folder / ledger).mkdir()
        failwell = Recorder(source, folder)
        runs(failwell)
        jobs(failwell)
        write_down(failwell, HERE / version / "recorded")


if __name__ == "__main__":
    main()
