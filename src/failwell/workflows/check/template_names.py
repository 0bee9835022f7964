"""Rules about names in templates: they exist, and their values exist when the template is rendered."""

from collections.abc import Iterator
from dataclasses import replace

from failwell.files.mistakes import Mistake
from failwell.files.suggestions import choices
from failwell.workflows.check.check_context import CheckContext, TemplateUse
from failwell.workflows.check.findings import HOOKS, error, softened, warning
from failwell.workflows.check.template_texts import TemplateText
from failwell.workflows.compile.step_index import FLOW, INPUTS, NAMES
from failwell.workflows.plan import GROUPS, Node, ParallelSpec
from failwell.workflows.template.names import Reference, input_reference

OF_WORKFLOW = ("input", "dir", "file", "name", "description")
OF_HOOK = ("execution_time", "iteration_count", "error")
"""What `workflow` has in hooks besides."""
OF_OWN = {
    "context": ("iteration", "history"),
    "failwell": ("retry_attempt", "run_id"),
    "conductor": ("retry_attempt", "run_id"),
}
OF_NODE = ("output", "error")
OF_GROUP = ("outputs", "errors", "count", "type", "error")
GUARD = "give it a default, as in `{{ … | default('') }}`, or test it with `is defined`"


def names(context: CheckContext) -> Iterator[Mistake]:
    """Check every reference of every template."""
    for use in context.uses:
        for reference in use.references:
            for mistake in _reference(context, use, reference):
                yield softened(mistake)


def _reference(context: CheckContext, use: TemplateUse, reference: Reference) -> Iterator[Mistake]:
    text, path = use.text, reference.path
    root = path[0]
    if root in text.names:
        return
    if root in context.plan.nodes or root in context.flow.owner:
        mistake = _node(context, text, reference)
    elif root == "workflow":
        mistake = _workflow(context, text, path)
    elif root in OF_OWN:
        mistake = _own(context, text, path)
    else:
        mistake = _unknown(context, text, reference)
    if mistake is not None:
        yield _on_its_line(mistake, text, path)


def _on_its_line(mistake: Mistake, text: TemplateText, path: tuple[str, ...]) -> Mistake:
    """The mistake at the line of a block that reads `path`."""
    template = text.template.unfolded()
    if template.first_line is None:
        return mistake
    from failwell.workflows.template.references import line_of  # it loads Jinja2

    line = line_of(template, path, condition=text.is_condition)
    return replace(mistake, place=template.place_of(line))


def _workflow(context: CheckContext, text: TemplateText, path: tuple[str, ...]) -> Mistake | None:
    is_hook = text.field.startswith(HOOKS)
    fields = (*OF_WORKFLOW, *OF_HOOK) if is_hook else OF_WORKFLOW
    if len(path) > 1 and path[1] not in fields:
        hint = choices(context.near(path[1], fields, "hook" if is_hook else "workflow"), fields, "")
        return error(text.template.place, f"`workflow` has no `{path[1]}`", path=text.field, hint=hint)
    if len(path) > 2 and path[1] == "input" and path[2] not in context.plan.inputs:
        return unknown_input(context, text, path[2])
    return None


def unknown_input(context: CheckContext, text: TemplateText, name: str) -> Mistake | None:
    """The mistake for an input that is not declared."""
    inputs = context.plan.inputs
    if not context.knows(INPUTS):
        return None
    hint = choices(
        context.near(name, inputs, "inputs"), inputs, f"declare it: `workflow.input.{name}` with a `type`"
    )
    # A workflow that declares no inputs takes any.
    report = error if inputs else warning
    return report(text.template.place, f"the workflow has no input `{name}`", path=text.field, hint=hint)


def _own(context: CheckContext, text: TemplateText, path: tuple[str, ...]) -> Mistake | None:
    valid = OF_OWN[path[0]]
    if len(path) < 2 or path[1] in valid:
        return None
    hint = choices(context.near(path[1], valid, path[0]), valid, "")
    return error(text.template.place, f"`{path[0]}` has no `{path[1]}`", path=text.field, hint=hint)


def _unknown(context: CheckContext, text: TemplateText, reference: Reference) -> Mistake | None:
    """The mistake for an unknown name. In a condition without braces it may be a key of the output."""
    root = reference.path[0]
    if not context.knows(NAMES):
        return None
    bare = text.is_condition and text.template.is_plain
    if bare and (len(reference.path) < 2 or reference.path[1] not in (*OF_NODE, "outputs", "errors")):
        return None
    mode = context.plan.context_mode
    if root in context.plan.inputs and mode != "explicit":
        return None
    near = context.near(root, context.plan.nodes, "nodes")
    if near is None and root in context.plan.inputs:
        hint = f"inputs are read as `workflow.input.{root}`"
    else:
        hint = choices(near, context.plan.nodes, "name a step, or `workflow.input.NAME`")
    is_bare_name = near is None and reference.path == (root,) and not reference.guarded
    if is_bare_name and context.knows(INPUTS) and not context.plan.inputs:
        # A workflow that declares no inputs takes any, and a name alone may be one.
        message = f"no step is called `{root}`, and the workflow declares no inputs"
        declare = f"declare it: `workflow.input.{root}` with a `type`"
        return warning(text.template.place, message, path=text.field, hint=declare)
    # A misspelt step stays an error with a `default`, which would hide it for ever.
    is_step = near is not None or (reference.slot is not None and not bare)
    report = error if is_step or not (bare or reference.guarded) else warning
    return report(text.template.place, f"no step is called `{root}`", path=text.field, hint=hint)


