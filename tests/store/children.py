"""Programs that tests run in processes of their own, to end them as only the system can."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def start(program: str, *arguments: str | Path) -> "subprocess.Popen[str]":
    """Run `program`; what it prints can be read line by line."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
    )


def next_line(child: "subprocess.Popen[str]") -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def finish(child: "subprocess.Popen[str]") -> str:
    """Everything it still prints; it must end well."""
    out, _ = child.communicate(timeout=30)
    assert child.returncode == 0
    return out


def kill(child: "subprocess.Popen[str]") -> None:
    """End it without letting it say a word."""
    child.kill()
    child.wait(timeout=30)
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            stream.close()
