"""Plans built by hand, for tests that need no file."""

from collections.abc import Mapping, Sequence
from typing import Any

from failwell.calls.policy import Match, Policy
from failwell.errors.axes import Category
from failwell.files.item_tree import Place
from failwell.workflows.plan import (
    END,
    AgentSpec,
    CallSpec,
    DeclaredKind,
    FailureMode,
    ForEachSpec,
    GateSpec,
    Input,
    Member,
    Node,
    NotificationSpec,
    Option,
    ParallelSpec,
    Plan,
    Question,
    QuestionsSpec,
    Route,
    ScriptSpec,
    SetSpec,
    Template,
    TerminateSpec,
    WaitSpec,
    WorkflowSpec,
)

FILE = "flow.yaml"


def a_place(line: int = 1, column: int = 1, file: str = FILE) -> Place:
    return Place(file=file, line=line, column=column)


def a_text(text: str, line: int = 1) -> Template:
    return Template(text=text, place=a_place(line), folder=".")


def a_value(value: Any) -> Any:
    """`value` with its strings as templates, to any depth."""
    if isinstance(value, str):
        return a_text(value)
    if isinstance(value, Mapping):
        return {str(key): a_value(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list):
        return [a_value(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def a_plan(*nodes: Node, entry: str | None = None, **fields: Any) -> Plan:
    """A plan of these nodes; it begins with the first."""
    fields["output"] = a_value(fields.get("output", {}))
    fields.setdefault("file", FILE)
    return Plan(
        name=fields.pop("name", "flow"),
        entry=nodes[0].name if entry is None else entry,
        nodes={node.name: node for node in nodes},
        **fields,
    )


def an_input(name: str, type: Any = "string", **fields: Any) -> Input:  # noqa: A002
    return Input(name=name, type=type, place=a_place(), **fields)


def some_inputs(*inputs: Input) -> dict[str, Input]:
    return {one.name: one for one in inputs}


def a_kind(name: str, category: Category = Category.TRANSIENT) -> DeclaredKind:
    return DeclaredKind(name=name, category=category, place=a_place())


def to(target: str = END, *, when: str | None = None, line: int = 1, **output: Any) -> Route:
    """A way out of success."""
    return Route(
        to=target,
        when=None if when is None else a_text(when, line),
        output=a_value(output),
        place=a_place(line),
    )


def on_error(
    *kinds: str,
    to: str | None = None,
    retry: Policy | None = None,
    halt: str | None = None,
    propagate: bool = False,
    when: str | None = None,
    line: int = 1,
    prefixes: Sequence[str] = (),
    categories: Sequence[Category] = (),
    **output: Any,
) -> Route:
    """An error route for these kinds; with none of them, for every failure."""
    match = Match(kinds=frozenset(kinds), prefixes=tuple(prefixes), categories=frozenset(categories))
    return Route(
        on_error=match,
        to=to,
        retry=retry,
        halt=None if halt is None else a_text(halt, line),
        propagate=propagate,
        when=None if when is None else a_text(when, line),
        output=a_value(output),
        place=a_place(line),
    )


def _node(name: str, type: Any, spec: Any, routes: Sequence[Route], fields: dict[str, Any]) -> Node:  # noqa: A002
    fields.setdefault("place", a_place())
    return Node(name=name, type=type, spec=spec, routes=tuple(routes), **fields)


def a_script(
    name: str = "build",
    *routes: Route,
    command: str = "true",
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    env_from: Mapping[str, str] | None = None,
    working_dir: str | None = None,
    stdin: str | None = None,
    timeout: float | None = None,
    **fields: Any,
) -> Node:
    spec = ScriptSpec(
        command=a_text(command),
        args=tuple(a_text(one) for one in args),
        env=dict(env or {}),
        env_from=dict(env_from or {}),
        working_dir=None if working_dir is None else a_text(working_dir),
        stdin=None if stdin is None else a_text(stdin),
        timeout=timeout,
    )
    return _node(name, "script", spec, routes, fields)


def an_agent(name: str = "writer", *routes: Route, prompt: str = "go", **fields: Any) -> Node:
    system = fields.pop("system_prompt", None)
    spec = AgentSpec(
        prompt=a_text(prompt),
        system_prompt=None if system is None else a_text(system),
        settings=a_value(fields.pop("settings", {})),
    )
    return _node(name, "agent", spec, routes, fields)


def a_job(name: str = "transcribe", *routes: Route, target: str = "whisper", **fields: Any) -> Node:
    spec = CallSpec(target=target, arguments=a_value(fields.pop("arguments", {})))
    return _node(name, "job", spec, routes, fields)


def a_tool(name: str = "search", *routes: Route, target: str = "web", **fields: Any) -> Node:
    spec = CallSpec(target=target, arguments=a_value(fields.pop("arguments", {})))
    return _node(name, "tool", spec, routes, fields)


def a_set(
    name: str = "shape",
    *routes: Route,
    value: Any = None,
    values: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Node:
    spec = SetSpec(
        value=a_value(value),
        values=None if values is None else a_value(values),
        output_type=fields.pop("output_type", "auto"),
    )
    return _node(name, "set", spec, routes, fields)


def a_wait(name: str = "pause", *routes: Route, duration: float | str = 1.0, **fields: Any) -> Node:
    reason = fields.pop("reason", None)
    spec = WaitSpec(
        duration=a_text(duration) if isinstance(duration, str) else duration,
        reason=None if reason is None else a_text(reason),
    )
    return _node(name, "wait", spec, routes, fields)


def a_gate(
    name: str = "approve",
    *routes: Route,
    prompt: str = "Go on?",
    options: Mapping[str, str] | None = None,
    **fields: Any,
) -> Node:
    """A gate; `options` is value → route."""
    offered = {"yes": END} if options is None else options
    spec = GateSpec(
        prompt=a_text(prompt),
        options=tuple(
            Option(label=a_text(value), value=value, route=route) for value, route in offered.items()
        ),
        timeout=fields.pop("timeout", None),
        timeout_option=fields.pop("timeout_option", None),
        reject=tuple(fields.pop("reject", ())),
    )
    return _node(name, "human_gate", spec, routes, fields)


def some_questions(
    name: str = "ask", *routes: Route, texts: Sequence[str] = ("Why?",), **fields: Any
) -> Node:
    spec = QuestionsSpec(
        questions=tuple(Question(id=f"q{n}", text=a_text(text)) for n, text in enumerate(texts)),
        source=fields.pop("source", None),
        abort_route=fields.pop("abort_route", None),
    )
    return _node(name, "questions", spec, routes, fields)


def a_notification(
    name: str = "tell",
    *routes: Route,
    emit: str = "built",
    payload: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Node:
    return _node(
        name, "notification", NotificationSpec(emit=emit, payload=a_value(payload or {})), routes, fields
    )


def a_terminate(name: str = "stop", *, status: Any = "failed", reason: str = "enough", **fields: Any) -> Node:
    output = fields.pop("output_template", None)
    spec = TerminateSpec(
        status=status, reason=a_text(reason), output_template=None if output is None else a_value(output)
    )
    return _node(name, "terminate", spec, (), fields)


def a_workflow(
    name: str = "child",
    *routes: Route,
    path: str = "child.yaml",
    mapping: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Node:
    spec = WorkflowSpec(
        path=a_text(path),
        input_mapping=None if mapping is None else a_value(mapping),
        max_depth=fields.pop("max_depth", 10),
        timeout=fields.pop("timeout", None),
    )
    return _node(name, "workflow", spec, routes, fields)


def a_parallel(
    name: str = "both",
    *routes: Route,
    members: Sequence[str | Member] = ("left", "right"),
    failure_mode: FailureMode = "fail_fast",
    **fields: Any,
) -> Node:
    spec = ParallelSpec(
        members=tuple(Member(name=one) if isinstance(one, str) else one for one in members),
        failure_mode=failure_mode,
        max_concurrent=fields.pop("max_concurrent", None),
        timeout=fields.pop("timeout", None),
    )
    return _node(name, "parallel", spec, routes, fields)


def a_for_each(
    name: str = "fan",
    *routes: Route,
    source: str = "workflow.input.items",
    variable: str = "item",
    body: Node | None = None,
    failure_mode: FailureMode = "fail_fast",
    **fields: Any,
) -> Node:
    spec = ForEachSpec(
        source=source,
        variable=variable,
        body=a_set("one", value="{{ item }}") if body is None else body,
        failure_mode=failure_mode,
        max_concurrent=fields.pop("max_concurrent", 10),
        timeout=fields.pop("timeout", None),
        key_by=fields.pop("key_by", None),
    )
    return _node(name, "for_each", spec, routes, fields)
