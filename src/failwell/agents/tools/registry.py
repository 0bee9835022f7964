"""The tools of a file, opened from their definitions."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from failwell.agents.tools.commands import CommandRunner, command, run_command
from failwell.agents.tools.tool import Tool


def open_tools(
    definitions: Mapping[str, Mapping[str, Any]], *, folder: Path, runner: CommandRunner
) -> dict[str, Tool]:
    """The tools by name.

    Args:
        definitions: The `tools` block of a file.
        folder: The folder of the file: relative paths and modules are found there.
        runner: Runs the commands.

    Raises:
        Validation: a definition names a module or a function that is not there.
    """
    return {name: _open(name, definition, folder, runner) for name, definition in definitions.items()}


def _open(name: str, definition: Mapping[str, Any], folder: Path, runner: CommandRunner) -> Tool:
    tool = _tool(name, definition, folder, runner)
    changes: dict[str, Any] = {"name": name}
    for key in ("description", "effect", "approval", "fixed", "recovery"):
        if key in definition:
            changes[key] = definition[key]
    for key, field in (("timeout_seconds", "timeout"), ("max_attempts", "attempts")):
        if key in definition:
            changes[field] = definition[key]
    return replace(tool, **changes)


def _tool(name: str, definition: Mapping[str, Any], folder: Path, runner: CommandRunner) -> Tool:
    if "python" in definition:
        from failwell.agents.tools.function import function_tool

        return function_tool(name, definition["python"], folder)
    if "command" in definition:
        return command(name, definition["command"], definition.get("parameters", {}), runner)
    builtin, allow = definition["builtin"], definition.get("allow", ())
    if builtin == "run_command":
        return run_command(allow, runner)
    if builtin == "http_request":
        from failwell.agents.tools.http import http_request

        return http_request(allow, definition.get("headers"), private=definition.get("allow_private", False))
    from failwell.agents.tools import files as file_tools

    return getattr(file_tools, builtin)(folder, definition.get("root", "."))
