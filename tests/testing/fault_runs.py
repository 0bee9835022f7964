"""Runs pytest with the fault plugin in a process of its own, and notes every address that it would have reached."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

SRC = Path(__file__).resolve().parents[2] / "src"
WATCH = """
import sys

def watch(event, args):
    if event == "socket.connect" and isinstance(args[1], tuple) and not str(args[1][0]).startswith(("127.", "::1")):
        note(str(args[1][0]))
    if event == "socket.getaddrinfo" and args[0] not in ("localhost", "127.0.0.1", "::1", None, ""):
        note(str(args[0]))

def note(address):
    with open("addresses.txt", "a") as file:
        file.write(address + "\\n")

sys.addaudithook(watch)
"""


class FaultRun(NamedTuple):
    """What such a run printed and wrote."""

    code: int
    output: str
    report: dict[str, Any]
    addresses: list[str]
    """Addresses beside this machine that were looked up or connected to."""

    def outcomes(self) -> dict[tuple[str, str], str]:
        """Test and fault → outcome."""
        return {
            (row["test"].rpartition("::")[2], row["fault"]): row["outcome"] for row in self.report["outcomes"]
        }

    def row(self, test: str, fault: str) -> dict[str, Any]:
        """All that the report says about a test under a fault."""
        return next(
            row
            for row in self.report["outcomes"]
            if (row["test"].rpartition("::")[2], row["fault"]) == (test, fault)
        )


def run_under_faults(folder: Path, source: str, *arguments: str) -> FaultRun:
    """Write `source` as a test file into `folder` and run it."""
    (folder / "conftest.py").write_text(WATCH)
    (folder / "test_agent.py").write_text(source)
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "failwell.testing.pytest_plugin", "-p", "no:cacheprovider",
         "-p", "no:langsmith_plugin", "-W", "error", "--rootdir", str(folder), *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    report = folder / "report.json"
    addresses = folder / "addresses.txt"
    return FaultRun(
        done.returncode,
        done.stdout + done.stderr,
        json.loads(report.read_text()) if report.exists() else {},
        addresses.read_text().split() if addresses.exists() else [],
    )
