"""The table of commands: name, one line of help, and the module that implements it.

A module is imported when its command runs or its options are shown, never to list the commands.
"""

from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from failwell.cli.parser import Parser

TEXT, JSON, MARKDOWN = "text", "json", "markdown"
FORMATS = (TEXT, JSON, MARKDOWN)


class Command(NamedTuple):
    """One command. `formats` are those its data can take, the default one first."""

    name: str
    summary: str
    module: str = ""
    formats: tuple[str, ...] = FORMATS
    actions: tuple["Command", ...] = ()
    default: str = ""
    """The action that runs when none is named."""
    group: str = ""
    """The command that an action belongs to."""

    @property
    def full_name(self) -> str:
        """The words to type after `failwell`."""
        return f"{self.group} {self.name}".lstrip()

    @property
    def agent_format(self) -> str:
        """The format of data and errors under `--agent`."""
        return MARKDOWN if MARKDOWN in self.formats else JSON

    def action(self, name: str) -> "Command | None":
        """The action called `name`, if there is one."""
        return next((action for action in self.actions if action.name == name), None)

    def add_options(self, parser: "Parser") -> None:
        """Declare the arguments of this command."""
        name = f"add_{self.name}_options" if self.group else "add_options"
        cast("Callable[[Parser], None]", self._function(name))(parser)

    def plain_options(self, words: list[str]) -> list[str]:
        """The words after the command; for `run`, conductor's `--input.NAME=VALUE` is `--input NAME=VALUE`."""
        if self.full_name != "run":
            return words
        end = words.index("--") if "--" in words else len(words)
        options = [
            word.replace("--input.", "--input=", 1) if word.startswith("--input.") and "=" in word else word
            for word in words[:end]
        ]
        return options + words[end:]

    def run(self, args: Namespace) -> int:
        """Run it and return the exit code. Errors are raised."""
        name = f"run_{self.name}" if self.group else "run"
        return cast("Callable[[Namespace], int]", self._function(name))(args)

    def _function(self, name: str) -> object:
        return getattr(import_module(f"failwell.cli.{self.module}"), name)


def _group(name: str, summary: str, *actions: Command, default: str = "list") -> Command:
    own = tuple(action._replace(group=name) for action in actions)
    return Command(name, summary, formats=own[0].formats, actions=own, default=default)


