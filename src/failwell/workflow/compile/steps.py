"""The steps: which keys each type has, and the node that it becomes."""

from collections.abc import Callable, Mapping
from typing import Any

from failwell.workflow.compile.durations import Duration
from failwell.workflow.compile.kinds import RAISES
from failwell.workflow.compile.outputs import OUTPUT
from failwell.workflow.compile.people import GATE, QUESTIONS, check_gate, check_questions, gate, questions
from failwell.workflow.compile.routes import RETRY, RETRY_OF_AGENT, ROUTES, VALUES
from failwell.workflow.compile.settings import AGENT
from failwell.workflow.compile.shape import Key, Shape, is_right
from failwell.workflow.compile.types import (
    WRONG,
    Choice,
    Flag,
    Free,
    Many,
    Named,
    Number,
    Schema,
    Templated,
    Text,
    nearest,
    sort_of,
)  # fmt: skip
from failwell.workflow.plan import (
    AgentSpec,
    CallSpec,
    Node,
    NotificationSpec,
    ScriptSpec,
    SetSpec,
    Spec,
    TerminateSpec,
    WaitSpec,
    WorkflowSpec,
)  # fmt: skip
from failwell.workflow.source.problems import Problems
from failwell.workflow.source.tree import Item, Path, is_map

NAME = Text(
    r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}",
    "letters, digits, `_` and `-`",
    hint="templates and routes name steps, so keep it plain",
)
TAKEN = frozenset({"workflow", "context"})
"""Names that templates see something else under."""
_TEMPLATES = Many(Templated(empty=True))
_REFERENCE = Text(
    r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+\??", "a dotted reference, such as `finder.output.files`"
)

IDENTITY: dict[str, Key] = {
    "name": Key(NAME, "how routes and templates name it", required=True),
    "type": Key(Text(), "what sort of step it is; an agent unless told"),
    "description": Key(Text(empty=True), "what it is for"),
}
_INPUT: dict[str, Key] = {
    "input": Key(Many(Text()), "what it may see in explicit mode; `?` marks optional ones")
}
_ARGUED: dict[str, Key] = {
    "input": Key(
        Many(Text(), instead="what it is called with stands under `arguments`"), _INPUT["input"].about
    )
}
RAISING: dict[str, Key] = {
    "raises": Key(RAISES, "the kinds of its own that it may raise"),
    "routes": Key(ROUTES, "the ways out, in order"),
}
_RETRIED: dict[str, Key] = {"retry": Key(RETRY, "what is repeated before any route is asked")}
_OUTPUT: dict[str, Key] = {"output": Key(OUTPUT, "the fields of the output")}
_PAID: dict[str, Key] = {
    "idempotent": Key(Flag(), "whether a repeat after an unknown outcome is safe"),
    "estimate_usd": Key(Number(0), "what it is expected to cost, reserved in the budget while it runs"),
}
_TIMEOUT = Key(Duration(), "seconds, or a duration such as `90s`")

Build = Callable[[Mapping[str, Any]], Spec]


def _agent(got: Mapping[str, Any]) -> Spec:
    settings = {key: got[key] for key in AGENT if key in got}
    return AgentSpec(
        prompt=got.get("prompt"),
        system_prompt=got.get("system_prompt"),
        model=got.get("model"),
        timeout=got.get("timeout_seconds"),
        settings=settings,
    )


def _script(got: Mapping[str, Any]) -> Spec:
    return ScriptSpec(
        command=got["command"],
        args=got.get("args", ()),
        env=got.get("env") or {},
        env_from=got.get("env_from") or {},
        working_dir=got.get("working_dir"),
        stdin=got.get("stdin"),
        timeout=got.get("timeout"),
        output_limit=got.get("output_limit"),
    )


def _job(got: Mapping[str, Any]) -> Spec:
    return CallSpec(
        target=got["job"], arguments=got.get("arguments") or {}, timeout=got.get("timeout_seconds")
    )


def _tool(got: Mapping[str, Any]) -> Spec:
    return CallSpec(
        target=got["tool"],
        arguments=got.get("arguments") or {},
        timeout=got.get("timeout_seconds", got.get("timeout")),
        settings={"server": got["server"]} if "server" in got else {},
    )


def _set(got: Mapping[str, Any]) -> Spec:
    return SetSpec(
        value=got.get("value"), values=got.get("values"), output_type=got.get("output_type", "auto")
    )


def _wait(got: Mapping[str, Any]) -> Spec:
    return WaitSpec(duration=got["duration"], reason=got.get("reason"))


def _notification(got: Mapping[str, Any]) -> Spec:
    return NotificationSpec(emit=got.get("emit") or got["notification"], payload=got.get("payload") or {})


