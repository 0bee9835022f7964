"""The names that templates see at one place of a run.

They are looked up one at a time: a run can have a hundred thousand outputs, and a template uses a few.
"""

import json
from collections.abc import Mapping
from posixpath import join
from typing import Any, cast

from failwell.workflows.machine.run_state import Scope, State
from failwell.workflows.plan import GROUPS, AgentSpec, CallSpec, Node, Plan, ScriptSpec, Template
from failwell.workflows.template.names import MISSING, NEVER_RAN, InputReference, input_reference
from failwell.workflows.template.render import render, render_value

_OWN = ("workflow", "context", "failwell", "conductor")
"""Names that exist everywhere."""


class ScopeNames:
    """The names of a scope: its inputs, its nodes, and names that only this template has."""

    __slots__ = ("_ended", "_extra", "_mode", "_plan", "_run", "_scope")

    def __init__(
        self,
        run: str,
        plan: Plan,
        scope: Scope,
        extra: Mapping[str, Any],
        *,
        mode: str = "accumulate",
        ended: str | None = None,
    ) -> None:
        self._run = run
        self._plan = plan
        self._scope = scope
        self._extra = extra
        self._mode = mode
        self._ended = ended

    def get(self, name: str) -> object:
        """What `name` stands for here, `MISSING`, or `NEVER_RAN`."""
        if name in self._extra:
            return self._extra[name]
        if name in _OWN:
            return self._own(name)
        if name not in self._plan.nodes:
            # A step wins over an input of the same name.
            value = slot(self._plan, self._scope, name)
            return self._scope.inputs.get(name, MISSING) if value is MISSING else value
        if self._mode == "last_only" and name != self._scope.last:
            return MISSING
        value = slot(self._plan, self._scope, name)
        return NEVER_RAN if value is MISSING else value

    def known(self) -> list[str]:
        """Names to suggest for an unknown one."""
        return [*_OWN, *self._plan.nodes, *(name for name in self._extra if not name.startswith("_"))]

    def _own(self, name: str) -> dict[str, Any]:
        if name == "workflow":
            return workflow_names(self._plan, self._scope)
        if name == "context":
            # Routes are chosen before the end of their step is recorded, and see it as ended.
            history = [*self._scope.history, *([] if self._ended is None else [self._ended])]
            return {"iteration": len(history), "history": history}
        return {"retry_attempt": self._extra.get("_attempt", 0), "run_id": self._run}


def workflow_names(plan: Plan, scope: Scope) -> dict[str, Any]:
    """What `workflow` stands for in templates."""
    return {
        "input": scope.inputs,
        "dir": plan.folder,
        "file": plan.file,
        "name": plan.name,
        "description": plan.description,
    }


def slot(plan: Plan, scope: Scope, name: str) -> object:
    """The output or the error of a node; `MISSING` if it never ran."""
    error = scope.errors.get(name)
    if name not in scope.outputs:
        return MISSING if error is None else {"error": error}
    output = scope.outputs[name]
    node = plan.nodes.get(name)
    if node is not None and node.type in GROUPS:
        return output if error is None else {**output, "error": error}
    return {"output": output} if error is None else {"output": output, "error": error}


def names_of(
    state: State,
    plan: Plan,
    scope: Scope,
    node: Node,
    *,
    extra: Mapping[str, Any],
    unrestricted: bool = False,
) -> ScopeNames:
    """The names that `node` can use; with `unrestricted`, in any context mode."""
    if unrestricted or plan.context_mode == "accumulate":
        ended = node.name if unrestricted and "output" in extra else None
        return ScopeNames(state.run, plan, scope, extra, ended=ended)
    if plan.context_mode == "last_only":
        return ScopeNames(state.run, plan, scope, extra, mode="last_only")
    return _Granted(state.run, plan, scope, {**extra, **_granted(state, plan, scope, node)})


class _Granted(ScopeNames):
    """Names that a step's templates see in explicit mode: the declared references, and the names that exist everywhere."""

    __slots__ = ()

    def get(self, name: str) -> object:
        """What `name` stands for here, or `MISSING`."""
        if name in self._extra:
            return self._extra[name]
        return self._own(name) if name in _OWN else MISSING


