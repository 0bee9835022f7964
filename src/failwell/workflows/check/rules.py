"""`check`: applies every rule to one plan."""

from collections.abc import Callable, Collection, Iterable, Mapping

from failwell.files.mistakes import Mistake
from failwell.workflows.check.check_context import CheckContext
from failwell.workflows.check.declared_references import declared
from failwell.workflows.check.group_rules import groups
from failwell.workflows.check.route_rules import routes, targets
from failwell.workflows.check.secret_flow import secrets
from failwell.workflows.check.step_rules import BUILT_IN, agents, children, executors, limits, stages, syntax
from failwell.workflows.check.template_names import names
from failwell.workflows.compile.compiler import PartialPlan, without_garbage_collection
from failwell.workflows.plan import Plan

Rule = Callable[[CheckContext], Iterable[Mistake]]
RULES: tuple[Rule, ...] = (
    syntax,
    targets,
    groups,
    stages,
    routes,
    names,
    declared,
    children,
    secrets,
    limits,
    executors,
    agents,
)


def check(
    plan: Plan,
    *,
    as_root: bool = True,
    children: Mapping[str, Plan] | None = None,
    available: Collection[str] = BUILT_IN,
    partial: PartialPlan | None = None,
    rules: Collection[Rule] = RULES,
) -> list[Mistake]:
    """Every mistake in `plan`.

    Args:
        plan: The plan of a file.
        as_root: Whether it runs by itself, so that failures have no caller to go to.
        children: The plans of its sub-workflows, by resolved path.
        available: Types of nodes that have an executor here, besides those that need none.
        partial: What is not known about the plan because its file has mistakes of shape.
        rules: The rules to apply.
    """
    with without_garbage_collection():
        context = CheckContext(
            plan, as_root=as_root, children=children or {}, available=available, partial=partial
        )
        return [mistake for rule in rules for mistake in rule(context)]