def _terminate(got: Mapping[str, Any]) -> Spec:
    return TerminateSpec(
        status=got["status"], reason=got["reason"], output_template=got.get("output_template")
    )


def _workflow(got: Mapping[str, Any]) -> Spec:
    return WorkflowSpec(
        path=got["workflow"], input_mapping=got.get("input_mapping"), max_depth=got.get("max_depth", 10)
    )


_ARGUMENTS = Key(VALUES, "name → value or template")
_CALL = RAISING | _RETRIED | _OUTPUT | _PAID | _INPUT
_KEYS: dict[str, tuple[Build, dict[str, Key], tuple[str, ...]]] = {
    "agent": (
        _agent,
        RAISING | {"retry": Key(RETRY_OF_AGENT)} | _OUTPUT | _PAID | _INPUT | AGENT
        | {
            "prompt": Key(Templated(empty=True), "what the model is asked"),
            "system_prompt": Key(Templated(empty=True), "what the model is told about its part"),
            "model": Key(Templated(), "which model"),
            "timeout_seconds": _TIMEOUT,
        },
        (),
    ),
    "script": (
        _script,
        _CALL
        | {
            "command": Key(Templated(), "the program; not a shell line", required=True),
            "args": Key(_TEMPLATES, "its arguments, one entry each"),
            "env": Key(Named(Text(empty=True), key=r"[^=\x00]+", must="a variable's name"), "variables, as written"),
            "env_from": Key(
                Named(_REFERENCE, key=r"[^=\x00]+", must="a variable's name"),
                "variables taken from a reference; the way in for secrets",
            ),
            "working_dir": Key(Templated(), "where it runs"),
            "stdin": Key(Templated(empty=True), "what it reads; an empty text is the end at once"),
            "timeout": _TIMEOUT,
            "output_limit": Key(Number(1, 2**31, whole=True), "bytes of each stream that are kept"),
        },
        (),
    ),
    "job": (
        _job,
        _CALL
        | {
            **_ARGUED,
            "job": Key(Text(), "the capability's name", required=True),
            "arguments": _ARGUMENTS,
            "timeout_seconds": _TIMEOUT,
        },
        (),
    ),
    "tool": (
        _tool,
        _CALL
        | {
            **_ARGUED,
            "tool": Key(Text(), "the tool's name", required=True),
            "server": Key(Text(), "the MCP server that offers it"),
            "arguments": _ARGUMENTS,
            "timeout_seconds": _TIMEOUT,
        },
        (),
    ),
    "mcp": (
        _tool,
        _CALL
        | {
            **_ARGUED,
            "server": Key(Text(), "the MCP server that offers it", required=True),
            "tool": Key(Text(), "the tool's name", required=True),
            "arguments": _ARGUMENTS,
            "timeout": _TIMEOUT,
        },
        (),
    ),
    "human_gate": (gate, RAISING | _INPUT | GATE, ()),
    "questions": (questions, RAISING | _INPUT | QUESTIONS, ("questions", "source")),
    "set": (
        _set,
        RAISING | _RETRIED | _OUTPUT | _INPUT
        | {
            "value": Key(Free(templated=True), "one value", null=True),
            "values": Key(VALUES, "several, by name"),
            "output_type": Key(
                Choice("auto", "string", "number", "integer", "boolean", "list", "dict"), "what `value` becomes"
            ),
        },
        ("value", "values"),
    ),
    "wait": (
        _wait,
        RAISING | _RETRIED | _INPUT
        | {
            "duration": Key(Duration(templated=True), "how long", required=True),
            "reason": Key(Templated(empty=True), "what is waited for"),
        },
        (),
    ),
    "notification": (
        _notification,
        RAISING | _RETRIED | _INPUT
        | {
            "emit": Key(Text(), "a type declared under `workflow.notifications`"),
            "notification": Key(Text(), "the same as `emit`"),
            "payload": Key(VALUES, "its fields"),
        },
        ("emit", "notification"),
    ),
    "terminate": (
        _terminate,
        _INPUT
        | {
            "status": Key(Choice("success", "failed"), "how the run ends", required=True),
            "reason": Key(Templated(), "why", required=True),
            "output_template": Key(VALUES, "replaces the output of the workflow"),
        },
        (),
    ),
    "workflow": (
        _workflow,
        RAISING | _OUTPUT | _INPUT
        | {
            "workflow": Key(Templated(), "the file, from the folder of this one", required=True),
            "input_mapping": Key(VALUES, "its inputs; the parent's own unless told"),
            "max_depth": Key(Number(1, 10, whole=True), "how deep workflows may be nested"),
        },
        (),
    ),
}  # fmt: skip


