"""A folder with a stage file, the replies of a scripted model and a state folder; stages run through the command."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.cli.running import Done, failwell

HEAD = """\
workflow:
  name: machine
  entry_point: {entry}
  runtime: {{default_model: "scripted:replies.yaml"}}
"""


class StagePlace:
    """Writes files, runs them, and reads what was recorded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "state"

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def script(self, **replies: Sequence[Mapping[str, Any]]) -> None:
        """The replies of the model by stage; `_2` at the end of a name is its second attempt."""
        agents = {name.replace("__", "#"): list(entries) for name, entries in replies.items()}
        self.write("replies.yaml", json.dumps({"agents": agents}))

    def run(self, stages: str, *options: str, entry: str = "a", head: str = HEAD) -> Done:
        """`failwell run` of a file with these stages."""
        self.write("machine.yaml", head.format(entry=entry) + stages)
        return self.command("run", "machine.yaml", *options)

    def command(self, *words: str) -> Done:
        """A command, with the store of this place."""
        return failwell(
            *words, "--quiet", "--error-format", "json", "--store", str(self.store), cwd=self.folder
        )  # fmt: skip

    def events(self, *types: str, run: str = "last") -> list[dict[str, Any]]:
        """The recorded events, of some types."""
        done = failwell("runs", "export", run, "--store", str(self.store), cwd=self.folder)
        entries = [json.loads(line) for line in done.out.splitlines()]
        return [entry for entry in entries if not types or entry["type"] in types]

    def phases(self, stage: str) -> list[str]:
        """The beginnings and ends of a stage's phases, such as `1 setup`, `1 /setup`."""
        marks = {"phase:started": "", "phase:ended": "/"}
        return [
            f"{entry['data']['attempt']} {marks[entry['type']]}{entry['data']['phase']}"
            for entry in self.events(*marks)
            if entry["data"]["path"] == stage
        ]


def error_of(done: Done) -> dict[str, Any]:
    """The failure that a run printed."""
    return next(json.loads(line) for line in done.err.splitlines() if line.startswith("{"))


def paired(*phases: str, attempt: int = 1) -> list[str]:
    """The beginnings and ends of phases that follow each other."""
    return [f"{attempt} {mark}{phase}" for phase in phases for mark in ("", "/")]
