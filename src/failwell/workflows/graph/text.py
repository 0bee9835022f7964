"""A graph as a text tree for a terminal: each node with its members and its edges.

What a step runs and the limits it has, each in a few words, for `show` and `--dry-run`.
"""

from shlex import quote

from failwell.calls.policy import Policy
from failwell.workflows.graph.model import ENDS, Edge, Graph, Spot
from failwell.workflows.plan import (
    AgentSpec,
    CallSpec,
    ForEachSpec,
    GateSpec,
    Limits,
    Node,
    ParallelSpec,
    Plan,
    ScriptSpec,
    StageSpec,
    WaitSpec,
    WorkflowSpec,
)

_LONGEST = 300


def work_of(node: Node) -> str:
    """What the step runs, with templates as they are written; empty if its type and name say all of it."""
    spec = node.spec
    if isinstance(spec, ScriptSpec):
        parts = [spec.command.text, *(argument.text for argument in spec.args)]
        return _short(" ".join(map(quote, parts)))
    if isinstance(spec, CallSpec):
        return spec.target
    if isinstance(spec, WorkflowSpec):
        return spec.path.text
    if isinstance(spec, GateSpec):
        return _short(spec.prompt.text)
    if isinstance(spec, ForEachSpec):
        return f"{spec.body.name} for each {spec.variable} in {spec.source}"
    if isinstance(spec, ParallelSpec):
        return ", ".join(member.name for member in spec.members)
    if isinstance(spec, WaitSpec):
        return spec.duration.text if not isinstance(spec.duration, float | int) else f"{spec.duration:g} s"
    return ""


def limits_of(node: Node) -> dict[str, float | int | str]:
    """The limits of the step: time, concurrency, retries, bytes of output."""
    spec = node.spec
    limits: dict[str, float | int | str | None] = {}
    if isinstance(
        spec, ScriptSpec | AgentSpec | CallSpec | GateSpec | WorkflowSpec | ParallelSpec | ForEachSpec
    ):
        limits["timeout_seconds"] = spec.timeout
    if isinstance(spec, ScriptSpec):
        limits["output_limit"] = spec.output_limit
    if isinstance(spec, ParallelSpec | ForEachSpec):
        limits["failure_mode"] = spec.failure_mode
        limits["max_concurrent"] = spec.max_concurrent
        limits["key_by"] = spec.key_by if isinstance(spec, ForEachSpec) else None
    if isinstance(spec, WorkflowSpec):
        limits["max_depth"] = spec.max_depth
    if isinstance(spec, StageSpec):
        limits["timeout_seconds"] = spec.timeout
        limits["turnCap"], limits["visitCap"] = spec.turn_cap, spec.visit_cap
        limits["allowedTools"] = ", ".join(spec.allowed_tools) or "none"
    if node.retry is not None:
        limits["max_attempts"] = _attempts(node.retry)
    if node.estimate_usd is not None:
        limits["estimate_usd"] = node.estimate_usd
    return {name: value for name, value in limits.items() if value is not None}


def limits_text(limits: dict[str, float | int | str]) -> str:
    """Limits on one line."""
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in limits.items()
    )


def run_limits(plan: Plan) -> dict[str, float | int | str]:
    """The limits of a whole run."""
    limits: Limits = plan.limits
    values: dict[str, float | int | str | None] = {
        "max_iterations": plan.max_iterations,
        "timeout_seconds": limits.timeout_seconds,
        "budget_usd": limits.budget_usd,
        "on_exceed": limits.on_exceed if limits.budget_usd is not None else None,
        "max_parallel": limits.max_parallel,
        "park_after_seconds": limits.park_after_seconds,
    }
    return {name: value for name, value in values.items() if value is not None}


def _attempts(policy: Policy) -> int | None:
    schedules = [rule.schedule.max_attempts for rule in policy.rules if rule.schedule is not None]
    return max(schedules, default=None)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


_SIGNS = {
    "success": "→", "when": "→", "option": "→", "error": "✗", "retry": "↻", "halt": "■", "propagate": "↑",
}  # fmt: skip


def as_text(graph: Graph, *, has_details: bool = False) -> str:
    """`graph` as text: `→` success, `✗` error, `↻` retry, `■` halt, `↑` propagated to the caller.

    Args:
        graph: The graph.
        has_details: Whether to add what each step runs, and its limits.
    """
    edges: dict[str, list[Edge]] = {}
    inside: dict[str, list[Spot]] = {}
    tops: list[Spot] = []
    for edge in graph.edges:
        edges.setdefault(edge.source, []).append(edge)
    for spot in graph.spots:
        (tops if spot.group is None else inside.setdefault(spot.group, [])).append(spot)
    lines = [graph.name]
    for index, spot in enumerate(tops):
        is_last = index == len(tops) - 1
        lines.append(f"{'└' if is_last else '├'}── {_title(spot)}")
        lines += _below(spot, edges, inside, "    " if is_last else "│   ", has_details=has_details)
    return "\n".join(lines) + "\n"


def _below(
    spot: Spot,
    edges: dict[str, list[Edge]],
    inside: dict[str, list[Spot]],
    indent: str,
    *,
    has_details: bool,
) -> list[str]:
    members = inside.get(spot.id, [])
    outgoing = edges.get(spot.id, [])
    lines = _details(spot, f"{indent}{'│' if members or outgoing else ' '}   ") if has_details else []
    for index, member in enumerate(members):
        is_last = index == len(members) - 1 and not outgoing
        lines.append(f"{indent}{'└' if is_last else '├'}── {_title(member)}")
        # A cycle of groups is a mistake that the rules report. Here it must not recurse without end.
        if len(indent) < 200:
            deeper = f"{indent}{'    ' if is_last else '│   '}"
            lines += _below(member, edges, inside, deeper, has_details=has_details)
    # Inside a sub-workflow the ids begin with its step.
    prefix = spot.id[: len(spot.id) - len(spot.name)]
    for index, edge in enumerate(outgoing):
        lines.append(f"{indent}{'└' if index == len(outgoing) - 1 else '├'}─{_edge(edge, prefix)}")
    return lines


def _details(spot: Spot, indent: str) -> list[str]:
    if spot.node is None:
        return []
    work = work_of(spot.node)
    limits = limits_text(limits_of(spot.node))
    return [f"{indent}{label}: {text}" for label, text in (("runs", work), ("limits", limits)) if text]


def _title(spot: Spot) -> str:
    note = f", {' '.join(spot.note.split())}" if spot.note else ""
    mark = " (entry)" if spot.is_entry else ""
    return f"{spot.name} [{spot.type}{note}]{mark}"


def _edge(edge: Edge, prefix: str) -> str:
    sign = _SIGNS[edge.way]
    if edge.way in ("retry", "halt", "propagate"):
        return f"{sign} {edge.label}"
    target = edge.target.removeprefix(prefix) if edge.target not in ENDS else f"({ENDS[edge.target]})"
    label = f"{edge.label}: " if edge.label else ""
    return f"{sign} {label}{target}"
