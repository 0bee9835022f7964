"""The call of a leaf with everything in it rendered, so that whoever runs it needs no engine."""

import json
from posixpath import join
from typing import Any

from failwell.workflow.machine.context import ScopeNames, look_up
from failwell.workflow.plan import AgentSpec, CallSpec, Node, ScriptSpec, Template
from failwell.workflow.template.lookup import MISSING
from failwell.workflow.template.render import render, render_value


def call_of(node: Node, names: ScopeNames, folder: str | None) -> dict[str, Any]:
    """What `node` asks for, as JSON. `folder` is where the run was started."""
    spec = node.spec
    if isinstance(spec, ScriptSpec):
        return _script(spec, names, folder)
    if isinstance(spec, AgentSpec):
        return {
            "prompt": _text(spec.prompt, names),
            "system_prompt": _text(spec.system_prompt, names),
            "model": _text(spec.model, names),
            "timeout": spec.timeout,
            "settings": render_value(spec.settings, names),
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
        "working_dir": _folder(_text(spec.working_dir, names), folder),
        "stdin": _text(spec.stdin, names),
        "timeout": spec.timeout,
        "output_limit": spec.output_limit,
    }


def is_secret(value: Any) -> bool:
    """Whether this is the mark that stands for a secret input."""
    return isinstance(value, dict) and value.get("secret") is True and "ref" in value  # pyright: ignore[reportUnknownMemberType]


def _folder(named: str | None, folder: str | None) -> str | None:
    """Where a script runs: what the author wrote, seen from where the run was started."""
    if folder is None:
        return named
    return folder if named is None else join(folder, named)


def _text(template: Template | None, names: ScopeNames) -> str | None:
    return None if template is None else render(template, names)
