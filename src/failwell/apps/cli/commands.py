"""The table of commands: a name, a line of help, the module that does it.

A module is imported when its command runs (or its options are shown), never to list the commands,
so `failwell --help` stays as fast as the interpreter allows.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple, cast

TEXT, JSON, MARKDOWN = "text", "json", "markdown"
FORMATS = (TEXT, JSON, MARKDOWN)


class Command(NamedTuple):
    """One subcommand. `formats` are those its data can take, the default one first."""

    name: str
    summary: str
    module: str
    formats: tuple[str, ...] = FORMATS

    @property
    def for_agents(self) -> str:
        """The format of its data and its errors when an agent did not name one."""
        return MARKDOWN if MARKDOWN in self.formats else JSON

    def add_options(self, parser: ArgumentParser) -> None:
        """Declare what this command takes."""
        cast("Callable[[ArgumentParser], None]", self._part("add_options"))(parser)

    def run(self, args: Namespace) -> int:
        """Do it; the exit code comes back, and anything that goes wrong is raised."""
        return cast("Callable[[Namespace], int]", self._part("run"))(args)

    def _part(self, name: str) -> object:
        return getattr(import_module(f"failwell.apps.cli.{self.module}"), name)


COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command("validate", "say everything that is wrong with workflow files", "workflows.validate"),
        Command("show", "draw the graph of a workflow", "workflows.show"),
        Command("run", "run a workflow file", "workflows.run"),
        Command("resume", "take a run up where it was left", "workflows.resume"),
        Command("gate", "list and answer the questions that runs wait with", "workflows.gates"),
        Command("stop", "ask a run that is going on to end", "workflows.stop"),
        Command("capability", "register tools that run in processes of their own", "jobs.capabilities"),
        Command("describe", "say what a traceback, a reply or a saved report means", "errors.describe"),
        Command("classify", "judge saved failures, one JSON object a line", "errors.classify", (JSON,)),
        Command("explain", "explain a kind: cause, remedy, example", "errors.explain"),
        Command("kinds", "list the kinds of failure and what follows from each", "errors.kinds"),
        Command("runs", "list and show recorded runs, follow, export and prune them", "workflows.runs"),
        Command("job", "hand in jobs, see how they stand, stop and repeat them", "jobs.jobs"),
        Command("workers", "run the jobs that were handed in, or see who does", "jobs.workers"),
        Command("top", "show workers, memory and the queue as they are now", "jobs.top"),
        Command("doctor", "say whether the errors of the installed SDKs are known", "errors.doctor"),
        Command(
            "schema",
            "print the JSON Schema of a report, a problem or a workflow file",
            "errors.schema",
            (JSON,),
        ),
        Command(
            "helpers", "find the files with which scripts raise typed errors", "errors.helpers", (TEXT, JSON)
        ),
        Command("lab", "run a local server that fails the way providers fail", "errors.lab"),
        Command("completion", "print a completion script for a shell", "completion", (TEXT,)),
    )
}
