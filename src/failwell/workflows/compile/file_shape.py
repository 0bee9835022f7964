"""The parts of a file that are not steps: the `workflow` block, declared kinds, the final output."""

from collections.abc import Mapping
from typing import Any

from failwell.errors.axes import Category
from failwell.errors.kind_registry import KIND_PATTERN, LONGEST_KIND, OWNED_PREFIXES
from failwell.files.item_tree import Item, Path, Place
from failwell.files.mistakes import MistakeLog
from failwell.files.shapes import ByType, Converted, Key, ListOf, MapOf, Shape, readable_part
from failwell.files.template_types import Templated, Verbatim
from failwell.files.value_types import (
    INVALID,
    AnyJson,
    Choice,
    Flag,
    Invalid,
    Number,
    Schema,
    Text,
    name_of,
    type_name,
)
from failwell.workflows.compile.agent_settings import COST, MCP, RUNTIME, TOOLS
from failwell.workflows.compile.group_shapes import FOR_EACH, PARALLEL
from failwell.workflows.compile.kind_shapes import SPELLING
from failwell.workflows.compile.names import INPUT_NAME
from failwell.workflows.compile.route_shapes import VALUES
from failwell.workflows.compile.stage_shapes import STAGE
from failwell.workflows.compile.step_index import FLOW, INPUTS, KINDS, NAMES
from failwell.workflows.compile.step_keys import PAYLOAD, object_schema
from failwell.workflows.compile.steps import StepShape
from failwell.workflows.plan import DeclaredKind, Input, Limits, Notifications, NotificationType
from failwell.workflows.run_inputs import has_type


def _input(values: dict[str, Any], item: Item, path: Path, log: MistakeLog) -> Any:
    default = values.get("default")
    if default is not None and not has_type(default, values["type"]):
        default_item = item.value["default"]
        message = f"`default` must be of type {values['type']}, not {type_name(default)}"
        log.add_at(default_item, (path, "default"), message, hint="change it, or change the `type`")
    if values.get("secret") and default is not None and not item.value["default"].from_env:
        default_item = item.value["default"]
        message = "the default of a secret is readable in the file"
        hint = "remove it, or take it from the environment: `${NAME}`"
        log.add_at(default_item, (path, "default"), message, hint=hint, severity="warning")
    return Input(
        name=path[1],
        type=values["type"],
        required=values.get("required", True),
        default=default,
        has_default="default" in values,
        description=values.get("description", ""),
        secret=values.get("secret", False),
        place=item.place,
    )


def _rescued_input(values: dict[str, Any], item: Item, path: Path) -> Input:
    """An input with mistakes. References to its name are still valid."""
    secret = values.get("secret") is True
    return Input(
        name=path[1], type=values.get("type", "string"), required=False, secret=secret, place=item.place
    )


INPUT = Shape(
    "an input",
    {
        "type": Key(
            Choice("string", "number", "boolean", "array", "object"),
            "its type",
            required=True,
            topics=(INPUTS,),
        ),
        "required": Key(Flag(), "whether it must be given (default: yes)"),
        "default": Key(AnyJson(), "its value when it is not given"),
        "description": Key(Text(allow_empty=True), "what it is for"),
        "secret": Key(Flag(), "whether its value is kept out of templates, events and logs"),
    },
    make=_input,
    rescue=_rescued_input,
)


def _limits(values: dict[str, Any], _item: Item, _at: Path, _on: MistakeLog) -> Any:
    mode = {"audit": "warn", "enforce": "fail"}.get(values.get("budget_mode", ""))
    limits = {
        key: values[key]
        for key in ("max_iterations", "timeout_seconds", "budget_usd", "max_parallel", "park_after_seconds")
        if key in values
    }
    unpriced = values.get("unpriced", "refuse")
    return Limits(**limits, on_exceed=values.get("on_exceed", mode or "warn"), unpriced=unpriced)


