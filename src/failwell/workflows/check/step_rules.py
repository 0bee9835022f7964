"""Rules about single steps: template syntax, missing executors, limits, inputs of sub-workflows."""

import os.path
from collections.abc import Iterator
from importlib.util import find_spec

from failwell.files.mistakes import Mistake
from failwell.files.suggestions import choices
from failwell.workflows.check.check_context import CheckContext, PlacedNode
from failwell.workflows.check.findings import error, softened, warning
from failwell.workflows.compile.step_index import FLOW, INPUTS
from failwell.workflows.plan import Plan, WaitSpec, WorkflowSpec
from failwell.workflows.template.mistakes__template_errors import MistakeType

_HINT = "look for a missing brace, quote or `end…`"
_HINTS: dict[str, str] = {
    MistakeType.UNKNOWN_FILTER: "the word after `|` is not a filter",
    MistakeType.UNKNOWN_TEST: "the word after `is` is not a test",
    MistakeType.UNKNOWN_FUNCTION: "the guide on workflows lists the functions and methods of templates",
    MistakeType.LENGTH: "put the text into a file, and let a script read it",
}


def syntax(context: CheckContext) -> Iterator[Mistake]:
    """Templates that cannot be parsed, each with the line in it."""
    for text in context.texts:
        broken = context.syntax_mistake(text)
        if broken is not None:
            template = text.template
            yield softened(
                error(
                    template.unfolded().place_of(broken.line),
                    f"`{text.field}` cannot be read: {broken.without_line if template.first_line else broken}",
                    path=text.field,
                    hint=_HINTS.get(broken.type, _HINT),
                )
            )


EXECUTORS: dict[str, str] = {"agent": "agents", "job": "jobs", "stage": "agents", "tool": "agents"}
"""Type of node → the extra that installs its executor. Other types need none."""

BUILT_IN: frozenset[str] = frozenset(
    {"job", "agent", "stage", "tool"} if find_spec("pydantic_ai") else {"job"}
)
"""Types of `EXECUTORS` that this installation can run."""


def executors(context: CheckContext) -> Iterator[Mistake]:
    """Nodes of types that have no executor here."""
    for node, _, path, _ in context.placed_nodes:
        extra = EXECUTORS.get(node.type)
        # A step without a readable type counts as an agent.
        if extra is not None and node.type not in context.available and context.is_complete(node):
            yield error(
                node.place,
                f"`{node.name}` is of type `{node.type}`, and this type of node needs the extra `{extra}`,"
                " which is not installed here",
                path=f"{path}.type",
                hint=f"install `failwell[{extra}]`",
            )


def limits(context: CheckContext) -> Iterator[Mistake]:
    """Limits on iterations, time and cost that cannot be enough."""
    plan = context.plan
    max_iterations = plan.limits.max_iterations
    if max_iterations is not None and context.knows(FLOW):
        fewest = context.flow.fewest_steps()
        if fewest is not None and fewest > max_iterations:
            yield warning(
                None,
                f"the shortest run takes {fewest} steps, but `max_iterations` is {max_iterations}",
                path="workflow.limits.max_iterations",
                hint=f"allow {fewest} or more",
            )
    for placed in context.placed_nodes:
        node, spec = placed.node, placed.node.spec
        seconds = spec.duration if isinstance(spec, WaitSpec) else getattr(spec, "timeout", None)
        run_seconds = plan.limits.timeout_seconds
        if run_seconds is not None and isinstance(seconds, int | float) and seconds > run_seconds:
            verb = "waits" if isinstance(spec, WaitSpec) else "may take"
            yield warning(
                node.place,
                f"`{node.name}` {verb} {seconds:g} s, but the whole run has {run_seconds:g} s",
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


def child_path(plan: Plan, spec: WorkflowSpec) -> str | None:
    """The file of a sub-workflow, resolved against the one that names it; `None` if a template chooses it."""
    if not spec.path.is_plain or not spec.path.text:
        return None
    return os.path.normpath(os.path.join(plan.folder, spec.path.text))  # noqa: PTH118


def child_of(context: CheckContext, spec: WorkflowSpec) -> Plan | None:
    """The plan of a sub-workflow, if it was compiled."""
    path = child_path(context.plan, spec)
    return None if path is None else context.children.get(path)


def children(context: CheckContext) -> Iterator[Mistake]:
    """Check the inputs that steps pass to sub-workflows."""
    for placed in context.placed_nodes:
        spec = placed.node.spec
        if not isinstance(spec, WorkflowSpec) or not context.is_complete(placed.node):
            continue
        if (child := child_of(context, spec)) is not None:
            yield from _inputs(context, placed, spec, child)


def _inputs(context: CheckContext, placed: PlacedNode, spec: WorkflowSpec, child: Plan) -> Iterator[Mistake]:
    name = placed.node.name
    path = f"{placed.path}.input_mapping"
    # Without a mapping all inputs are passed on, and a workflow that declares none may be given any.
    if spec.input_mapping is None and not (context.knows(INPUTS) and context.plan.inputs):
        return
    inputs = context.plan.inputs if spec.input_mapping is None else spec.input_mapping
    if spec.input_mapping is not None:
        for key in spec.input_mapping:
            if key not in child.inputs:
                near = context.near(key, child.inputs, spec.path.text)
                hint = choices(near, child.inputs, f"`{spec.path.text}` declares no inputs")
                message = f"`{spec.path.text}` declares no input `{key}`"
                yield warning(placed.node.place, message, path=f"{path}.{key}", hint=hint)
    for key, declared in child.inputs.items():
        if declared.required and not declared.has_default and key not in inputs:
            message = f"`{spec.path.text}` needs the input `{key}`, and `{name}` does not pass it"
            hint = f"add `{key}` to its `input_mapping`"
            yield error(placed.node.place, message, path=path, hint=hint)