def _owners() -> dict[str, str]:
    """Key → the types it belongs to, in words."""
    found: dict[str, list[str]] = {}
    for kind, (_, keys, _) in _KEYS.items():
        for key in keys:
            found.setdefault(key, []).append(kind)
    return {key: f"it belongs to steps of type {', '.join(kinds)}" for key, kinds in found.items()}


_ELSEWHERE = _owners()
_HINTS: dict[str, dict[str, str]] = {
    "terminate": {"routes": "the run ends here; there is nowhere to go"},
    "script": {"timeout_seconds": "write `timeout`"},
    "human_gate": {"retry": "a person is asked once; remove it"},
    "agent": {"command": "add `type: script`", "options": "add `type: human_gate`"},
}


def _shape(kind: str) -> Shape:
    _, keys, one_of = _KEYS[kind]
    article = "an" if kind[0] in "aeiou" else "a"
    return Shape(
        f"{article} {kind} step",
        IDENTITY | keys,
        one_of=one_of,
        at_most=(("values", "output_type"),) if kind == "set" else (),
        elsewhere=_ELSEWHERE | _HINTS.get(kind, {}),
    )


SHAPES: dict[str, Shape] = {kind: _shape(kind) for kind in _KEYS}


_CHECKS = {"human_gate": check_gate, "questions": check_questions}


class Step:
    """One entry of `agents`, read as a `Node`."""

    def read(self, item: Item, at: Path, on: Problems) -> Any:
        if not is_map(item.value):
            on.wrong(
                item, at, f"a step must be a mapping, not {sort_of(item.value)}", hint="begin with `name`"
            )
            return WRONG
        kind = type_of(item, at, on)
        shape = SHAPES.get(kind)
        if shape is None:
            return WRONG
        got = shape.read(item, at, on)
        if not is_right(got):
            return WRONG
        more = _CHECKS.get(kind)
        if more is not None:
            more(got, item, at, on)
        return node(kind, got, _KEYS[kind][0](got), item, at, on)

    def schema(self) -> Schema:
        return {"$ref": "#/$defs/step"}


def type_of(item: Item, at: Path, on: Problems, also: tuple[str, ...] = ()) -> str:
    """The type of a step; nothing after a mistake."""
    written: Item | None = item.value.get("type")
    if written is None or written.value is None:
        return "agent"
    kind = written.value
    if type(kind) is str and (kind in _KEYS or kind in also):
        return kind
    if on.is_full:
        on.left_out += 1
        return ""
    if type(kind) is str and kind in ("parallel", "for_each"):
        hint = f"put it under the top-level key `{kind}`"
    else:
        near = nearest(str(kind), _KEYS) if not written.veiled else ""
        hint = f"did you mean `{near}`?" if near else f"the types are {', '.join(_KEYS)}"
    quoted = "" if written.veiled else f" `{str(kind)[:60]}`" if type(kind) is str else ""
    on.wrong(written, (at, "type"), f"there is no step of type{quoted}", hint=hint)
    return ""


def node(kind: str, got: Mapping[str, Any], spec: Spec, item: Item, at: Path, on: Problems) -> Any:
    """The node that a step becomes."""
    name = got["name"]
    if name in TAKEN:
        hint = "templates see something else under it; choose another"
        on.wrong(item.value["name"], (at, "name"), f"the name `{name}` is taken", hint=hint)
    routes = got.get("routes", ())
    if kind == "human_gate":
        routes = _gate_routes(routes, item, at, on)
    return Node(
        name=name,
        type="tool" if kind == "mcp" else kind,  # type: ignore[arg-type]
        spec=spec,
        description=got.get("description", ""),
        input=got.get("input", ()),
        raises=got.get("raises"),
        routes=routes,
        retry=got.get("retry"),
        output=got.get("output"),
        idempotent=got.get("idempotent", False),
        estimate_usd=got.get("estimate_usd"),
        place=item.place,
    )


def _gate_routes(routes: tuple[Any, ...], item: Item, at: Path, on: Problems) -> tuple[Any, ...]:
    """The error routes of a gate; it leaves by its options, so the others are never taken."""
    kept: list[Any] = []
    for index, route in enumerate(routes):
        where = item.value["routes"].value[index]
        path = ((at, "routes"), index)
        if route.on_error is None:
            hint = "remove it; the ways out of a gate are the `route`s of its options"
            on.wrong(where, path, "a gate never takes a route of success", hint=hint, severity="warning")
            continue
        if route.again is not None:
            on.wrong(where, path, "a gate cannot be retried", hint="route to it again with `to` instead")
        kept.append(route)
    return tuple(kept)
