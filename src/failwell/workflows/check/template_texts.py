"""Every template of a plan: its field, when it is rendered, and the names that it can use then."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from failwell.workflows.check.control_flow import Moment
from failwell.workflows.plan import (
    AgentSpec,
    CallSpec,
    ForEachSpec,
    GateSpec,
    Node,
    NotificationSpec,
    ParallelSpec,
    Plan,
    QuestionsSpec,
    ScriptSpec,
    SetSpec,
    StageSpec,
    Template,
    TerminateSpec,
    WaitSpec,
    WorkflowSpec,
)

_NOTHING: frozenset[str] = frozenset()
_ROUTE = frozenset({"output"})
_ERROR_ROUTE = frozenset({"output", "error"})
_HOOK = frozenset({"error", "result"})
STAGE_NAMES = frozenset({"ctx", "attempt", "feedback", "siblings", "error"})
"""Names that the templates of a stage have in every phase."""
_ACTED = frozenset({"act"})
"""Names that they have after `act`."""


class TemplateText(NamedTuple):
    """One template of a plan."""

    template: Template
    field: str
    """The path of the field, such as `build.args[2]`."""
    node: Node | None
    """The node that it belongs to; `None` for the workflow."""
    home: str | None
    """The top-level node at which it is rendered; `None` for the end of the run."""
    moment: Moment = "start"
    names: frozenset[str] = _NOTHING
    """Names that exist only at this moment."""
    is_condition: bool = False
    """Whether it is a `when`, which may be an expression without braces."""
    is_anywhere: bool = False
    """Whether it may be rendered at any point of a run, so that no output is certain to exist."""


def texts_of_node(node: Node, home: str, path: str, names: frozenset[str]) -> Iterator[TemplateText]:
    """The templates of a node and its routes, without those of a group's members."""
    if isinstance(node.spec, StageSpec):
        names |= STAGE_NAMES
        yield from _texts_of_stage(node, node.spec, home, path, names)
    for field, template in _of_spec(node):
        yield TemplateText(template, f"{path}.{field}", node, home, names=names)
    if isinstance(node.spec, ParallelSpec):
        for index, member in enumerate(node.spec.members):
            if member.when is not None:
                field = f"{path}.agents[{index}].when"
                yield TemplateText(member.when, field, node, home, names=names, is_condition=True)
    for index, route in enumerate(node.routes):
        moment: Moment = "success" if route.on_error is None else "failure"
        visible = names | (_ROUTE if route.on_error is None else _ERROR_ROUTE)
        if isinstance(node.spec, StageSpec):
            visible |= _ACTED
        route_path = f"{path}.routes[{index}]"
        if route.when is not None:
            yield TemplateText(
                route.when, f"{route_path}.when", node, home, moment, visible, is_condition=True
            )
        if route.halt is not None:
            yield TemplateText(route.halt, f"{route_path}.halt.message", node, home, moment, visible)
        if route.output:
            for field, template in walk(route.output, f"{route_path}.output"):
                yield TemplateText(template, field, node, home, moment, visible)


def _texts_of_stage(
    node: Node, spec: StageSpec, home: str, path: str, names: frozenset[str]
) -> Iterator[TemplateText]:
    for phase, checks in (("checkGate", spec.gate), ("assert", spec.checks)):
        visible = names if phase == "checkGate" else names | _ACTED
        for index, check in enumerate(checks):
            field = f"{path}.{phase}[{index}]"
            if check.when is not None:
                yield TemplateText(check.when, f"{field}.when", node, home, names=visible, is_condition=True)
            if check.feedback is not None:
                yield TemplateText(check.feedback, f"{field}.feedback", node, home, names=visible)
    for field, template in walk(spec.exit, f"{path}.exit"):
        yield TemplateText(template, field, node, home, names=names | _ACTED)


