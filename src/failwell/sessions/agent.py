"""The agent of a session: one agent of a file, compiled and checked as a step of a workflow."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.errors.faults import Validation
from failwell.errors.frozen import frozen
from failwell.workflows.machine.messages import Request
from failwell.workflows.plan import AgentSpec, Node, Plan


@frozen
class SessionAgent:
    """One agent, and the file that it is from."""

    plan: Plan
    node: Node
    files: Mapping[str, tuple[str, str]]
    """Every file that was read: path → digest and text."""

    @property
    def texts(self) -> dict[str, str]:
        """The text of every file, by path."""
        return {path: text for path, (_, text) in self.files.items()}

    def request(self, session: str, turn: int, *, folder: str, approved: bool = False) -> Request:
        """The request of one turn, with its templates rendered."""
        from failwell.workflows.machine.context import ScopeNames, call_of
        from failwell.workflows.machine.run_state import Scope

        inputs: dict[str, Any] = {
            name: declared.default for name, declared in self.plan.inputs.items() if declared.has_default
        }
        names = ScopeNames(
            session, self.plan, Scope("", self.plan.file, inputs, self.node.name, 0), {"_attempt": 0}
        )
        return Request(
            path=self.node.name,
            node=self.node,
            run=session,
            workflow=self.plan.name,
            visit=turn,
            attempt=1,
            key=f"{session}/{turn}",
            file=self.plan.file,
            approved=approved,
            call=call_of(self.node, names, folder, self.plan.instructions),
        )


def load_agent(
    path: str | Path,
    *,
    agent: str | None = None,
    environ: Mapping[str, str] | None = None,
    allow_outside: bool = False,
) -> SessionAgent:
    """Read, compile and check an agent file, or one agent of a workflow file.

    Args:
        path: The file.
        agent: The name of the agent, for a file with several.
        environ: The variables that the file may use.
        allow_outside: Whether it may include files outside its project.

    Raises:
        WorkflowInvalid: it has errors; `mistakes` lists all of them.
        Validation: it cannot be read, or has no such agent.
    """
    from failwell.workflows.check.workflow_tree import check_file
    from failwell.workflows.running.faults import WorkflowInvalid

    file = str(Path(path).absolute())
    checked = check_file(
        file, environ=os.environ if environ is None else environ, allow_outside=allow_outside
    )
    plan = checked.plan
    if plan is None or not checked.is_usable:
        raise WorkflowInvalid(file=file, mistakes=list(checked.mistakes))
    node = _agent_of(plan, agent, str(path))
    spec = cast("AgentSpec", node.spec)
    if "agent" in spec.settings:
        raise _refusal(
            f"the agent `{node.name}` is of another framework, which keeps the conversation itself",
            "run it as a step with `failwell run`, or give the agent a `model`",
        )
    # The user speaks in place of the step's own prompt.
    return SessionAgent(plan=plan, node=replace(node, spec=replace(spec, prompt=None)), files=checked.files)


def _agent_of(plan: Plan, name: str | None, path: str) -> Node:
    agents = {node.name: node for node in plan.nodes.values() if node.type == "agent"}
    if name is not None and name in agents:
        return agents[name]
    if name is None and len(agents) == 1:
        return next(iter(agents.values()))
    if not agents:
        raise _refusal(f"`{path}` has no agent", "add a step with a `model`, or write an agent file")
    known = ", ".join(f"`{other}`" for other in agents)
    if name is None:
        raise _refusal(f"`{path}` has several agents: {known}", "choose one with `--name NAME`")
    raise _refusal(f"`{path}` has no agent `{name[:100]}`", f"choose one of {known}")


def _refusal(message: str, advice: str) -> Validation:
    return Validation(
        kind="validation.config_invalid",
        message=message,
        user_action=UserAction(ActionKind.FIX_CONFIGURATION, advice),
        caller_facing=True,
    )
