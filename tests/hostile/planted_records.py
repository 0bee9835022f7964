"""A capability and a workflow that say what nobody may store, and where it was found afterwards."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.canary.canaries import noise
from tests.cli.running import Done, failwell

KEY = noise(32)
"""The body of a secret with a known shape."""
MODULE = """
import logging
import os
import sys
import threading

KEY = "sk-proj-" + os.environ["BODY"]


def say(source):
    return f"Ottoline Quarles, told by {source}, key {KEY}"


class Odd(Exception):
    def __init__(self, text):
        self.text = text

    def __str__(self):
        return self.text

    def __repr__(self):
        return f"Odd({self.text!r})"


class Tool:
    def message(self):
        raise RuntimeError(say("message"))

    def argument(self):
        raise OSError(5, say("argument"))

    def cause(self):
        try:
            raise KeyError(say("cause"))
        except KeyError as error:
            raise RuntimeError("x") from error

    def context(self):
        try:
            raise KeyError(say("context"))
        except KeyError:
            raise RuntimeError("x")

    def note(self):
        try:
            error = ValueError("x")
            error.add_note(say("note"))
            raise error
        except ValueError as error:
            raise RuntimeError("y") from error

    def member(self):
        raise ExceptionGroup("x", [ValueError(say("member"))])

    def variable(self):
        text = say("variable")
        return len(text) / 0

    def odd(self):
        raise Odd(say("odd"))

    def source(self):
        raise RuntimeError("x")  # Ottoline Quarles, told by source

    def below_a_fault(self):
        from failwell.capability import CapabilityFatalError

        try:
            raise ValueError(say("below_a_fault"))
        except ValueError as error:
            raise CapabilityFatalError("the model file is damaged") from error

    def key(self):
        return {say("key"): object()}

    def logged(self):
        try:
            raise ValueError(say("logged"))
        except ValueError:
            logging.getLogger("tool").exception("the conversion failed")

    def threaded(self):
        def work():
            raise ValueError(say("threaded"))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    def printed(self):
        print(say("printed"))

    def death(self):
        sys.__stderr__.write(say("death") + "\\n")
        sys.__stderr__.flush()
        os._exit(3)

    def cleanup(self):
        raise RuntimeError(say("hook"))


class Failing:
    def execute(self):
        raise RuntimeError(say("node"))


class Unprepared:
    def initialize(self, config):
        raise RuntimeError(say("initialize"))

    def execute(self):
        pass
"""
BROKEN = """
from tool import say

raise RuntimeError(say("imported"))
"""
ACTIONS = (
    "message", "argument", "cause", "context", "note", "member", "variable", "odd", "source", "below_a_fault", "key", "logged",
    "threaded", "death", "printed",
)  # fmt: skip
# A process that died last would not be started again, and its hook would not be called.
SOURCES = (*ACTIONS, "hook", "initialize", "imported")
OUTPUT = frozenset({"printed", "death"})
"""Sources that are output: what the capability itself printed."""
WORKFLOW = """
workflow: {name: flow, entry_point: script}
agents:
  - name: script
    type: script
    command: sh
    args: ["-c", "printf 'Ottoline Quarles, told by %s, key sk-proj-%s' stderr $BODY >&2; exit 3"]
    raises: [external.x]
    ROUTES
  - name: tool
    type: job
    job: failing
"""
ROUTES = """routes:
      - {on_error: true, when: "{{ 'by stderr' in error.message and 'by stderr' in error.details.stderr_tail }}", to: tool}
"""


class Planted:
    """One state folder, and a source for every way in which text can reach it."""

    def __init__(self, folder: Path, policy: str | None, manifest: str | None = None) -> None:
        self.folder = folder
        self.state = folder / "state"
        self._env = {"BODY": KEY, "FAILWELL_TRACEBACK": policy or ""}
        self._furnish("" if manifest is None else f'traceback = "{manifest}"\n')
        self.jobs: dict[str, str] = {}

    def run_jobs(self) -> None:
        """Run a job for every source."""
        self.jobs = {name: self._submit("tool", "--action", name) for name in ACTIONS}
        self.jobs |= {"initialize": self._submit("unprepared"), "imported": self._submit("broken")}
        self("workers", "run", "--until-empty")

    def _furnish(self, more: str) -> None:
        (self.folder / "tool.py").write_text(MODULE)
        (self.folder / "broken.py").write_text(BROKEN)
        for name, target in (
            ("tool", "tool:Tool"),
            ("failing", "tool:Failing"),
            ("unprepared", "tool:Unprepared"),
            ("broken", "broken:Tool"),
        ):
            file = self.folder / f"{name}.toml"
            file.write_text(f'name = "{name}"\nobject = "{target}"\ninherit = ["BODY"]\n{more}')
            assert self("capabilities", "add", str(file)).code == 0

    def _submit(self, name: str, *options: str) -> str:
        return self("jobs", "submit", name, *options, "--attempts", "1", "--json").data["id"]

    def __call__(self, *arguments: str) -> Done:
        return failwell(*arguments, "--store", str(self.state), env=self._env)

    def run(self, *, handled: bool) -> Done:
        """Run the workflow: a script that fails, and then, if that is handled, a job that fails."""
        file = self.folder / "flow.yaml"
        file.write_text(WORKFLOW.replace("ROUTES", ROUTES if handled else "routes: []"))
        return self("run", str(file), "--json")

    def recorded(self) -> set[str]:
        """The sources whose text is in any file of the state folder, the output of jobs left out."""
        return sources_in("".join(_text(path) for path in self._files() if path.parent.name != "lines"))

    def printed(self) -> set[str]:
        """The sources whose text is in the output of jobs."""
        return sources_in("".join(_text(path) for path in self._files() if path.parent.name == "lines"))

    def all_bytes(self) -> str:
        """Every file of the state folder."""
        return "".join(map(_text, self._files()))

    def shown(self) -> str:
        """What the commands print about every job, without the output of the jobs."""
        texts: list[str] = []
        for job in self.jobs.values():
            shown = self("jobs", "show", job, "--json").data
            shown.pop("lines", None)
            texts.append(json.dumps(shown))
            for form in ("text", "markdown"):
                whole = self("jobs", "show", job, "--format", form).out
                texts.append(whole.partition("\nprinted\n")[0].partition("\n## printed")[0])
        texts.append(self("jobs", "list", "--json").out)
        return "".join(texts)

    def report(self, source: str) -> dict[str, Any]:
        """The stored report of a job that failed."""
        with closing(sqlite3.connect(self.state / "journal.db")) as connection:
            [[error]] = connection.execute(
                "SELECT error FROM jobs WHERE id = ?", (self.jobs[source],)
            ).fetchall()
        return json.loads(error)

    def events(self) -> list[dict[str, Any]]:
        """The data of every event of every run."""
        with closing(sqlite3.connect(self.state / "journal.db")) as connection:
            rows = connection.execute("SELECT data FROM events ORDER BY id").fetchall()
        return [json.loads(data) for (data,) in rows]

    def _files(self) -> list[Path]:
        return [path for path in sorted(self.state.rglob("*")) if path.is_file()]


def _text(path: Path) -> str:
    return path.read_bytes().decode("latin-1")


def sources_in(text: str) -> set[str]:
    """The sources whose text is in `text`."""
    return {source for source in (*SOURCES, "stderr", "node") if f"told by {source}" in text}
