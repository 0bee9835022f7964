"""Commands: one that the file writes out, and one that a model chooses from an exact list. No shell is involved.

A command runs as a script node does: it is stopped with everything that it started.
"""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from failwell.agents.tools.tool import Tool, ToolContext
from failwell.errors.faults import ToolTerminal, ToolTransient
from failwell.processes.capture import Capture, OutputSecrets
from failwell.processes.run_processes import RunProcesses
from failwell.processes.script import ScriptProcess, unbroken
from failwell.processes.tree import MARKER

SECONDS = 30.0
LONGEST = 120.0
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "LOGNAME")
_KEPT = 256 * 1024
"""Bytes of each stream that are kept."""


class CommandRunner:
    """Runs the commands of one run's tools. Call `close` when the run has ended."""

    def __init__(self, folder: Path) -> None:
        self._processes = RunProcesses(folder)
        self._secrets = OutputSecrets()

    async def run(self, call: Sequence[str], context: ToolContext, seconds: float) -> dict[str, Any]:
        """The exit code and the output of a command.

        Raises:
            ToolTransient: it did not end in time, and was stopped.
            ToolTerminal: it could not be started.
        """
        name = self._processes.next_name()
        stem = f"{self._processes.run_folder}/spill/{name}"
        out = Capture(f"{stem}.stdout", limit=_KEPT, secrets=self._secrets)
        err = Capture(f"{stem}.stderr", limit=_KEPT, secrets=self._secrets)
        try:
            process = ScriptProcess(
                call, env=_environment(name), mark=name, out=out, err=err, cwd=str(context.folder)
            )
        except (OSError, ValueError) as error:
            out.close()
            err.close()
            raise ToolTerminal(
                kind="tool.failed", message="the command could not be started", details={"reason": "spawn"}
            ) from error
        self._processes.watch(process)
        has_ended = False
        code: int | None = None
        try:
            has_ended = await process.ended(seconds)
        finally:
            if has_ended:
                code = self._processes.ended(process, name)
            else:
                await unbroken(self._stop(process, context.grace))
            out.close()
            err.close()
        if code is None:
            raise ToolTransient(
                kind="tool.timeout",
                message=f"the command did not end within {seconds:g} s",
                details={"timeout": seconds},
            )
        return {"exit_code": code, "stdout": out.text(), "stderr": err.text()}

    async def close(self, grace: float) -> object:
        """Stop what the commands have left running."""
        return await unbroken(self._processes.close(grace))

    async def _stop(self, process: ScriptProcess, grace: float) -> None:
        await process.stop(grace)
        self._processes.stopped(process)


def command(name: str, argv: Sequence[str], properties: Mapping[str, Any], runner: CommandRunner) -> Tool:
    """A tool whose command the file writes out. `{name}` stands for an argument; each stays one word."""
    names = sorted({match for word in argv for match in _PLACEHOLDER.findall(word)})

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
        call = [_filled(word, arguments) for word in argv]
        return await runner.run(call, context, SECONDS)

    def check(arguments: Mapping[str, Any], _context: ToolContext) -> str | None:
        for argument in names:
            if "\0" in _word(arguments.get(argument, "")):
                return "zero_byte"
        for word in argv:
            # A word that begins so because of an argument would be an option of the command.
            if not word.startswith("-") and _filled(word, arguments).startswith("-"):
                return "option_as_argument"
        return None

    return Tool(
        name=name,
        parameters={
            "type": "object",
            "properties": {**{argument: {"type": "string"} for argument in names}, **properties},
            "required": names,
            "additionalProperties": False,
        },
        run=run,
        check=check,
        timeout=LONGEST,
    )


def run_command(allow: Sequence[str], runner: CommandRunner) -> Tool:
    """A tool that runs a command of the model's choice, if the whole of it is in `allow`."""
    allowed = {tuple(shlex.split(line)) for line in allow}

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
        return await runner.run(shlex.split(arguments["command"]), context, SECONDS)

    def check(arguments: Mapping[str, Any], _context: ToolContext) -> str | None:
        try:
            call = tuple(shlex.split(str(arguments["command"])))
        except ValueError:
            return "command_not_allowed"
        return None if call in allowed else "command_not_allowed"

    return Tool(
        name="run_command",
        description="Run one of the allowed commands: " + "; ".join(allow) if allow else "Run a command.",
        parameters={
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
            "additionalProperties": False,
        },
        run=run,
        approval="ask",
        check=check,
        timeout=LONGEST,
    )


def _filled(word: str, arguments: Mapping[str, Any]) -> str:
    return _PLACEHOLDER.sub(lambda match: _word(arguments.get(match[1], "")), word)


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _environment(mark: str) -> dict[bytes, bytes]:
    """What a command sees: a few variables of the host, and no secrets."""
    environment = {
        os.fsencode(name): os.fsencode(os.environ[name]) for name in _INHERITED if name in os.environ
    }
    outer = os.environb.get(MARKER.encode())
    environment[MARKER.encode()] = outer + b":" + mark.encode() if outer else mark.encode()
    return environment