def texts_of_workflow(plan: Plan) -> Iterator[TemplateText]:
    """The templates that belong to no node: outputs, hooks, instructions."""
    for field, template in walk(plan.output, "output"):
        yield TemplateText(template, field, None, None)
    for name, template in plan.hooks.items():
        yield TemplateText(
            template, f"workflow.hooks.{name}", None, None, names=_HOOK, is_anywhere=name != "on_complete"
        )
    for index, template in enumerate(plan.instructions):
        yield TemplateText(template, f"workflow.instructions[{index}]", None, None, is_anywhere=True)
    for field, template in walk(plan.metadata, "workflow.metadata"):
        yield TemplateText(template, field, None, None, is_anywhere=True)
    for field, template in walk(plan.runtime, "workflow.runtime"):
        yield TemplateText(template, field, None, None, is_anywhere=True)


def loop_names(spec: ForEachSpec) -> frozenset[str]:
    """The names that a loop adds for its body."""
    return frozenset({spec.variable, "_index", "_key"})


def walk(value: Any, path: str) -> Iterator[tuple[str, Template]]:
    """Every template in a value, with its path."""
    if isinstance(value, Template):
        yield path, value
    elif isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, Any]", value).items():
            yield from walk(inner, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(cast("list[Any]", value)):
            yield from walk(inner, f"{path}[{index}]")


def _of_spec(node: Node) -> Iterator[tuple[str, Template]]:
    spec = node.spec
    if isinstance(spec, ScriptSpec):
        yield "command", spec.command
        for index, template in enumerate(spec.args):
            yield f"args[{index}]", template
        yield from _present(("working_dir", spec.working_dir), ("stdin", spec.stdin))
    elif isinstance(spec, SetSpec):
        yield from walk(spec.value, "value") if spec.values is None else walk(spec.values, "values")
    elif isinstance(spec, AgentSpec):
        yield from _present(
            ("prompt", spec.prompt), ("system_prompt", spec.system_prompt), ("model", spec.model)
        )
        yield from _fields(spec.settings)
    elif isinstance(spec, CallSpec):
        yield from walk(spec.arguments, "arguments")
        yield from _fields(spec.settings)
    elif isinstance(spec, StageSpec):
        yield from walk(spec.setup, "setup")
        yield from _present(("body", spec.body), ("prompt", spec.prompt), ("model", spec.model))
        yield from _fields(spec.settings)
    elif isinstance(spec, WorkflowSpec):
        yield "workflow", spec.path
        yield from walk(spec.input_mapping, "input_mapping")
    else:
        yield from _of_rare_spec(node)


def _of_rare_spec(node: Node) -> Iterator[tuple[str, Template]]:
    spec = node.spec
    if isinstance(spec, GateSpec):
        yield "prompt", spec.prompt
        for index, option in enumerate(spec.options):
            yield f"options[{index}].label", option.label
        yield from _present(("assignee", spec.assignee))
    elif isinstance(spec, QuestionsSpec):
        yield from _present(("prompt", spec.prompt))
        for index, question in enumerate(spec.questions):
            question_path = f"questions[{index}]"
            yield f"{question_path}.text", question.text
            yield from _present((f"{question_path}.hint", question.hint))
            yield from walk(list(question.choices), f"{question_path}.choices")
            yield from walk(question.default, f"{question_path}.default")
    elif isinstance(spec, WaitSpec):
        if isinstance(spec.duration, Template):
            yield "duration", spec.duration
        yield from _present(("reason", spec.reason))
    elif isinstance(spec, NotificationSpec):
        yield from walk(spec.payload, "payload")
    elif isinstance(spec, TerminateSpec):
        yield "reason", spec.reason
        yield from walk(spec.output_template, "output_template")


def _present(*fields: tuple[str, Template | None]) -> Iterator[tuple[str, Template]]:
    for field, template in fields:
        if template is not None:
            yield field, template


def _fields(settings: Mapping[str, Any]) -> Iterator[tuple[str, Template]]:
    for name, value in settings.items():
        yield from walk(value, name)
