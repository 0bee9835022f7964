"""The keys of each type of step, as one table.

The `output` block of a step → one JSON Schema.
"""

import re
from collections.abc import Mapping
from typing import Any

from failwell.files.item_tree import Item, Path
from failwell.files.mistakes import MistakeLog
from failwell.files.shapes import Converted, Key, ListOf, MapOf, Ref, Shape
from failwell.files.template_types import Templated, TemplatedDuration, TemplatedJson
from failwell.files.value_types import INVALID, AnyJson, Choice, Duration, Flag, Number, Text, type_name
from failwell.workflows.compile import names
from failwell.workflows.compile.agent_settings import AGENT
from failwell.workflows.compile.gate_shapes import GATE, QUESTIONS, gate, questions
from failwell.workflows.compile.kind_shapes import RAISES
from failwell.workflows.compile.route_shapes import RETRY, RETRY_OF_AGENT, ROUTES, VALUES
from failwell.workflows.compile.step_index import FLOW
from failwell.workflows.compile.step_specs import (
    Build,
    agent_spec,
    job_spec,
    notification_spec,
    script_spec,
    set_spec,
    terminate_spec,
    tool_spec,
    wait_spec,
    workflow_spec,
)
from failwell.workflows.plan import Template
from failwell.workflows.run_inputs import has_type

TYPES = ("string", "number", "integer", "boolean", "array", "object")
_ONLY = {
    "pattern": ("string",), "minLength": ("string",), "maxLength": ("string",),
    "minimum": ("number", "integer"), "maximum": ("number", "integer"),
    "items": ("array",), "properties": ("object",), "enum": ("string", "number", "integer", "boolean"),
}  # fmt: skip
"""Key → the types that it belongs to."""


def _pattern(value: str, item: Item, path: Path, log: MistakeLog) -> Any:
    try:
        re.compile(value)
    except (re.error, RecursionError, OverflowError) as error:
        log.add_at(
            item,
            path,
            "`pattern` is not a regular expression",
            hint="" if item.from_env else str(error)[:100],
        )
        return INVALID
    return value


def _field(values: dict[str, Any], item: Item, path: Path, log: MistakeLog) -> Any:
    kind = values["type"]
    for key, kinds in _ONLY.items():
        if key in values and kind not in kinds:
            log.add(
                f"`{key}` belongs to a field of type {' or '.join(kinds)}, not {kind}",
                item.key_place(key),
                (path, key),
                hint="remove it, or change the `type`",
            )
    for low, high in (("minimum", "maximum"), ("minLength", "maxLength")):
        if low in values and high in values and values[low] > values[high]:
            log.add(f"`{low}` is larger than `{high}`", item.key_place(low), (path, low), hint="swap them")
    _enum(values, kind, item, path, log)
    return values


def _enum(values: dict[str, Any], kind: str, item: Item, path: Path, log: MistakeLog) -> None:
    for index, value in enumerate(values.get("enum", ())):
        if not has_type(value, kind):
            log.add_at(
                item.value["enum"].value[index],
                ((path, "enum"), index),
                f"`enum` must hold values of type {kind}, not {type_name(value)}",
                hint="use `nullable: true` to allow null" if value is None else "",
            )


_INNER = Ref("output_field", lambda: FIELD)
FIELD = Shape(
    "an output field",
    {
        "type": Key(Choice(*TYPES), "string, number, integer, boolean, array or object", required=True),
        "description": Key(Text(allow_empty=True), "what the field holds"),
        "items": Key(_INNER, "the entries of an array"),
        "properties": Key(MapOf(_INNER), "the fields of an object"),
        "enum": Key(ListOf(AnyJson(), min_items=1), "the values that are allowed"),
        "pattern": Key(Converted(Text(), _pattern), "a regular expression that must be found in the text"),
        "minimum": Key(Number(), "the smallest number"),
        "maximum": Key(Number(), "the largest number"),
        "minLength": Key(Number(0, integer=True), "the fewest characters"),
        "maxLength": Key(Number(0, integer=True), "the most characters"),
        "required": Key(Flag(), "false only for a field inside an object"),
        "nullable": Key(Flag(), "whether null is allowed, too"),
    },
    make=_field,
)


