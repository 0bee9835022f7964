"""Runs the command: in this process by default, in a process of its own where that is the point."""

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from failwell.apps.cli.main import main

SRC = Path(__file__).resolve().parents[2] / "src"


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Stdout as JSON."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The one JSON object on stderr."""
        return json.loads(self.err)


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR"}}
    return {**kept, "PYTHONPATH": str(SRC), "PYTHONIOENCODING": "utf-8", **changes}


class _Stream(io.TextIOWrapper):
    """A stream that is no terminal, and keeps what was written."""

    def __init__(self, content: bytes = b"") -> None:
        super().__init__(io.BytesIO(content), encoding="utf-8", errors="backslashreplace", newline="")

    @property
    def text(self) -> str:
        self.flush()
        held = self.buffer
        assert isinstance(held, io.BytesIO)
        return held.getvalue().decode()


def failwell(
    *arguments: str,
    given: str | bytes = "",
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> Done:
    """Run `failwell` in this process, with these arguments and this on its stdin."""
    out, err = _Stream(), _Stream()
    stdin = _Stream(given.encode() if isinstance(given, str) else given)
    before = dict(os.environ)
    streams = sys.stdin, sys.stdout, sys.stderr
    with contextlib.chdir(cwd or Path.cwd()):
        try:
            os.environ.clear()
            os.environ.update(environment(**(env or {})))
            sys.stdin, sys.stdout, sys.stderr = stdin, out, err
            code = main(list(arguments))
        finally:
            sys.stdin, sys.stdout, sys.stderr = streams
            os.environ.clear()
            os.environ.update(before)
    return Done(int(code), out.text, err.text)


def failwell_process(
    *arguments: str,
    given: str | bytes = "",
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 30,
) -> Done:
    """Run `failwell` in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "failwell", *arguments],
        input=given.encode() if isinstance(given, str) else given,
        capture_output=True,
        check=False,
        timeout=timeout,
        env=environment(**(env or {})),
        cwd=cwd,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())