LIMITS = Shape(
    "`limits`",
    {
        "max_iterations": Key(Number(1, 1_000_000, integer=True), "steps of the whole run"),
        "timeout_seconds": Key(Number(above=0), "seconds of the whole run"),
        "budget_usd": Key(Number(above=0), "what the run may cost"),
        "on_exceed": Key(
            Choice("fail", "warn", "pause_for_approval"), "what happens when the budget is spent"
        ),
        "budget_mode": Key(
            Choice("audit", "enforce"), "audit is `on_exceed: warn`, enforce is `on_exceed: fail`"
        ),
        "unpriced": Key(
            Choice("refuse", "allow"),
            "whether a step may use tokens and not say what they cost (default: refuse)",
        ),
        "max_parallel": Key(Number(1, 1_000, integer=True), "how many steps run at once in the whole run"),
        "park_after_seconds": Key(
            Number(0), "a longer requested delay parks the run instead of being waited out"
        ),
    },
    at_most=(("on_exceed", "budget_mode"),),
    make=_limits,
)
CONTEXT = Shape(
    "`context`",
    {
        "mode": Key(Choice("accumulate", "last_only", "explicit"), "what steps see (default: accumulate)"),
        "max_tokens": Key(Number(1, integer=True)),
        "trim_strategy": Key(Choice("summarize", "truncate", "drop_oldest")),
    },
)
HOOKS = Shape(
    "`hooks`",
    {
        "on_start": Key(Templated(allow_empty=True), "rendered when the run starts"),
        "on_complete": Key(Templated(allow_empty=True), "rendered when it has succeeded"),
        "on_error": Key(Templated(allow_empty=True), "rendered when it has failed"),
    },
)


_EMPTY = {**object_schema({}), "additionalProperties": False}


def _notification_type(values: dict[str, Any], _item: Item, path: Path, _on: MistakeLog) -> Any:
    payload: Mapping[str, Any] = values.get("payload") or _EMPTY
    return NotificationType(name=path[1], version=values["version"], payload=payload)


def _notifications(values: dict[str, Any], _item: Item, _at: Path, _on: MistakeLog) -> Any:
    return Notifications(
        namespace=values.get("namespace", ""),
        correlation=values.get("correlation", ()),
        types=values.get("types") or {},
    )


_VERSION = Converted(
    ByType("a text or a whole number", text=Text(), number=Number(0, integer=True)),
    lambda value, _item, _at, _on: str(value),
)
_TYPE = Shape(
    "a notification type",
    {
        "version": Key(_VERSION, "such as 1", required=True),
        "description": Key(Text(allow_empty=True), "what it tells"),
        "payload": Key(PAYLOAD, "its fields"),
    },
    make=_notification_type,
)
NOTIFICATIONS = Shape(
    "`notifications`",
    {
        "namespace": Key(Text(), "the first part of every schema id (default: the workflow's name)"),
        "correlation": Key(ListOf(Text()), "inputs whose values every notification carries"),
        "types": Key(MapOf(_TYPE, key=INPUT_NAME, must="a plain word"), "the types by name"),
    },
    make=_notifications,
)
WORKFLOW = Shape(
    "`workflow`",
    {
        "name": Key(Text(), "what the workflow is called", required=True),
        "entry_point": Key(Text(), "the step or group that comes first", required=True, topics=(FLOW,)),
        "description": Key(Text(allow_empty=True), "what it is for"),
        "version": Key(Text(allow_empty=True), "its version, in quotes"),
        "runtime": Key(Verbatim(RUNTIME), "who answers the agents"),
        "input": Key(
            MapOf(INPUT, key=INPUT_NAME, must="letters, digits, `_` and `-`"),
            "its inputs by name",
            topics=(INPUTS,),
        ),
        "context": Key(CONTEXT, "what steps see of each other"),
        "limits": Key(LIMITS, "what a run may use up"),
        "cost": Key(Verbatim(COST), "prices, and how cost is shown"),
        "hooks": Key(HOOKS, "texts rendered at the start and the end"),
        "metadata": Key(MapOf(AnyJson()), "anything; copied into the run's record"),
        "instructions": Key(ListOf(Templated(allow_empty=True)), "what every agent is told first"),
        "notifications": Key(NOTIFICATIONS, "the types of notifications"),
        "mcp": Key(Verbatim(MCP), "how the workflow is offered as a tool"),
    },
    key_hints={
        "agents": "it stands at the top of the file, beside `workflow`",
        "output": "it stands at the top of the file, beside `workflow`",
        "entrypoint": "write `entry_point`",
        "context_mode": "write `context: {mode: …}`",
        "inputs": "write `input`",
    },
)


