"""State machines in Python: the same stages as in a workflow file, with functions as phases.

A module that holds one `StateMachine` is a workflow file: `failwell run machine.py` runs it, `resume` continues it.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from failwell.errors.faults import Validation
from failwell.errors.frozen import frozen

Phase = Callable[[Any], Any]
"""A function of a module. It takes one `StagePhase`, and may be asynchronous."""


def _line() -> int:
    """The line of the module that makes a stage or a machine."""
    from inspect import currentframe

    frame = currentframe()
    for _ in range(2):
        frame = None if frame is None else frame.f_back
    return 1 if frame is None else frame.f_lineno


@frozen
class Stage:
    """A stage. The fields are the keys of `stages` in a workflow file, and their texts are templates as well."""

    id: str
    name: str = ""
    setup: Mapping[str, Any] | Phase | None = None
    init: Phase | None = None
    body: str | None = None
    prompt: str | None = None
    check_gate: Sequence[Mapping[str, Any]] | Phase | None = None
    allowed_tools: Sequence[str] = ()
    grants: Literal["ask", "deny"] | None = None
    completion_tool: str | None = None
    completion_schema: Mapping[str, Any] | None = None
    turn_cap: int | None = None
    visit_cap: int | None = None
    assertion: Sequence[Mapping[str, Any]] | Phase | None = None
    """`assert` of the file."""
    exit: Mapping[str, Any] | Phase | None = None
    next: str | Sequence[Mapping[str, Any]] | Phase | None = None
    """A stage, a list of entries, or a function that returns one of `successors`."""
    successors: Sequence[str] = ()
    """What the function `next` can return."""
    retry_policy: Mapping[str, Any] | None = None
    resolution_policy: Literal["skip", "retry-later", "abort-workflow"] | None = None
    model: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """More keys of the file, such as `fallback` or `max_tokens`."""
    line: int = field(default_factory=_line, repr=False)
    """Where it is made, for messages."""

    def document(self, module: str) -> dict[str, Any]:
        """The stage as a workflow file has it; functions of the main module belong to `module`."""
        values: dict[str, Any] = {
            "id": self.id,
            "name": self.name or None,
            "setup": self.setup,
            "init": self.init,
            "body": self.body,
            "prompt": self.prompt,
            "checkGate": self.check_gate,
            "allowedTools": list(self.allowed_tools),
            "grants": self.grants,
            "completionTool": self.completion_tool,
            "completionSchema": self.completion_schema,
            "turnCap": self.turn_cap,
            "visitCap": self.visit_cap,
            "assert": self.assertion,
            "exit": self.exit,
            "next": self.next,
            "retryPolicy": self.retry_policy,
            "resolutionPolicy": self.resolution_policy,
            "model": self.model,
            **self.settings,
        }
        if callable(self.next):
            values["next"] = {"code": self.next, "to": list(self.successors)}
        return {key: _written(value, module) for key, value in values.items() if value is not None}


@frozen
class StateMachine:
    """A state machine: stages, and what a workflow file has besides.

    Example:
        from failwell.workflows import Stage, StagePhase, StateMachine

        def judge(phase: StagePhase) -> str:
            return "ok" if "rain" in phase.act["output"]["result"] else "retry"

        machine = StateMachine(
            name="weather",
            stages=[Stage(id="report", prompt="Write about rain.", assertion=judge, retry_policy={"maxAttempts": 2})],
            runtime={"default_model": "openai:gpt-5"},
        )
    """

    name: str
    stages: Sequence[Stage]
    entry_point: str | None = None
    """The first stage (default: the first of the list)."""
    runtime: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tools: Mapping[str, Any] = field(default_factory=dict[str, Any])
    input: Mapping[str, Any] = field(default_factory=dict[str, Any])
    limits: Mapping[str, Any] = field(default_factory=dict[str, Any])
    output: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def document(self, module: str) -> dict[str, Any]:
        """The machine as a workflow file has it."""
        entry = self.entry_point or (self.stages[0].id if self.stages else "")
        head = {"runtime": self.runtime, "input": self.input, "limits": self.limits}
        values: dict[str, Any] = {
            "workflow": {"name": self.name, "entry_point": entry, **{k: v for k, v in head.items() if v}},
            "tools": self.tools,
            "output": self.output,
        }
        document = {key: _written(value, module) for key, value in values.items() if value}
        return {**document, "stages": [stage.document(module) for stage in self.stages]}


def _written(value: Any, module: str) -> Any:
    """A value as a file has it: functions by their names."""
    if isinstance(value, Mapping):
        return {str(key): _written(inner, module) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return [_written(inner, module) for inner in value]  # pyright: ignore[reportUnknownVariableType]
    return _reference(value, module) if callable(value) else value


def _reference(function: Any, module: str) -> str:
    home: str = getattr(function, "__module__", "")
    name: str = getattr(function, "__qualname__", "")
    if not home or not name or "<" in name:
        raise Validation(
            kind="validation.config_invalid",
            message="a phase must be a function that its module names, so that a resumed run finds it",
            details={"function": name[:100]},
            caller_facing=True,
        )
    return f"{module if home == '__main__' else home}:{name}"


def machine_in(path: Path) -> tuple[StateMachine, str]:
    """The state machine of a Python file, and the name of its module. The module is imported.

    Raises:
        Validation: the module has no machine, several, or the name of another one.
        Exception: whatever the module raises when it is imported.
    """
    from importlib import import_module

    name, folder = path.stem, str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    module = import_module(name)
    if Path(getattr(module, "__file__", None) or "").resolve() != path.resolve():
        raise _refusal(path, f"another module is called `{name}`; rename the file")
    machines = [value for value in vars(module).values() if isinstance(value, StateMachine)]
    if len(machines) != 1:
        raise _refusal(path, f"it must have one `StateMachine`, and has {len(machines)}")
    return machines[0], name


def _refusal(path: Path, problem: str) -> Validation:
    return Validation(
        kind="validation.config_invalid", message=f"cannot run {path.name}: {problem}", caller_facing=True
    )