def _node(context: CheckContext, text: TemplateText, reference: Reference) -> Mistake | None:
    root = reference.path[0]
    if root in context.unreadable:
        return None
    inside = context.flow.owner.get(root)
    if inside is not None:
        return _inside(context, text, root, inside)
    node = context.plan.nodes[root]
    fields = OF_GROUP if node.type in GROUPS else OF_NODE
    if len(reference.path) > 1 and reference.path[1] not in fields:
        return _no_field(text, node, reference)
    if reference.guarded or text.is_anywhere or not context.knows(FLOW):
        return None
    if not context.flow.reaches(text.home, text.moment):
        return None
    if _is_optional_error(context, text, node, reference):
        return None
    return _missing_value(context, text, node, reference) or _hidden_by_mode(context, text, root)


def _is_optional_error(context: CheckContext, text: TemplateText, node: Node, reference: Reference) -> bool:
    """Whether explicit mode grants it as an optional error, which is null if the step ran and did not fail."""
    if context.plan.context_mode != "explicit" or text.node is None or text.moment != "start":
        return False
    if not _is_sure(context, text, node, "start", reference.absent):
        return False
    target = reference.path
    return any(
        # An error is granted as a whole, so its fields exist only with it.
        granted.is_optional and granted.slot == "error" and granted.path[:2] == target
        for granted in map(input_reference, text.node.input)
    )


def _inside(context: CheckContext, text: TemplateText, root: str, group: str) -> Mistake:
    """The mistake for a member of a group: only its group has an output."""
    home = context.flow.outermost(root)
    is_itself = text.node is not None and text.node.name == root
    if home == text.home and text.moment == "start":
        if is_itself:
            message = f"`{root}` refers to itself, and inside `{group}` it has no earlier output"
        else:
            message = f"`{root}` runs beside it in `{home}`, so it has no output yet"
        hint = f"do this after `{home}`, with `{home}.outputs`"
    else:
        message = f"`{root}` runs inside `{group}` and has no output of its own"
        member = f".{root}" if root in context.plan.nodes else ""
        hint = f"write `{home}.outputs{member if group == home else ''}`"
    return error(text.template.place, message, path=text.field, hint=hint)


def _no_field(text: TemplateText, node: Node, reference: Reference) -> Mistake:
    field = reference.path[1]
    slot = "outputs" if node.type in GROUPS else "output"
    if field in ("output", "outputs"):
        hint = f"write `{node.name}.{slot}`"
    else:
        hint = f"write `{'.'.join([node.name, slot, *reference.path[1:]])}`"
    report = warning if reference.guarded else error
    return report(text.template.place, f"`{node.name}` has no `{field}`", path=text.field, hint=hint)


def _missing_value(
    context: CheckContext, text: TemplateText, node: Node, reference: Reference
) -> Mistake | None:
    """The mistake for a value that does not exist on every path to the template."""
    slot = reference.path[1] if len(reference.path) > 1 else "output"
    name = ".".join(reference.path[:2])
    if slot == "error":
        if _is_sure(context, text, node, "failure", reference.absent):
            return None
        if not context.flow.is_possible(node.name, "failure"):
            return warning(
                text.template.place,
                f"`{name}` never exists: the run ends when `{node.name}` fails",
                path=text.field,
                hint=f"give `{node.name}` an error route",
            )
        return _may_not_exist(text, name, f"`{node.name}` does not fail on every path that leads here")
    # A failed group keeps the outputs of its members, and a failed script keeps what it printed.
    keeps_output = node.type in GROUPS or node.type == "script"
    absent = reference.absent
    if not _is_sure(context, text, node, "success", absent) and not (
        keeps_output and _is_sure(context, text, node, "start", absent)
    ):
        return _may_not_exist(text, name, f"`{node.name}` does not complete on every path that leads here")
    return _missing_member(context, text, node, reference)


def _is_sure(
    context: CheckContext, text: TemplateText, node: Node, outcome: str, absent: frozenset[str]
) -> bool:
    if node.name == text.home:
        return text.moment != "start" and outcome in ("start", text.moment)
    assert outcome in ("start", "success", "failure")
    return context.flow.is_sure(node.name, outcome, text.home, text.moment, absent=absent)


def _may_not_exist(text: TemplateText, name: str, reason: str) -> Mistake:
    return warning(text.template.place, f"`{name}` may not exist here: {reason}", path=text.field, hint=GUARD)


def _missing_member(
    context: CheckContext, text: TemplateText, node: Node, reference: Reference
) -> Mistake | None:
    spec = node.spec
    if not isinstance(spec, ParallelSpec) or len(reference.path) < 3 or reference.path[1] != "outputs":
        return None
    member = context.member(node.name, spec, reference.path[2])
    if member is None:
        message = f"`{node.name}` has no member `{reference.path[2]}`"
        hint = choices(None, [candidate.name for candidate in spec.members], "name one of its members")
        return error(text.template.place, message, path=text.field, hint=hint)
    name = ".".join(reference.path[:3])
    if member.when is not None:
        return _may_not_exist(text, name, f"`{member.name}` runs only when its condition holds")
    if spec.failure_mode == "continue_on_error":
        return _may_not_exist(text, name, f"`{node.name}` continues when `{member.name}` fails")
    return None


def _hidden_by_mode(context: CheckContext, text: TemplateText, root: str) -> Mistake | None:
    """The mistake for a name that the context mode hides. Routes and the workflow's output see every name."""
    mode = context.plan.context_mode
    if mode == "accumulate" or text.node is None or text.moment != "start":
        return None
    if mode == "last_only" and text.home is not None:
        predecessors = context.flow.predecessors(text.home) - {root}
        if predecessors:
            return warning(
                text.template.place,
                f"`{root}` may not be visible here: in `last_only` mode only the previous step is, and that may be"
                f" `{min(predecessors)}`",
                path=text.field,
                hint="use `context: {mode: accumulate}`, or pass it on with a `set` step",
            )
    return None