def _kind(values: dict[str, Any], item: Item, path: Path, _on: MistakeLog) -> Any:
    return DeclaredKind(
        name=path[1],
        category=Category(values["category"]),
        summary=values.get("summary", ""),
        place=Place(file=item.file, line=item.line + 1, column=item.column + 1),
    )


_KIND = Shape(
    "a kind",
    {
        "category": Key(Choice(*sorted(Category)), "what would make the work succeed", required=True),
        "summary": Key(Text(allow_empty=True), "what happened, in a sentence"),
    },
    make=_kind,
)


class Kinds:
    """`kinds` of a workflow file: name → declaration of an author's kind."""

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        if item.keys is None:
            log.add_at(
                item, path, f"{name_of(path)} must be a mapping, not {type_name(item.value)}", hint=SPELLING
            )
            return INVALID
        kinds: dict[str, Any] = {}
        errors = log.errors
        for name, child in item.value.items():
            inner_path = (path, name)
            if len(name) > LONGEST_KIND or KIND_PATTERN.fullmatch(name) is None:
                log.add(f"`{name[:100]}` is not a kind", item.key_place(name), inner_path, hint=SPELLING)
            elif name.startswith(OWNED_PREFIXES):
                message = f"the kind `{name}` belongs to the runtime"
                log.add(
                    message, item.key_place(name), inner_path, hint="do not declare it; routes can use it"
                )
            else:
                kinds[name] = _KIND.read(child, inner_path, log)
        if log.errors == errors:
            return kinds
        log.unknown_topics.add(KINDS)
        return Invalid(readable_part(kinds))

    def schema(self) -> Schema:
        owned = "|".join(prefix.rstrip(".") for prefix in OWNED_PREFIXES)
        names = {"pattern": f"^(?:{KIND_PATTERN.pattern})$", "not": {"pattern": f"^(?:{owned})\\."}}
        return {"type": "object", "propertyNames": names, "additionalProperties": _KIND.schema()}


FILE = Shape(
    "a workflow file",
    {
        "workflow": Key(WORKFLOW, "the workflow as a whole", required=True, topics=(FLOW, INPUTS)),
        "agents": Key(ListOf(StepShape()), "the steps", topics=(FLOW, NAMES)),
        "stages": Key(ListOf(STAGE), "the stages of a state machine", topics=(FLOW, NAMES)),
        "parallel": Key(ListOf(PARALLEL), "groups of different steps side by side", topics=(FLOW, NAMES)),
        "for_each": Key(
            ListOf(FOR_EACH), "groups that run one step for each item of a list", topics=(FLOW, NAMES)
        ),
        "tools": Key(TOOLS, "tools that agents may call, by name or with their definitions"),
        "output": Key(VALUES, "the result: name → value or template"),
        "kinds": Key(Kinds(), "what the author's own kinds mean", topics=(KINDS,)),
    },
    about="A workflow of failwell.",
    key_hints={
        "name": "it stands under `workflow`",
        "entry_point": "it stands under `workflow`",
        "input": "it stands under `workflow`",
        "limits": "it stands under `workflow`",
        "runtime": "it stands under `workflow`",
        "steps": "write `agents`",
        "nodes": "write `agents`",
    },
)
