"""Ends or pauses a run: stops what still runs, then records exactly one terminal fact."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from failwell.errors.fault import Fault
from failwell.workflows.failure import Failure
from failwell.workflows.machine.context import ScopeNames, workflow_names
from failwell.workflows.machine.messages import Ask, CancelTimer, End, Idle, Stop
from failwell.workflows.machine.run_state import ACTIVE, Task, below, failure_in
from failwell.workflows.machine.turn import Turn
from failwell.workflows.plan import END
from failwell.workflows.template.render import render

_MOST_RUNNING = 50
"""Executions that a time-out records as running."""
_MOST_NAMED = 5


def end_run(turn: Turn, failure: Failure, *, error_type: str, node: str | None, **details: Any) -> None:
    """Fail the run. It ends when nothing runs any more, with the first failure that was passed here."""
    if turn.state.ending is not None or turn.state.is_over:
        return
    data: dict[str, Any] = {"failure": failure, "error_type": error_type, **details}
    if node is not None:
        data["node"] = node
    turn.record("run:ending", data)
    _stop_all(turn, "cancel.run", "stopped because the run failed")


def cancel_run(turn: Turn, reason: str, by: str) -> None:
    """Cancel the run. A second call changes nothing."""
    if turn.state.cancel is not None or turn.state.is_over:
        return
    turn.record("run:cancelling", {"reason": reason, "by": by})
    _stop_all(turn, "cancel.run", "stopped because the run was cancelled")


def _stop_all(turn: Turn, kind: str, message: str) -> None:
    cursor = turn.state.scopes[""].cursor
    task = None if cursor is None else turn.state.tasks.get(cursor)
    if task is not None and task.status != "failed":
        stop_task(turn, task, kind, message)


def running_below(turn: Turn, path: str) -> list[dict[str, Any]]:
    """The executions below `path` that have not ended, with the seconds since each began; at most `_MOST_RUNNING`."""
    pending = [
        task
        for task in turn.state.tasks.values()
        if task.status not in ("failed", "group", "child") and _is_below(task.path, path)
    ]
    entries: list[dict[str, Any]] = []
    for task in pending[:_MOST_RUNNING]:
        entry: dict[str, Any] = {"path": task.path, "status": task.status, "attempt": task.attempt}
        if task.item is not None:
            entry["item"] = task.item
        entries.append({**entry, "seconds": round(max(0.0, turn.at - task.started), 3)})
    return entries


def _is_below(path: str, above: str) -> bool:
    return not above or path.startswith((f"{above}/", f"{above}["))


def while_running(running: list[dict[str, Any]]) -> str:
    """What was running, as the end of a sentence."""
    if not running:
        return ""
    names = ", ".join(f"`{entry['path']}`" for entry in running[:_MOST_NAMED])
    more = f" and {len(running) - _MOST_NAMED} more" if len(running) > _MOST_NAMED else ""
    return f"; still running: {names}{more}"


def stop_task(turn: Turn, task: Task, kind: str, message: str) -> bool:
    """Stop an execution and everything below it. Returns whether it has ended already."""
    state = turn.state
    if task.status in ACTIVE:
        turn.commands.append(Stop(path=task.path))
        return False
    if task.status == "failed":
        return True
    if task.status == "child":
        scope = state.scopes[task.path]
        current = (
            None if scope.cursor in (None, END) else state.tasks.get(below(task.path, scope.cursor or ""))
        )
        if current is not None and not stop_task(turn, current, kind, message):
            return False
    elif task.status == "group":
        group = state.groups[task.path]
        if not group.stopping:
            turn.record("group:stopping", {"path": task.path, "because": kind})
        stopped = [stop_task(turn, state.tasks[path], kind, message) for path in list(group.active)]
        if not all(stopped):
            return False
    if state.tasks[task.path].status != "failed":
        turn.commands.append(CancelTimer(timer=task.path))
        # A task that waited for a retry ends with its last failure.
        failure = task.failure or turn.failure(kind, message, task=task)
        close_phase(turn, task, failure)
        turn.record("node:failed", {"path": task.path, "attempt": task.attempt, "failure": failure})
    return True


def close_phase(turn: Turn, task: Task, failure: Failure, usage: Mapping[str, Any] | None = None) -> None:
    """Record the end of the phase that is open in a failed stage, so that each phase has its pair of facts."""
    if task.stage is None or not task.stage.get("open"):
        return
    data: dict[str, Any] = {"path": task.path, "phase": task.stage["phase"], "attempt": task.attempt}
    if usage:
        data["usage"] = dict(usage)
    turn.record("phase:ended", {**data, "error": failure.kind})


def finish_turn(turn: Turn) -> None:
    """At the end of a turn: end the run, pause it, or leave it running."""
    state = turn.state
    if state.is_over or turn.pending or state.leaves:
        return
    if any(task.status in ACTIVE for task in state.tasks.values()):
        return
    if state.cancel is not None:
        _finish(turn, "run:cancelled", {"reason": state.cancel["reason"], "by": state.cancel["by"]})
    elif state.ending is not None:
        data = _failed(turn, failure_in(state.ending))
        failure: Failure = data["failure"]
        node = state.tasks.get(data.get("node", ""))
        error = {"type": data["error_type"], "agent": None if node is None else node.node}
        hook(turn, "on_error", error={**error, **failure.template_error})
        _finish(turn, "run:failed", data)
    else:
        _pause(turn)


def _pause(turn: Turn) -> None:
    state, tasks = turn.state, turn.state.tasks.values()
    gates = [task for task in tasks if task.status in ("gate", "budget") and task.gate is not None]
    timers = [
        task.until for task in tasks if task.status in ("retrying", "waiting") and task.until is not None
    ]
    near = [until for until in timers if until - turn.at <= _longest_wait(turn)]
    if near:
        return
    if not gates and not timers:
        stalled = turn.failure("internal.bug", "the run has nothing to do and has not ended")
        end_run(turn, stalled, error_type="Stalled", node=None)
        finish_turn(turn)
        return
    names = tuple(str(task.gate) for task in gates)
    until = min(timers, default=None)
    if not state.paused:
        data: dict[str, Any] = {"gates": list(names), "pending_gate_count": len(names)}
        if until is not None:
            data["blocked_until"] = until
        turn.record("run:paused", data)
    turn.commands.append(Idle(gates=names, blocked_until=until))


def _longest_wait(turn: Turn) -> float:
    """The longest wait in seconds that the process stays for. It always stays for waits that the author wrote."""
    parked = any(task.status == "retrying" and task.parked for task in turn.state.tasks.values())
    return turn.plans[turn.state.file].limits.park_after_seconds if parked else float("inf")


def close_run(turn: Turn, failure: Failure | None) -> None:
    """End the run now, without stopping what runs: the driver has done that.

    A run that was being cancelled is cancelled. One that was failing keeps its failure, and `failure` comes second.
    """
    state = turn.state
    if state.cancel is not None:
        _finish(turn, "run:cancelled", {"reason": state.cancel["reason"], "by": state.cancel["by"]})
        return
    assert failure is not None
    if state.ending is None:
        turn.record("run:ending", {"failure": failure, "error_type": "MachineDefect"})
        _finish(turn, "run:failed", _failed(turn, failure))
        return
    first = failure_in(state.ending)
    _finish(turn, "run:failed", _failed(turn, first and replace(first, others=(*first.others, failure))))


def _failed(turn: Turn, failure: Failure | None) -> dict[str, Any]:
    ending = turn.state.ending or {}
    assert failure is not None
    data = {key: value for key, value in ending.items() if key != "failure"}
    errors_file = turn.state.metadata.get("errors_file")
    return {
        **data,
        "failure": failure,
        "envelope": failure.envelope,
        "frames": failure.node_frames,
        "typed": failure.typed,
        **({"errors_file": errors_file} if errors_file else {}),
    }


def _finish(turn: Turn, kind: str, data: dict[str, Any]) -> None:
    state = turn.state
    totals = {"usage": {**state.usage, "cost_usd": round(state.spent, 9)}}
    turn.record(kind, {**data, **totals, "duration": _elapsed(turn)})
    turn.commands.append(End())


def _elapsed(turn: Turn) -> float:
    """Seconds in which a process has worked on the run."""
    state = turn.state
    return round(state.active + max(0.0, turn.at - state.begun), 3)


def complete_run(turn: Turn, outputs: Any) -> None:
    """Complete the run after its root workflow has ended."""
    hook(turn, "on_complete", result=outputs)
    _finish(turn, "run:completed", {"outputs": outputs})


def repeat_question(turn: Turn, task: Task) -> None:
    """Ask the question of an open gate again, after a resume."""
    if task.gate is not None and task.asked is not None:
        turn.commands.append(Ask(gate=task.gate, question=task.asked))


def hook(turn: Turn, name: str, **extra: Any) -> None:
    """Send the notification of a lifecycle hook. A hook that fails is recorded and does not affect the run."""
    plan = turn.plans[turn.state.file]
    template = plan.hooks.get(name)
    if template is None:
        return
    scope = turn.state.scopes[""]
    workflow = {
        **workflow_names(plan, scope),
        "execution_time": _elapsed(turn),
        "iteration_count": scope.iterations,
        **({"error": extra["error"]} if "error" in extra else {}),
    }
    names = ScopeNames(turn.state.run, plan, scope, {**extra, "workflow": workflow})
    try:
        turn.record("hook", {"hook": name, "text": render(template, names)})
    except Fault as fault:
        turn.record("hook", {"hook": name, "failed": str(fault)})
