"""The `hooks` of a workflow: texts that are rendered when a run starts and ends, and put on record."""

from typing import Any

from failwell.fault.base import Fault
from failwell.workflow.machine.context import ScopeNames
from failwell.workflow.machine.turn import Turn
from failwell.workflow.template.render import render


def hook(turn: Turn, name: str, **extra: Any) -> None:
    """Say what the author wants said at this moment. A hook that fails says so, and harms nothing."""
    plan = turn.plans[turn.state.file]
    template = plan.hooks.get(name)
    if template is None:
        return
    names = ScopeNames(turn.state.run, plan, turn.state.scopes[""], extra)
    try:
        turn.record("hook", {"hook": name, "text": render(template, names)})
    except Fault as fault:
        turn.record("hook", {"hook": name, "failed": str(fault)})