def _as_schema(field: Mapping[str, Any]) -> dict[str, Any]:
    kind = field["type"]
    null = field.get("nullable", False)
    schema: dict[str, Any] = {"type": [kind, "null"] if null else kind}
    schema |= {
        key: field[key]
        for key in ("description", "pattern", "minimum", "maximum", "minLength", "maxLength")
        if key in field
    }
    if "enum" in field:
        schema["enum"] = [*field["enum"], *([None] if null else [])]
    if "items" in field:
        schema["items"] = _as_schema(field["items"])
    if "properties" in field:
        schema |= object_schema(field["properties"])
        schema["type"] = [kind, "null"] if null else kind
    return schema


def object_schema(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an object with these fields; others are allowed."""
    return {
        "type": "object",
        "properties": {name: _as_schema(field) for name, field in fields.items()},
        "required": [name for name, field in fields.items() if field.get("required", True)],
    }


def _output(fields: dict[str, Any], item: Item, path: Path, log: MistakeLog) -> Any:
    for name, field in fields.items():
        if field.get("required") is False:
            log.add_at(
                item.value[name].value["required"],
                ((path, name), "required"),
                "a field at the top of `output` cannot be optional",
                hint="remove `required: false`, or use `nullable: true`; only fields inside objects can be optional",
            )
    return object_schema(fields)


OUTPUT = Converted(MapOf(_INNER), _output)


def _exact(fields: dict[str, Any], _item: Item, _at: Path, _on: MistakeLog) -> Any:
    return object_schema(fields) | {"additionalProperties": False}


PAYLOAD = Converted(MapOf(_INNER), _exact)
"""The payload of a notification: exactly these fields."""


NAME = Text(
    names.NAME,
    "letters, digits, `_` and `-`",
    hint="templates and routes name steps, so keep it plain",
)
RESERVED_NAMES = frozenset({"workflow", "context", "self"})
"""Names with another meaning in templates."""
_TEMPLATES = ListOf(Templated(allow_empty=True))
_REFERENCE = Text(rf"{names.dotted(2)}\??", "a dotted reference, such as `finder.output.files`")

IDENTITY: dict[str, Key] = {
    "name": Key(NAME, "how routes and templates name it", required=True),
    "type": Key(Text(), "what sort of step it is (default: an agent)", topics=(FLOW,)),
    "description": Key(Text(allow_empty=True), "what it is for"),
}
_INPUT: dict[str, Key] = {
    "input": Key(ListOf(Text()), "what it may see in explicit mode; `?` marks optional ones")
}
_INPUT_OF_CALL: dict[str, Key] = {
    "input": Key(
        ListOf(Text(), instead="what it is called with stands under `arguments`"), _INPUT["input"].about
    )
}
RAISING: dict[str, Key] = {
    "raises": Key(RAISES, "the kinds of its own that it may raise"),
    "routes": Key(ROUTES, "the ways out, in order", topics=(FLOW,)),
}
_RETRY: dict[str, Key] = {"retry": Key(RETRY, "what is repeated before any route is asked")}
_OUTPUT: dict[str, Key] = {"output": Key(OUTPUT, "the fields of the output")}
_COST: dict[str, Key] = {
    "idempotent": Key(Flag(), "whether a repeat after an unknown outcome is safe"),
    "estimate_usd": Key(Number(0), "what it is expected to cost, reserved in the budget while it runs"),
}
_TIMEOUT = Key(Duration(), "seconds, or a duration such as `90s`")

_ARGUMENTS = Key(VALUES, "name → value or template")
_CALL = RAISING | _RETRY | _OUTPUT | _COST | _INPUT
KEYS: dict[str, tuple[Build, dict[str, Key], tuple[str, ...]]] = {
    "agent": (
        agent_spec,
        RAISING | {"retry": Key(RETRY_OF_AGENT)} | _OUTPUT | _COST | _INPUT | AGENT
        | {
            "prompt": Key(Templated(allow_empty=True), "what the model is asked"),
            "system_prompt": Key(Templated(allow_empty=True), "what the model is told about its part"),
            "model": Key(Templated(), "which model"),
            "timeout_seconds": _TIMEOUT,
        },
        (),
    ),
    "script": (
        script_spec,
        _CALL
        | {
            "command": Key(Templated(), "the program; not a shell line", required=True),
            "args": Key(_TEMPLATES, "its arguments, one entry each"),
            "env": Key(MapOf(Text(allow_empty=True), key=r"[^=\x00]+", must="a variable's name"), "variables, as written"),
            "env_from": Key(
                MapOf(_REFERENCE, key=r"[^=\x00]+", must="a variable's name"),
                "variables taken from a reference; the way in for secrets",
            ),
            "working_dir": Key(Templated(), "where it runs"),
            "stdin": Key(Templated(allow_empty=True), "what it reads; an empty text is the end at once"),
            "timeout": _TIMEOUT,
            "output_limit": Key(Number(1, 2**31, integer=True), "bytes of each stream that are kept"),
        },
        (),
    ),
    "job": (
        job_spec,
        _CALL
        | {
            **_INPUT_OF_CALL,
            "job": Key(Text(), "the capability's name", required=True),
            "arguments": _ARGUMENTS,
            "timeout_seconds": _TIMEOUT,
        },
        (),
    ),
    "tool": (
        tool_spec,
        _CALL
        | {
            **_INPUT_OF_CALL,
            "tool": Key(Text(), "the tool's name", required=True),
            "server": Key(Text(), "the MCP server that offers it"),
            "arguments": _ARGUMENTS,
            "timeout_seconds": _TIMEOUT,
        },
        (),
    ),
    "mcp": (
        tool_spec,
        _CALL
        | {
            **_INPUT_OF_CALL,
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
        set_spec,
        RAISING | _RETRY | _OUTPUT | _INPUT
        | {
            "value": Key(TemplatedJson(), "one value", null=True),
            "values": Key(VALUES, "several, by name"),
            "output_type": Key(
                Choice("auto", "string", "number", "integer", "boolean", "list", "dict"), "what `value` becomes"
            ),
        },
        ("value", "values"),
    ),
    "wait": (
        wait_spec,
        RAISING | _RETRY | _INPUT
        | {
            "duration": Key(TemplatedDuration(), "how long", required=True),
            "reason": Key(Templated(allow_empty=True), "what is waited for"),
        },
        (),
    ),
    "notification": (
        notification_spec,
        RAISING | _RETRY | _INPUT
        | {
            "emit": Key(Text(), "a type declared under `workflow.notifications`"),
            "notification": Key(Text(), "the same as `emit`"),
            "payload": Key(VALUES, "its fields"),
        },
        ("emit", "notification"),
    ),
    "terminate": (
        terminate_spec,
        _INPUT
        | {
            "status": Key(Choice("success", "failed"), "how the run ends", required=True, topics=(FLOW,)),
            "reason": Key(Templated(), "why", required=True),
            "output_template": Key(VALUES, "replaces the output of the workflow"),
        },
        (),
    ),
    "workflow": (
        workflow_spec,
        RAISING | _OUTPUT | _INPUT
        | {
            "workflow": Key(Templated(), "the file, from the folder of this one", required=True),
            "input_mapping": Key(VALUES, "its inputs (default: the parent's own)"),
            "max_depth": Key(Number(1, 10, integer=True), "how deep workflows may be nested"),
            "timeout_seconds": _TIMEOUT,
        },
        (),
    ),
}  # fmt: skip

BLANKS: dict[str, Any] = {
    **dict.fromkeys(("command", "prompt", "reason", "workflow"), Template(text="")),
    **dict.fromkeys(("job", "tool", "server", "emit", "notification", "status", "source"), ""),
    **dict.fromkeys(("options", "agents"), ()),
    "duration": 1.0,
}
"""Replacements for required keys that could not be read, so that the rest of a step can be checked."""
