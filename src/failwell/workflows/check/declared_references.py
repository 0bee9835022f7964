"""Rules about references outside templates: `input`, `env_from`, and the `source` of loops and questions."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from failwell.files.mistakes import Mistake
from failwell.files.suggestions import choices
from failwell.workflows.check.check_context import CheckContext, PlacedNode, TemplateUse
from failwell.workflows.check.findings import error, warning
from failwell.workflows.check.template_names import GUARD, OF_GROUP, OF_NODE, OF_WORKFLOW
from failwell.workflows.compile import names
from failwell.workflows.compile.step_index import FLOW, INPUTS, NAMES
from failwell.workflows.plan import GROUPS, ForEachSpec, Node, QuestionsSpec, ScriptSpec

_SHAPE = re.compile(rf"(?![0-9-]){names.dotted(1)}\??")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OURS = frozenset(
    {"FAILWELL_ERROR_OUT", "CONDUCTOR_ERROR_OUT", "FAILWELL_RETRY_ATTEMPT", "CONDUCTOR_RETRY_ATTEMPT"}
)
"""Variables that the runtime always sets itself."""


class Dotted(NamedTuple):
    """A reference in an `input` entry."""

    path: tuple[str, ...]
    is_optional: bool


def dotted(text: str) -> Dotted | None:
    """The reference in `text`, or `None` if it is not one."""
    if _SHAPE.fullmatch(text) is None:
        return None
    return Dotted(tuple(text.removesuffix("?").split(".")), text.endswith("?"))


def declared(context: CheckContext) -> Iterator[Mistake]:
    """Check every reference that nodes declare."""
    for placed in context.placed_nodes:
        node = placed.node
        for index, text in enumerate(node.input):
            yield from _reference(context, placed, text, f"{placed.path}.input[{index}]")
        spec = node.spec
        if isinstance(spec, ScriptSpec):
            yield from _env_from(context, placed, spec)
        source = spec.source if isinstance(spec, ForEachSpec | QuestionsSpec) else None
        if source:
            yield from _source(context, placed, source)
    if context.plan.context_mode == "explicit":
        yield from _undeclared(context)


def _env_from(context: CheckContext, placed: PlacedNode, spec: ScriptSpec) -> Iterator[Mistake]:
    for variable, text in spec.env_from.items():
        path = f"{placed.path}.env_from.{variable}"
        if _VARIABLE.fullmatch(variable) is None:
            message = f"`{variable}` cannot be the name of a variable"
            yield error(placed.node.place, message, path=path, hint="use letters, digits and underscores")
        if variable in spec.env:
            message = f"`{variable}` is in both `env` and `env_from` of `{placed.node.name}`"
            yield error(placed.node.place, message, path=path, hint="remove one of them")
        yield from _reference(context, placed, text, path)
    for variable in (*spec.env, *spec.env_from):
        if variable in _OURS:
            yield warning(
                placed.node.place,
                f"the runtime sets `{variable}` itself, so the value of `{placed.node.name}` has no effect",
                path=f"{placed.path}.env.{variable}",
                hint="remove it",
            )


def _source(context: CheckContext, placed: PlacedNode, text: str) -> Iterator[Mistake]:
    path = f"{placed.path}.source"
    reference = dotted(text)
    if reference is None or reference.is_optional:
        yield _malformed(placed, text, path)
        return
    root, *fields = reference.path
    if root not in placed.names and (len(fields) < 2 and fields not in (["output"], ["outputs"])):
        yield error(
            placed.node.place,
            f"`{text}` names no list of a step",
            path=path,
            hint="write it as `STEP.output.FIELD` or `workflow.input.NAME`",
        )
        return
    yield from _reference(context, placed, text, path)


def _malformed(placed: PlacedNode, text: str, path: str) -> Mistake:
    return error(
        placed.node.place,
        f"`{text}` is not a reference",
        path=path,
        hint="write it with dots and without braces, as in `build.output.version` or `workflow.input.name`",
    )


def _reference(context: CheckContext, placed: PlacedNode, text: str, path: str) -> Iterator[Mistake]:
    reference = dotted(text)
    if reference is None:
        yield _malformed(placed, text, path)
        return
    root = reference.path[0]
    plan, place = context.plan, placed.node.place
    if root in placed.names:
        return
    if root == "workflow":
        if len(reference.path) < 2 or reference.path[1] not in OF_WORKFLOW:
            message = f"`{text}` is not a reference to an input"
            yield error(place, message, path=path, hint="write `workflow.input.NAME`")
        elif (
            reference.path[1] == "input" and len(reference.path) > 2 and reference.path[2] not in plan.inputs
        ):
            if not context.knows(INPUTS):
                return
            name = reference.path[2]
            hint = choices(
                context.near(name, plan.inputs, "inputs"), plan.inputs, f"declare the input `{name}`"
            )
            report = error if plan.inputs else warning
            yield report(place, f"the workflow has no input `{name}`", path=path, hint=hint)
        return
    if root in context.flow.owner:
        yield from _inside(context, placed, root, path)
        return
    node = plan.nodes.get(root)
    if node is None:
        if not context.knows(NAMES):
            return
        hint = choices(
            context.near(root, plan.nodes, "nodes"), plan.nodes, "name a step, or `workflow.input.NAME`"
        )
        yield error(place, f"no step is called `{root}`", path=path, hint=hint)
        return
    yield from _missing_output(context, placed, node, reference, path)


def _inside(context: CheckContext, placed: PlacedNode, root: str, path: str) -> Iterator[Mistake]:
    home = context.flow.outermost(root)
    if home == placed.home:
        message = f"`{root}` runs beside `{placed.node.name}` in `{home}`, so it has no output yet"
        hint = f"do this after `{home}`"
    else:
        message, hint = (
            f"`{root}` runs inside `{home}` and has no output of its own",
            f"write `{home}.outputs`",
        )
    yield error(placed.node.place, message, path=path, hint=hint)


def _missing_output(
    context: CheckContext, placed: PlacedNode, node: Node, reference: Dotted, path: str
) -> Iterator[Mistake]:
    """Warn about a required reference that may not exist: it would fail the step."""
    slot = reference.path[1] if len(reference.path) > 1 else "output"
    if reference.is_optional or not context.knows(FLOW) or not context.flow.reaches(placed.home):
        return
    moment = "failure" if slot == "error" and node.type not in GROUPS else "success"
    is_kept = slot in OF_GROUP if node.type in GROUPS else node.type == "script" and slot == OF_NODE[0]
    sure = node.name != placed.home and (
        context.flow.is_sure(node.name, moment, placed.home)
        or (is_kept and context.flow.is_sure(node.name, "start", placed.home))
    )
    if not sure:
        yield warning(
            placed.node.place,
            f"`{'.'.join(reference.path)}` may not exist when `{placed.node.name}` starts",
            path=path,
            hint="make it optional with a `?` at its end"
            if path.rpartition(".")[2].startswith("input")
            else GUARD,
        )


def _undeclared(context: CheckContext) -> Iterator[Mistake]:
    """In explicit mode, everything that a template of a node uses must be in its `input`."""
    for use in context.uses:
        node = use.text.node
        if node is not None and use.text.moment == "start" and context.is_complete(node):
            yield from _not_granted(context, use, node)


def _granted(node: Node) -> set[tuple[str, ...]]:
    paths: set[tuple[str, ...]] = set()
    for text in node.input:
        reference = dotted(text)
        if reference is None:
            continue
        path = reference.path
        if len(path) > 1 and path[1] == "error":
            # An error is always granted as a whole.
            path = path[:2]
        elif len(path) > 1 and path[1] not in (*OF_NODE, *OF_GROUP):
            path = (path[0], "output", *path[1:])
        paths.add(path)
    return paths


def _not_granted(context: CheckContext, use: TemplateUse, node: Node) -> Iterator[Mistake]:
    granted = _granted(node)
    reported: set[str] = set()
    for reference in use.references:
        path = reference.path
        if path[0] not in context.plan.nodes or path[0] in use.text.names or path[0] in context.flow.owner:
            continue
        if any(path[: len(grant)] == grant or grant[: len(path)] == path for grant in granted):
            continue
        name = ".".join(path[:3] if path[1:2] != ("error",) else path[:2])
        if name not in reported:
            reported.add(name)
            yield warning(
                use.text.template.place,
                f"`{name}` is not in the `input` of `{node.name}`, which `explicit` mode requires",
                path=use.text.field,
                hint=f"add `{name}` to its `input`",
            )
