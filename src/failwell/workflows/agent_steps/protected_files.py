"""What no tool of a run may write: it would change what the run does, or let a model run code of its own."""

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from os.path import islink, realpath, split
from pathlib import Path
from typing import TYPE_CHECKING, Any

from failwell.store.folder import JOURNAL
from failwell.workflows.plan import AgentSpec, ScriptSpec, StageSpec, Template

if TYPE_CHECKING:
    from failwell.workflows.plan import Plan

_CODE = frozenset(
    {".bash", ".cjs", ".cs", ".js", ".lua", ".mjs", ".php", ".pl", ".ps1", ".py", ".r", ".rb", ".sh", ".ts"}
)
"""Names of files that an interpreter runs."""


def protected_files(plan: "Plan", run_folder: Path) -> frozenset[str]:
    """Workflows, what they include, the code of tools, agents and scripts, and the records of runs, as absolute paths."""
    folder = Path(plan.folder)
    files = [
        *plan.files,
        *(folder / child for child in plan.children),
        *_modules(plan, folder),
        *_loaded(folder),
        *_programs(plan, folder),
        *_records(run_folder),
    ]
    return frozenset(realpath(file) for file in files)


def _modules(plan: "Plan", folder: Path) -> Iterator[Path]:
    """The modules that the file names, loaded or not."""
    targets = [
        definition["python"] for definition in plan.tool_definitions.values() if "python" in definition
    ]
    for node in plan.nodes.values():
        if isinstance(node.spec, AgentSpec) and (agent := node.spec.settings.get("agent")) is not None:
            targets.append(agent.text if isinstance(agent, Template) else str(agent))
        elif isinstance(node.spec, StageSpec):
            targets += node.spec.code.values()
    for target in targets:
        module = target.partition(":")[0].replace(".", "/")
        yield from (folder / f"{module}{end}" for end in (".py", "/__init__.py"))


def _loaded(folder: Path) -> Iterator[str]:
    """What the modules of the file import from beside it."""
    place = f"{realpath(folder)}/"
    # Thousands of modules lie in hundreds of folders, and each link on the way to a file is read from the disk.
    real_folder = cache(realpath)
    for module in tuple(sys.modules.values()):
        file: object = getattr(module, "__file__", None)
        if not isinstance(file, str):
            continue
        parent, name = split(file)
        path = f"{real_folder(parent)}/{name}"
        is_link = islink(path)  # noqa: PTH114  (of thousands of files, each as a string)
        if (realpath(path) if is_link else path).startswith(place):
            yield file


def _programs(plan: "Plan", folder: Path) -> Iterator[Path]:
    """The programs that commands, scripts and MCP servers of the file run. Other files that they name are data."""
    calls: list[Sequence[str]] = []
    for definition in plan.tool_definitions.values():
        calls.append(definition.get("command", ()))
        if definition.get("builtin") == "run_command":
            calls += map(shlex.split, definition.get("allow", ()))
    servers: Mapping[str, Mapping[str, Any]] = plan.runtime.get("mcp_servers") or {}
    for server in servers.values():
        calls.append([str(server.get("command") or ""), *(server.get("args") or ())])
    for node in plan.nodes.values():
        if isinstance(node.spec, ScriptSpec):
            calls.append([node.spec.command.text, *(template.text for template in node.spec.args)])
    for call in calls:
        for position, word in enumerate(call):
            if word and (position == 0 or Path(word).suffix.lower() in _CODE):
                # Steps run where the command was started, or beside the file.
                yield folder / word
                yield Path.cwd() / word


def _records(run_folder: Path) -> list[Path]:
    """The folders and databases that hold the records of runs and sessions. The state folder may be that of the project."""
    state = run_folder.parent.parent
    databases = [state / f"{name}{end}" for name in (JOURNAL, "limits.db") for end in ("", "-wal", "-shm")]
    return [run_folder.parent if run_folder.parent.name in ("runs", "sessions") else run_folder, *databases]
