"""Parallel groups and `for_each`: starts members within the concurrency limit, and derives the group's result."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from failwell.errors.faults import Validation
from failwell.files.suggestions import Near
from failwell.workflows.machine.context import ScopeNames, look_up
from failwell.workflows.machine.ending import complete, fail
from failwell.workflows.machine.fold import group_output, member_path
from failwell.workflows.machine.limits import deadline, set_timer
from failwell.workflows.machine.run_state import Group, Task, below, failure_in
from failwell.workflows.machine.turn import Turn
from failwell.workflows.plan import ForEachSpec, Node, ParallelSpec
from failwell.workflows.template.names import MISSING
from failwell.workflows.template.render import holds

if TYPE_CHECKING:
    from collections.abc import Callable


def begin_group(turn: Turn, task: Task, node: Node, names: ScopeNames) -> None:
    """Determine the members of a group and start them."""
    spec = node.spec
    data: dict[str, Any] = {"path": task.path, "type": node.type}
    if isinstance(spec, ParallelSpec):
        data |= {"keys": [member.name for member in spec.members], "keyed": True}
    else:
        assert isinstance(spec, ForEachSpec)
        items = _items(turn, task, spec)
        keys = _keys(task, spec, items)
        if len(set(keys)) != len(keys):
            duplicate = next(key for index, key in enumerate(keys) if key in keys[:index])
            raise Validation(
                kind="validation.input_invalid",
                message=f"two items of `{task.node}` have the same key; `key_by` must tell them apart",
                details={"key": duplicate},
            )
        data |= {"keys": keys, "items": items, "keyed": spec.key_by is not None}
    turn.record("group:started", data | deadline(turn, task))
    set_timer(turn, turn.state.tasks[task.path])
    if isinstance(spec, ParallelSpec):
        _skip(turn, task, spec, names)
    turn.schedule(task.path)


def _items(turn: Turn, task: Task, spec: ForEachSpec) -> list[Any]:
    value = look_up(spec.source, turn.names(task, turn.node(task), unrestricted=True))
    if not isinstance(value, list):
        problem = "does not exist" if value is MISSING else "is not a list"
        raise Validation(
            kind="validation.input_invalid",
            message=f"the source of `{task.node}`, `{spec.source}`, {problem}",
            details={"source": spec.source},
        )
    return cast("list[Any]", value)


def _keys(task: Task, spec: ForEachSpec, items: list[Any]) -> list[str]:
    """The keys of the items: their positions, or what `key_by` names. An item without it has its position.

    A `key_by` that no item has is a mistake in the file.
    """
    if spec.key_by is None:
        return [str(index) for index in range(len(items))]
    steps = spec.key_by.split(".")
    own = steps[1:] if steps[0] == spec.variable else None
    values = [_key(item, steps, own) for item in items]
    if items and all(value is MISSING for value in values):
        name = (own or steps)[0]
        fields = {field for item in items if isinstance(item, dict) for field in cast("dict[str, Any]", item)}
        near = Near()(name, sorted(fields), spec.key_by)
        hint = "" if near is None else f"; did you mean `{near}`?"
        raise Validation(
            kind="validation.input_invalid",
            message=f"no item of `{task.node}` has `{name}`, which its `key_by` names{hint}",
            details={"key_by": spec.key_by},
        )
    return [str(index) if value is MISSING else str(value) for index, value in enumerate(values)]


def _key(item: Any, steps: list[str], own: list[str] | None) -> Any:
    """The key in an item: from the loop variable as in `it.id`, or from the item as in `id`."""
    value = MISSING if own is None else _at(item, own)
    value = _at(item, steps) if value is MISSING else value
    return MISSING if isinstance(value, (dict, list)) else value


def _at(value: Any, steps: list[str]) -> Any:
    for step in steps:
        value = value.get(step, MISSING) if isinstance(value, dict) else MISSING  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return cast("Any", value)


def _skip(turn: Turn, task: Task, spec: ParallelSpec, names: ScopeNames) -> None:
    """Record members whose condition does not hold as skipped."""
    plan = turn.plan(task.scope)
    for index, member in enumerate(spec.members):
        if member.when is None or holds(member.when, names):
            continue
        path = below(task.path, member.name)
        reason = {"path": path, "node": member.name, "parent": task.path, "index": index}
        turn.record("node:skipped", {**reason, "reason": "branch_not_taken"})
        inner = plan.nodes[member.name].spec
        if isinstance(inner, ParallelSpec):
            for deeper in inner.members:
                unreached = {"path": below(path, deeper.name), "node": deeper.name}
                turn.record("node:skipped", {**unreached, "reason": "upstream_unreachable"})


def pump_group(turn: Turn, group: Group, enter: "Callable[..., None]") -> None:
    """Start members up to the concurrency limit; end the group when all members have ended."""
    task = turn.state.tasks[group.path]
    if task.status != "group":
        return
    node = turn.node(task)
    spec = node.spec
    assert isinstance(spec, (ParallelSpec, ForEachSpec))
    window = spec.max_concurrent or len(group.keys)
    if group.stopping or turn.is_closing:
        if not group.active and not turn.is_closing:
            _settle(turn, task, spec)
        return
    while len(group.active) < window:
        index = _next(group)
        if index is None:
            break
        if turn.is_full:
            turn.schedule(group.path)
            return
        waiting = len(turn.state.waiting)
        _begin_member(turn, task, spec, group, index, enter)
        if group.stopping or len(turn.state.waiting) > waiting:
            break
    if not group.active and _next(group) is None and turn.state.tasks[group.path].status == "group":
        _settle(turn, task, spec)


def _next(group: Group) -> int | None:
    """The first member that has neither started nor been skipped."""
    index = group.next
    while index < len(group.keys):
        if str(index) not in group.results and member_path(group, index) not in group.active:
            return index
        index += 1
    return None


def _begin_member(
    turn: Turn,
    task: Task,
    spec: ParallelSpec | ForEachSpec,
    group: Group,
    index: int,
    enter: "Callable[..., None]",
) -> None:
    body = spec.body if isinstance(spec, ForEachSpec) else turn.plan(task.scope).nodes[group.keys[index]]
    member = Task(
        path=member_path(group, index),
        scope=task.scope,
        node=body.name,
        type=body.type,
        status="running",
        visit=task.visit,
        attempt=1,
        started=turn.at,
        parent=group.path,
        index=index,
        item=group.keys[index] if isinstance(spec, ForEachSpec) else None,
    )
    enter(turn, member, body, waits_as=group.path)


def _settle(turn: Turn, task: Task, spec: ParallelSpec | ForEachSpec) -> None:
    """Complete or fail a group whose members have all ended."""
    group = turn.state.groups[task.path]
    if task.timed_out and task.failure is not None:
        fail(turn, task, task.failure, visible_output=group_output(group))
        return
    failed = group.failures
    executed = sum("skipped" not in result for result in group.results.values())
    has_failed = bool(failed) and (spec.failure_mode != "continue_on_error" or len(failed) == executed)
    if not has_failed:
        complete(turn, task, group_output(group))
        return
    failures = (failure_in(group.results[str(index)]) for index in failed)
    failure, *later = (failure for failure in failures if failure is not None)
    others = tuple(other for other in later if not other.kind.startswith("cancel."))
    failure = replace(failure, others=others) if others else failure
    fail(turn, task, failure, visible_output=group_output(group))


def retry_items(group: Group) -> None:
    """Remove the results of failed members, so that they run again."""
    for index in group.failures:
        group.results.pop(str(index), None)
    group.next = min(group.failures, default=group.next)
    group.failures = []
    group.stopping = False
