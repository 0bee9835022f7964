"""Reads steps by the table of their type, and builds their nodes."""

from collections.abc import Callable, Mapping
from typing import Any

from failwell.files.item_tree import Item, Path, Place
from failwell.files.mistakes import MistakeLog
from failwell.files.shapes import Shape, readable_part
from failwell.files.suggestions import nearest
from failwell.files.value_types import INVALID, Invalid, Schema, type_name
from failwell.workflows.compile.gate_shapes import check_gate, check_questions
from failwell.workflows.compile.route_shapes import AgentRetry
from failwell.workflows.compile.step_index import FLOW, NAMES, WorkflowMistakes
from failwell.workflows.compile.step_keys import BLANKS, IDENTITY, KEYS, RESERVED_NAMES
from failwell.workflows.plan import AgentSpec, Node, Spec


def _owners() -> dict[str, str]:
    """Key → a hint with the types that it belongs to."""
    owners: dict[str, list[str]] = {}
    for kind, (_, keys, _) in KEYS.items():
        for key in keys:
            owners.setdefault(key, []).append(kind)
    return {key: f"it belongs to steps of type {', '.join(kinds)}" for key, kinds in owners.items()}


_KEY_HINTS = _owners()
_HINTS: dict[str, dict[str, str]] = {
    "terminate": {"routes": "the run ends here, so it has no routes"},
    "script": {"timeout_seconds": "write `timeout`"},
    "human_gate": {"retry": "a person is asked once; remove it"},
    "agent": {"command": "add `type: script`", "options": "add `type: human_gate`"},
}


def _shape(kind: str) -> Shape:
    _, keys, one_of = KEYS[kind]
    article = "an" if kind[0] in "aeiou" else "a"
    return Shape(
        f"{article} {kind} step",
        IDENTITY | keys,
        one_of=one_of,
        at_most=(("values", "output_type"),) if kind == "set" else (),
        key_hints=_KEY_HINTS | _HINTS.get(kind, {}),
    )


SHAPES: dict[str, Shape] = {kind: _shape(kind) for kind in KEYS}


_OWN_KEYS = frozenset(
    {
        "system_prompt", "model", "provider", "max_attempts", "fallback", "tools", "tool_errors", "reasoning",
        "temperature", "max_tokens", "skills", "plugins", "session_key", "working_dir", "validator", "dialog",
    }
)  # fmt: skip
"""Keys that belong to a model turn, and not to an agent that somebody has."""


def _check_agent(values: dict[str, Any], item: Item, path: Path, log: MistakeLog) -> None:
    """Keys that contradict each other, or have no effect together."""
    mode: Item | None = item.value.get("output_mode")
    if mode is not None and mode.value == "raw" and values.get("output") is not None:
        log.add(
            "`output_mode: raw` keeps the answer as one text, and `output` declares fields of it",
            item.key_place("output_mode"),
            (path, "output_mode"),
            hint="remove one of them",
        )
    if values.get("agent") is not None:
        for key in _OWN_KEYS & values.keys():
            log.add(
                f"`{key}` has no effect: an agent that you have brings its own",
                item.key_place(key),
                (path, key),
                hint="remove it, or set it where the agent is built",
                severity="warning",
            )


_CHECKS = {"agent": _check_agent, "human_gate": check_gate, "questions": check_questions}


class StepShape:
    """One entry of `agents`, read as a `Node`."""

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        if item.keys is None:
            log.add_at(
                item, path, f"a step must be a mapping, not {type_name(item.value)}", hint="begin with `name`"
            )
            log.unknown_topics.update((FLOW, NAMES))
            return INVALID
        errors = log.errors
        kind = type_of(item, path, log)
        shape = SHAPES.get(kind)
        if shape is None:
            return unreadable(item, log)
        values = shape.values(item, path, log)
        if Invalid not in map(type, values.values()):
            check = _CHECKS.get(kind)
            if check is not None:
                check(values, item, path, log)
            step = node(kind, values, KEYS[kind][0](values), item, path, log)
            return step if log.errors == errors else incomplete(step, log)
        return rescued(kind, values, KEYS[kind][0], item, path, log)

    def schema(self) -> Schema:
        return {"$ref": "#/$defs/step"}


def name_of_step(item: Item) -> str:
    """The name of a step as written, valid or not; an empty text if there is none."""
    name: Item | None = item.value.get("name")
    return name.value if name is not None and type(name.value) is str else ""


