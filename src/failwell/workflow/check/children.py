"""Sub-workflows: which file a step means, and whether what it hands over fits."""

import os.path
from collections.abc import Iterator

from failwell.files.mistakes import Mistake
from failwell.workflow.check.context import Look, Placed, choices, error
from failwell.workflow.plan import Plan, WorkflowSpec


def child_path(plan: Plan, spec: WorkflowSpec) -> str | None:
    """The file of a sub-workflow, resolved against the one that names it; `None` if a template chooses it."""
    if not spec.path.is_plain:
        return None
    return os.path.normpath(os.path.join(plan.folder, spec.path.text))  # noqa: PTH118


def child_of(look: Look, spec: WorkflowSpec) -> Plan | None:
    """The plan behind a step, if it was compiled."""
    path = child_path(look.plan, spec)
    return None if path is None else look.children.get(path)


def children(look: Look) -> Iterator[Mistake]:
    """What each step hands to the inputs of its sub-workflow."""
    for placed in look.everything:
        spec = placed.node.spec
        if isinstance(spec, WorkflowSpec) and (child := child_of(look, spec)) is not None:
            yield from _inputs(look, placed, spec, child)


def _inputs(look: Look, placed: Placed, spec: WorkflowSpec, child: Plan) -> Iterator[Mistake]:
    name = placed.node.name
    path = f"{placed.path}.input_mapping"
    given = look.plan.inputs if spec.input_mapping is None else spec.input_mapping
    if spec.input_mapping is not None:
        for key in spec.input_mapping:
            if key not in child.inputs:
                near = look.near(key, child.inputs, spec.path.text)
                hint = choices(near, child.inputs, f"`{spec.path.text}` declares no inputs")
                message = f"`{spec.path.text}` has no input `{key}`"
                yield error(placed.node.place, message, path=f"{path}.{key}", hint=hint)
    for key, declared in child.inputs.items():
        if declared.required and not declared.has_default and key not in given:
            message = f"`{spec.path.text}` needs the input `{key}`, and `{name}` does not give it"
            hint = f"add `{key}` to its `input_mapping`"
            yield error(placed.node.place, message, path=path, hint=hint)