_HELPERS = (TEXT, JSON)
COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        # errors
        Command("describe", "describe a traceback, a reply or a saved report", "errors.describe"),
        Command("classify", "classify saved failures, one JSON object a line", "errors.classify", (JSON,)),
        Command("explain", "explain a kind or a saved failure", "errors.explain"),
        Command("kinds", "list the kinds of failure", "errors.kinds"),
        Command("doctor", "check that the errors of installed SDKs are known", "errors.doctor"),
        Command("schema", "print a JSON Schema: report, problem or workflow file", "errors.schema", (JSON,)),
        _group(
            "helpers",
            "list and copy the files that raise typed errors from scripts",
            Command("list", "list the helper files", "errors.script_files", _HELPERS),
            Command("path", "print the path of a helper file", "errors.script_files", _HELPERS),
            Command("copy", "copy helper files into a folder", "errors.script_files", _HELPERS),
        ),
        _group(
            "lab",
            "run a local server that fails like providers fail",
            Command("serve", "run the server", "errors.lab"),
            Command("list", "list the dialects and scenarios of the server", "errors.lab"),
            default="",
        ),
        # workflows
        Command("init", "write a workflow file to start from", "runs.init"),
        Command("validate", "report every mistake in workflow files", "runs.validate"),
        Command("show", "draw the graph of a workflow", "runs.show"),
        Command("run", "run a workflow file", "runs.run"),
        Command("resume", "resume a run", "runs.resume"),
        Command("stop", "stop a running workflow", "runs.stop"),
        _group(
            "runs",
            "list, show, follow, export and prune recorded runs",
            Command("list", "list recorded runs", "runs.runs"),
            Command("show", "show one run and its next step", "runs.runs_show"),
            Command("logs", "show what the steps of a run print", "runs.logs"),
            Command("tail", "follow the events of a run", "runs.events"),
            Command("export", "export the events of a run", "runs.events"),
            Command("prune", "delete old runs", "runs.runs"),
        ),
        _group(
            "gates",
            "list and answer pending gates",
            Command("list", "list pending gates", "runs.gates"),
            Command("answer", "answer a pending gate", "runs.gates"),
        ),
        _group(
            "effects",
            "list effects of tools, and settle those whose outcome is unknown",
            Command("list", "list effects", "effects"),
            Command("show", "show one effect and its result", "effects"),
            Command("settle", "record that an effect happened, and its result", "effects"),
            Command("release", "let an effect be run again", "effects"),
        ),
        _group(
            "audit",
            "show, verify and export what agents did and what people answered",
            Command("show", "show the records of the audit", "audit"),
            Command("verify", "check that no record was changed or removed", "audit"),
            Command("export", "export the records of the audit", "audit"),
            default="",
        ),
        # sessions
        Command("chat", "talk to an agent", "sessions.chat", (TEXT, JSON)),
        _group(
            "sessions",
            "list, show, export and delete recorded sessions",
            Command("list", "list recorded sessions", "sessions.sessions"),
            Command("show", "show one session and what was said in it", "sessions.sessions"),
            Command("export", "export the events of a session", "sessions.sessions", (JSON,)),
            Command("delete", "delete a session", "sessions.sessions"),
        ),
        # jobs
        _group(
            "jobs",
            "submit, list, show, cancel and retry jobs",
            Command("list", "list recorded jobs", "jobs.jobs"),
            Command("submit", "submit a job, or many", "jobs.submit"),
            Command("show", "show one job and its events", "jobs.jobs_show"),
            Command("stats", "count jobs by status, kind of error and instance", "jobs.bulk"),
            Command("cancel", "cancel a job, or many", "jobs.jobs"),
            Command("retry", "submit the work of a job again, or of many", "jobs.submit"),
            Command("wait", "wait for a job to end", "jobs.submit"),
            Command("logs", "show what a job prints", "jobs.logs"),
            Command("tail", "follow the events of jobs", "jobs.tail"),
            Command("prune", "delete jobs that have ended", "jobs.jobs"),
        ),
        _group(
            "groups",
            "list and show groups of jobs that were submitted together",
            Command("list", "list groups of jobs", "jobs.groups"),
            Command("show", "show one group and its failures", "jobs.groups"),
        ),
        _group(
            "schedules",
            "list, pause, resume, run and remove schedules of jobs",
            Command("list", "list schedules with their next time", "jobs.schedules"),
            Command("pause", "submit no more jobs of a schedule", "jobs.schedules"),
            Command("resume", "submit jobs of a paused schedule again", "jobs.schedules"),
            Command("run", "submit a job of a schedule now", "jobs.schedules"),
            Command("remove", "remove a schedule that a client added", "jobs.schedules"),
        ),
        _group(
            "capabilities",
            "register and configure tools that run in their own processes",
            Command("list", "list registered capabilities", "jobs.capabilities"),
            Command("add", "register a capability", "jobs.capabilities"),
            Command("remove", "unregister a capability", "jobs.capabilities"),
            Command(
                "check",
                "load a capability and check its configuration",
                "jobs.capability_check",
            ),
            Command(
                "prefetch",
                "let a capability fetch its models and data",
                "jobs.capabilities",
            ),
            Command("enable", "let a capability run jobs", "jobs.capabilities"),
            Command("disable", "stop a capability from running jobs", "jobs.capabilities"),
            Command("config", "show or change the configuration", "jobs.capabilities"),
            Command("secret", "show which secrets are set, or set one", "jobs.capabilities"),
        ),
        _group(
            "workers",
            "run submitted jobs, or list the workers",
            Command("list", "list the workers", "jobs.workers"),
            Command("run", "run submitted jobs", "jobs.workers"),
        ),
        Command("top", "show workers, memory and the queue live", "jobs.top"),
        # several machines
        _group(
            "temporal",
            "run workflows and jobs on several machines",
            Command("worker", "run workflows and jobs of a Temporal server", "temporal.worker"),
            Command("dev", "run a Temporal server for development", "temporal.dev"),
            default="",
        ),
        # the shell
        Command("completion", "print a completion script for a shell", "completion", (TEXT,)),
    )
}


VALUE_OPTIONS = ("--error-format", "--format", "--color")
"""Options of the program itself that take a value."""


def command_index(words: list[str]) -> int | None:
    """The index of the command, after the options of the program itself."""
    is_value = False
    for index, word in enumerate(words):
        if is_value:
            is_value = False
        elif word == "--":
            return None
        elif word.startswith("-"):
            is_value = word in VALUE_OPTIONS
        else:
            return index
    return None


def find_command(words: list[str]) -> Command | None:
    """The command or action that `words` name, or `None`."""
    index = command_index(words)
    command = None if index is None else COMMANDS.get(words[index])
    if index is None or command is None or not command.actions:
        return command
    name = words[index + 1] if words[index + 1 :] else ""
    return command.action(command.default if not name or name.startswith("-") else name)
