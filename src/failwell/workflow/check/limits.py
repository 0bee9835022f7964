"""Limits that no run could keep."""

from collections.abc import Iterator

from failwell.files.mistakes import Mistake
from failwell.workflow.check.context import Look, warning
from failwell.workflow.plan import WaitSpec


def limits(look: Look) -> Iterator[Mistake]:
    """Iterations, time and money that cannot be enough."""
    plan = look.plan
    most = plan.limits.max_iterations
    if most is not None:
        fewest = look.flow.fewest_steps()
        if fewest is not None and fewest > most:
            yield warning(
                None,
                f"the shortest run takes {fewest} steps, but `max_iterations` is {most}",
                path="workflow.limits.max_iterations",
                hint=f"allow {fewest} or more",
            )
    for placed in look.everything:
        node, spec = placed.node, placed.node.spec
        seconds = spec.duration if isinstance(spec, WaitSpec) else getattr(spec, "timeout", None)
        whole = plan.limits.timeout_seconds
        if whole is not None and isinstance(seconds, int | float) and seconds > whole:
            verb = "waits" if isinstance(spec, WaitSpec) else "may take"
            yield warning(
                node.place,
                f"`{node.name}` {verb} {seconds:g} s, but the whole run has {whole:g} s",
                path=f"{placed.path}.{'duration' if isinstance(spec, WaitSpec) else 'timeout'}",
                hint="give the run more time with `workflow.limits.timeout_seconds`",
            )
        budget = plan.limits.budget_usd
        if budget is not None and node.estimate_usd is not None and node.estimate_usd > budget:
            yield warning(
                node.place,
                f"`{node.name}` is expected to cost ${node.estimate_usd:g}, but the whole run has ${budget:g}",
                path=f"{placed.path}.estimate_usd",
                hint="raise `workflow.limits.budget_usd`",
            )
