"""Plays a page as a reader would: saves the files it shows, types its commands, compares what they print.

A block of YAML, shell, Python or text whose first line is a comment with a file's name is that file. In a `console`
block, lines that begin with `$ ` are typed, and what follows must be what they print, both streams together, as a
terminal shows them. What needs no shell is run in this process. `…` stands for any part of a line, and a line `...` for any number of lines. A command must succeed
unless the next one is `echo $?`, which then has to print its code. `cat FILE` gives a file that is not there yet the
content that follows. Lines with `make` are left to the reader.
"""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.cli.running import failwell

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"(?:#!/bin/sh\n)?(?:#|//) ([\w./-]+\.[a-z]+)\n")
_PLAIN = re.compile(r"failwell( [^\s|&;<>()$`\\*?#~]+)+")
"""A command that means the same without a shell; quotes are read as a shell does."""
_NAMED = frozenset({"yaml", "sh", "python", "js", "json", "toml"})


@dataclass(frozen=True, slots=True)
class Typed:
    """One command of a page, and what the page says that it prints."""

    line: str
    expected: tuple[str, ...]


class Session:
    """A reader's folder and terminal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._code = 0
        programs = folder / ".bin"
        programs.mkdir()
        for name, command in (("failwell", "-m failwell "), ("python", "")):
            shim = programs / name
            shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" {command}"$@"\n')
            shim.chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if name not in {"FORCE_COLOR", "COLUMNS"}}
        self._environment = {
            **kept,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "src"),
            "FAILWELL_STORE": str(folder / ".store"),
            "NO_COLOR": "1",
        }

    def play(self, page: Path) -> list[str]:
        """Everything on the page that is not as the page says."""
        wrong: list[str] = []
        for language, body in FENCE.findall(page.read_text("utf-8")):
            if language == "console":
                wrong += self._type(typed_in(body))
            elif language in _NAMED and (named := _FILE.match(body)):
                path = self.folder / named[1]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(body, encoding="utf-8")
        return wrong

    def _type(self, several: list[Typed]) -> list[str]:
        wrong: list[str] = []
        for index, one in enumerate(several):
            if re.match(r"(\w+=\S+ )*make\b", one.line):
                continue
            shown = re.fullmatch(r"cat ([\w.-]+)", one.line)
            if shown and not (self.folder / shown[1]).exists():
                (self.folder / shown[1]).write_text("\n".join([*one.expected, ""]), encoding="utf-8")
            asks_code = index + 1 < len(several) and several[index + 1].line == "echo $?"
            self._code, printed = self._run(one.line)
            if self._code != 0 and not asks_code:
                wrong.append(f"`{one.line}` ended with {self._code}:\n{printed}")
            elif one.expected and not _fits(one.expected, printed):
                wrong.append(f"`{one.line}` printed\n{printed}\nand not\n" + "\n".join(one.expected))
        return wrong

    def _run(self, line: str) -> tuple[int, str]:
        """The exit code of a command, and what it printed."""
        if _PLAIN.fullmatch(line):
            done = failwell(*shlex.split(line)[1:], env=self._environment, cwd=self.folder, together=True)
            return done.code, done.out
        ran = subprocess.run(
            ["bash", "-c", f"(exit {self._code}); {line}"],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        return ran.returncode, ran.stdout


def typed_in(body: str) -> list[Typed]:
    """The commands of a console block; a backslash at the end of a line carries it on."""
    found: list[Typed] = []
    line, expected = "", list[str]()
    for text in body.replace("\\\n", "").splitlines():
        if text.startswith("$ "):
            if line:
                found.append(Typed(line, tuple(expected)))
            line, expected = text[2:], []
        else:
            expected.append(text)
    return [*found, Typed(line, tuple(expected))] if line else found


def _fits(expected: tuple[str, ...], printed: str) -> bool:
    pattern = ""
    for line in expected:
        pattern += (
            r"(?:[^\n]*\n)*"
            if line == "..."
            else ".*".join(re.escape(part) for part in line.split("…")) + r" *\n"
        )
    return re.fullmatch(pattern, printed if printed.endswith("\n") else f"{printed}\n") is not None