def rescued(
    kind: str,
    values: Mapping[str, Any],
    build: Callable[[Mapping[str, Any]], Spec],
    item: Item,
    path: Path,
    log: MistakeLog,
) -> Invalid:
    """The step with its valid keys, so that its templates and routes are checked in the same pass."""
    name = name_of_step(item)
    if isinstance(values.get("name"), Invalid):
        log.unknown_topics.update((FLOW, NAMES))
    if not name:
        return INVALID
    readable_values = BLANKS | readable_part(values) | {"name": name}
    return incomplete(node(kind, readable_values, build(readable_values), item, path, log), log)


def incomplete(step: Node, log: MistakeLog) -> Invalid:
    """A node with a mistake."""
    if isinstance(log, WorkflowMistakes):
        log.incomplete.add(step.name)
    return Invalid(step)


def unreadable(item: Item, log: MistakeLog) -> Invalid:
    """A step of which only the name is known."""
    log.unknown_topics.add(FLOW)
    name = name_of_step(item)
    if not name:
        log.unknown_topics.add(NAMES)
        return INVALID
    if isinstance(log, WorkflowMistakes):
        log.unreadable.add(name)
    return Invalid(
        Node(
            name=name,
            type="agent",
            spec=AgentSpec(),
            place=Place(file=item.file, line=item.line + 1, column=item.column + 1),
        )
    )


def type_of(item: Item, path: Path, log: MistakeLog, also: tuple[str, ...] = ()) -> str:
    """The type of a step; an empty text after a mistake."""
    type_item: Item | None = item.value.get("type")
    if type_item is None or type_item.value is None:
        return "agent"
    kind = type_item.value
    if type(kind) is str and (kind in KEYS or kind in also):
        return kind
    if log.is_full:
        log.left_out += 1
        return ""
    if type(kind) is str and kind in ("parallel", "for_each"):
        hint = f"put it under the top-level key `{kind}`"
    else:
        near = nearest(str(kind), KEYS) if not type_item.from_env else ""
        hint = f"did you mean `{near}`?" if near else f"the types are {', '.join(KEYS)}"
    quoted = "" if type_item.from_env else f" `{str(kind)[:60]}`" if type(kind) is str else ""
    log.add_at(type_item, (path, "type"), f"there is no step of type{quoted}", hint=hint)
    return ""


def node(kind: str, values: Mapping[str, Any], spec: Spec, item: Item, path: Path, log: MistakeLog) -> Any:
    """The node that a step becomes."""
    name = values["name"]
    if name in RESERVED_NAMES:
        hint = "it has another meaning in templates; choose another name"
        log.add_at(item.value["name"], (path, "name"), f"the name `{name}` is reserved", hint=hint)
    routes, retry = values.get("routes", ()), values.get("retry")
    if kind == "human_gate":
        routes = _gate_routes(routes, item, path, log)
    return Node(
        name=name,
        type="tool" if kind == "mcp" else kind,  # type: ignore[arg-type]
        spec=spec,
        description=values.get("description", ""),
        input=values.get("input", ()),
        raises=values.get("raises"),
        routes=routes,
        retry=retry.policy if isinstance(retry, AgentRetry) else retry,
        output=values.get("output"),
        idempotent=values.get("idempotent", False),
        estimate_usd=values.get("estimate_usd"),
        place=Place(file=item.file, line=item.line + 1, column=item.column + 1),
    )


def _gate_routes(routes: tuple[Any, ...], item: Item, path: Path, log: MistakeLog) -> tuple[Any, ...]:
    """The error routes of a gate. Success routes are never taken, because its options have the routes."""
    error_routes: list[Any] = []
    entries = item.value["routes"].value if routes else ()
    for index, route in enumerate(routes):
        # The index differs if a route before it could not be read.
        entry = next((candidate for candidate in entries if candidate.place == route.place), item)
        inner_path = ((path, "routes"), index)
        if route.on_error is None:
            hint = "remove it; the routes of a gate are those of its options"
            log.add_at(entry, inner_path, "a gate never takes a success route", hint=hint, severity="warning")
            continue
        if route.retry is not None:
            log.add_at(
                entry, inner_path, "a gate cannot be retried", hint="route to it again with `to` instead"
            )
        error_routes.append(route)
    return tuple(error_routes)
