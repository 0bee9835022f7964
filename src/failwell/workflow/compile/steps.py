"""Steps: read by the table of their type, and made into nodes."""

from collections.abc import Callable, Mapping
from typing import Any

from failwell.files.mistakes import Problems
from failwell.files.shapes import Shape, is_right, readable
from failwell.files.tree import Item, Path, is_map
from failwell.files.values import WRONG, Schema, Wrong, nearest, sort_of
from failwell.workflow.compile.gate_shapes import check_gate, check_questions
from failwell.workflow.compile.step_index import FLOW, NAMES, WorkflowProblems
from failwell.workflow.compile.step_keys import BLANKS, IDENTITY, KEYS, TAKEN
from failwell.workflow.plan import AgentSpec, Node, Spec


def _owners() -> dict[str, str]:
    """Key → the types it belongs to, in words."""
    found: dict[str, list[str]] = {}
    for kind, (_, keys, _) in KEYS.items():
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
    _, keys, one_of = KEYS[kind]
    article = "an" if kind[0] in "aeiou" else "a"
    return Shape(
        f"{article} {kind} step",
        IDENTITY | keys,
        one_of=one_of,
        at_most=(("values", "output_type"),) if kind == "set" else (),
        elsewhere=_ELSEWHERE | _HINTS.get(kind, {}),
    )


SHAPES: dict[str, Shape] = {kind: _shape(kind) for kind in KEYS}


_CHECKS = {"human_gate": check_gate, "questions": check_questions}


class Step:
    """One entry of `agents`, read as a `Node`."""

    def read(self, item: Item, at: Path, on: Problems) -> Any:
        if not is_map(item.value):
            on.wrong(
                item, at, f"a step must be a mapping, not {sort_of(item.value)}", hint="begin with `name`"
            )
            on.unsure.update((FLOW, NAMES))
            return WRONG
        errors = on.errors
        kind = type_of(item, at, on)
        shape = SHAPES.get(kind)
        if shape is None:
            return unreadable(item, on)
        got = shape.values(item, at, on)
        if is_right(got):
            more = _CHECKS.get(kind)
            if more is not None:
                more(got, item, at, on)
            made = node(kind, got, KEYS[kind][0](got), item, at, on)
            return made if on.errors == errors else incomplete(made, on)
        return rescued(kind, got, KEYS[kind][0], item, at, on)

    def schema(self) -> Schema:
        return {"$ref": "#/$defs/step"}


def name_of_step(item: Item) -> str:
    """The name of a step as it is written, whether or not it may be one; nothing if there is none."""
    name: Item | None = item.value.get("name")
    return name.value if name is not None and type(name.value) is str else ""


def rescued(
    kind: str,
    got: Mapping[str, Any],
    build: Callable[[Mapping[str, Any]], Spec],
    item: Item,
    at: Path,
    on: Problems,
) -> Wrong:
    """The step as far as it could be read, so that its templates and routes are checked in the same pass."""
    name = name_of_step(item)
    if isinstance(got.get("name"), Wrong):
        on.unsure.update((FLOW, NAMES))
    if not name:
        return WRONG
    values = BLANKS | readable(got) | {"name": name}
    return incomplete(node(kind, values, build(values), item, at, on), on)


def incomplete(made: Node, on: Problems) -> Wrong:
    """A node with a mistake in it."""
    if isinstance(on, WorkflowProblems):
        on.incomplete.add(made.name)
    return Wrong(made)


def unreadable(item: Item, on: Problems) -> Wrong:
    """A step of which nothing but the name is known."""
    on.unsure.add(FLOW)
    name = name_of_step(item)
    if not name:
        on.unsure.add(NAMES)
        return WRONG
    if isinstance(on, WorkflowProblems):
        on.unreadable.add(name)
    return Wrong(Node(name=name, type="agent", spec=AgentSpec(), place=item.place))


def type_of(item: Item, at: Path, on: Problems, also: tuple[str, ...] = ()) -> str:
    """The type of a step; nothing after a mistake."""
    written: Item | None = item.value.get("type")
    if written is None or written.value is None:
        return "agent"
    kind = written.value
    if type(kind) is str and (kind in KEYS or kind in also):
        return kind
    if on.is_full:
        on.left_out += 1
        return ""
    if type(kind) is str and kind in ("parallel", "for_each"):
        hint = f"put it under the top-level key `{kind}`"
    else:
        near = nearest(str(kind), KEYS) if not written.veiled else ""
        hint = f"did you mean `{near}`?" if near else f"the types are {', '.join(KEYS)}"
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
    written = item.value["routes"].value if routes else ()
    for index, route in enumerate(routes):
        # Where a route could not be read, those behind it stand at another index.
        where = next((one for one in written if one.place == route.place), item)
        path = ((at, "routes"), index)
        if route.on_error is None:
            hint = "remove it; the ways out of a gate are the `route`s of its options"
            on.wrong(where, path, "a gate never takes a route of success", hint=hint, severity="warning")
            continue
        if route.retry is not None:
            on.wrong(where, path, "a gate cannot be retried", hint="route to it again with `to` instead")
        kept.append(route)
    return tuple(kept)
