"""Runs the command for real, in a process of its own."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SRC = Path(__file__).resolve().parents[2] / "src"


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """What stdout says, as JSON."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The one JSON object on stderr."""
        return json.loads(self.err)


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR"}}
    return {**kept, "PYTHONPATH": str(SRC), "PYTHONIOENCODING": "utf-8", **changes}


def failwell(*arguments: str, given: str | bytes = "", env: dict[str, str] | None = None) -> Done:
    """Run `failwell` with these arguments and this on its stdin."""
    done = subprocess.run(
        [sys.executable, "-m", "failwell", *arguments],
        input=given.encode() if isinstance(given, str) else given,
        capture_output=True,
        check=False,
        timeout=30,
        env=environment(**(env or {})),
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())
