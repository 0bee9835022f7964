"""Runs the command: in this process by default, in a process of its own where that is the point."""

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, TextIO

from failwell.cli.main import main

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
    together: bool = False,
) -> Done:
    """Run `failwell` in this process, with these arguments and this on its stdin; both streams `together` are `out`."""
    out = _Stream()
    err = out if together else _Stream()
    stdin = _Stream(given.encode() if isinstance(given, str) else given)
    code = _main(arguments, (stdin, out, err), env, cwd)
    return Done(code, out.text, "" if together else err.text)


def failwell_at_terminal(
    *arguments: str, typed: str, env: dict[str, str] | None = None, cwd: Path | None = None
) -> Done:
    """Run `failwell` in this process with a terminal as stdin and stderr, where `typed` waits; `err` is the screen."""
    leader, follower = os.openpty()
    out, screen = _Stream(), bytearray()

    def read() -> None:
        with contextlib.closing(os.fdopen(leader, "rb", buffering=0)) as ours:
            try:
                while part := ours.read(4096):
                    screen.extend(part)
            except OSError:
                # Linux reports the end of a terminal that nobody has open as an error.
                pass

    os.write(leader, typed.encode())
    reader = Thread(target=read)
    reader.start()
    try:
        with (
            os.fdopen(os.dup(follower), encoding="utf-8") as stdin,
            os.fdopen(follower, "w", encoding="utf-8") as err,
        ):
            code = _main(arguments, (stdin, out, err), env, cwd)
    finally:
        reader.join()
    return Done(code, out.text, screen.decode())


def _main(
    arguments: tuple[str, ...],
    streams: tuple[TextIO, TextIO, TextIO],
    env: dict[str, str] | None,
    cwd: Path | None,
) -> int:
    variables = dict(os.environ)
    before = sys.stdin, sys.stdout, sys.stderr
    with contextlib.chdir(cwd or Path.cwd()):
        try:
            os.environ.clear()
            os.environ.update(environment(**(env or {})))
            sys.stdin, sys.stdout, sys.stderr = streams
            return int(main(list(arguments)))
        finally:
            sys.stdin, sys.stdout, sys.stderr = before
            os.environ.clear()
            os.environ.update(variables)


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