def _granted(state: State, plan: Plan, scope: Scope, node: Node) -> dict[str, Any]:
    granted: dict[str, Any] = {}
    names = ScopeNames(state.run, plan, scope, {})
    for text in node.input:
        _grant(granted, names, input_reference(text))
    return granted


def _grant(granted: dict[str, Any], names: ScopeNames, reference: InputReference) -> None:
    """Copy one declared reference. An error is always copied as a whole, and is null if it is optional."""
    root, *steps = reference.path
    if root == "workflow":
        return
    value = names.get(root)
    if value is MISSING or value is NEVER_RAN:
        granted.setdefault(root, NEVER_RAN)
        return
    is_error = steps[:1] == ["error"]
    if is_error:
        steps = steps[:1]
    for step in steps:
        value = value[step] if isinstance(value, dict) and step in value else MISSING  # pyright: ignore[reportUnknownVariableType]
    target = granted.setdefault(root, {})
    for step in steps[:-1]:
        target = target.setdefault(step, {})
    if value is not MISSING:
        target[steps[-1]] = value
    elif is_error and reference.is_optional:
        target.setdefault("error", None)


def look_up(reference: str, names: ScopeNames) -> Any:
    """The value of a dotted reference, or `MISSING`."""
    root, *steps = reference.split(".")
    value: Any = names.get(root)
    if value is NEVER_RAN:
        return MISSING
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step, MISSING)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):  # pyright: ignore[reportUnknownArgumentType]
            value = value[int(step)]  # pyright: ignore[reportUnknownVariableType]
        else:
            return MISSING
    return cast("Any", value)


def call_of(
    node: Node, names: ScopeNames, folder: str | None, instructions: tuple[Template, ...] = ()
) -> dict[str, Any]:
    """The rendered call of `node`, as JSON.

    Args:
        node: A leaf.
        names: What its templates see.
        folder: Where the run was started.
        instructions: What every agent of the workflow is told first.
    """
    spec = node.spec
    if isinstance(spec, ScriptSpec):
        return _script(spec, names, folder)
    if isinstance(spec, AgentSpec):
        return {
            "prompt": render_text(spec.prompt, names),
            "system_prompt": render_text(spec.system_prompt, names),
            "model": render_text(spec.model, names),
            "timeout": spec.timeout,
            "settings": render_value(spec.settings, names),
            "instructions": [render(template, names) for template in instructions],
            "folder": folder,
        }
    assert isinstance(spec, CallSpec)
    return {
        "target": spec.target,
        "arguments": render_value(spec.arguments, names),
        "timeout": spec.timeout,
        "settings": render_value(spec.settings, names),
    }


def _script(spec: ScriptSpec, names: ScopeNames, folder: str | None) -> dict[str, Any]:
    env, secrets = dict(spec.env), dict[str, str]()
    for name, reference in spec.env_from.items():
        value = look_up(reference, names)
        if is_secret(value):
            secrets[name] = value["ref"]
        elif value is not MISSING and value is not None:
            env[name] = value if isinstance(value, str) else json.dumps(value)
    return {
        "command": render(spec.command, names),
        "args": [render(arg, names) for arg in spec.args],
        "env": env,
        "env_from": secrets,
        "working_dir": _folder(render_text(spec.working_dir, names), folder),
        "stdin": render_text(spec.stdin, names),
        "timeout": spec.timeout,
        "output_limit": spec.output_limit,
    }


def is_secret(value: Any) -> bool:
    """Whether a value is the placeholder of a secret input."""
    return isinstance(value, dict) and value.get("secret") is True and "ref" in value  # pyright: ignore[reportUnknownMemberType]


def _folder(working_dir: str | None, folder: str | None) -> str | None:
    """The working directory of a script, relative to where the run was started."""
    if folder is None:
        return working_dir
    return folder if working_dir is None else join(folder, working_dir)


def render_text(template: Template | None, names: ScopeNames) -> str | None:
    """The text of a template, or `None` without one."""
    return None if template is None else render(template, names)
