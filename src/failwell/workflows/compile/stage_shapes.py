"""`stages` of a workflow file: the phases, tools, caps and successors of a state machine's stages.

The keys have the spelling of stage definitions, as in `turnCap`; `turn_cap` is accepted as well.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from failwell.calls.backoff import Backoff
from failwell.errors.frozen import frozen
from failwell.files.item_tree import Item, Path, Place
from failwell.files.mistakes import MistakeLog
from failwell.files.shapes import ByType, Converted, Key, ListOf, MapOf, Shape, readable_part
from failwell.files.template_types import Templated
from failwell.files.value_types import INVALID, AnyJson, Choice, Duration, Invalid, Number, Text
from failwell.workflows.compile.agent_settings import AGENT
from failwell.workflows.compile.kind_shapes import KindName, OnError
from failwell.workflows.compile.route_shapes import LONGEST_WAIT, RETRY_ON, VALUES
from failwell.workflows.compile.step_index import FLOW, NAMES
from failwell.workflows.compile.step_keys import NAME, RESERVED_NAMES
from failwell.workflows.compile.steps import incomplete
from failwell.workflows.machine.retry_policy import stage_retry
from failwell.workflows.plan import Check, Member, Node, ParallelSpec, Route, StageSpec

_CODE = Text(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", "`module:function`")
_SETTINGS = (
    "provider", "max_attempts", "fallback", "tool_errors", "reasoning", "temperature", "max_tokens", "context_tier",
)  # fmt: skip
"""Keys of agents that a stage has as well."""


class Code(str):
    """`module:function` of a phase in Python."""

    __slots__ = ()


def _code(value: str, _item: Item, _path: Path, _log: MistakeLog) -> Code:
    return Code(value)


_FUNCTION = Converted(_CODE, _code)


def _check(values: dict[str, Any], _item: Item, _path: Path, _log: MistakeLog) -> Check:
    return Check(
        verdict=values["verdict"],
        when=values.get("when"),
        feedback=values.get("feedback"),
        kind=values.get("kind"),
    )


def _check_kind(values: dict[str, Any], item: Item, path: Path, log: MistakeLog) -> None:
    if "kind" in values and values.get("verdict") != "fail":
        log.add(
            "`kind` belongs to the verdict `fail`", item.key_place("kind"), (path, "kind"), hint="remove it"
        )


def _checks(phase: str, *verdicts: str) -> ByType:
    keys = {
        "verdict": Key(Choice(*verdicts), "what it says", required=True),
        "when": Key(Templated(), "the condition: `{{ … }}` or an expression"),
        "feedback": Key(Templated(), "what the next attempt is told"),
    }
    if "fail" in verdicts:
        about = "the kind of the failure, for `fail` (default: validation.assertion_failed)"
        keys["kind"] = Key(KindName(authored=True), about)
    rule = Shape(f"a rule of `{phase}`", keys, make=_check, check=_check_kind)
    return ByType("a list of rules, or `module:function`", list=ListOf(rule), text=_FUNCTION)


def _retry(values: dict[str, Any], _item: Item, _path: Path, _log: MistakeLog) -> Any:
    curve = values.get("backoff", "none")
    return stage_retry(
        max_attempts=values.get("maxAttempts", 1),
        backoff=Backoff(
            curve="fixed" if curve == "none" else curve,
            first=0.0 if curve == "none" else float(values.get("delay_seconds", 1)),
            longest=LONGEST_WAIT,
            jitter=0.2 if curve == "exponential" else 0.0,
        ),
        retry_on=values.get("retry_on"),
    )


_RETRY_POLICY = Shape(
    "`retryPolicy`",
    {
        "maxAttempts": Key(Number(1, 100, integer=True), "attempts, the first included (default: 1)"),
        "backoff": Key(
            Choice("none", "fixed", "linear", "exponential"), "how the waits grow (default: none)"
        ),
        "delay_seconds": Key(Number(0, LONGEST_WAIT), "the first wait (default: 1 second)"),
        "retry_on": Key(RETRY_ON, "kinds or categories that are repeated, too"),
    },
    make=_retry,
    about="When an attempt that failed is repeated from `setup`.",
)


@frozen
class Successor:
    """One entry of `next`: a route, and for a fan-out the stages that run side by side."""

    route: Route
    parallel: tuple[str, ...] = ()
    join: str | None = None


def _route(values: dict[str, Any], item: Item, _path: Path, _log: MistakeLog) -> Successor:
    route = Route(
        on_error=values.get("on_error"), when=values.get("when"), to=values.get("to"), place=item.place
    )
    return Successor(route=route, parallel=values.get("parallel", ()), join=values.get("join"))


def _check_route(values: dict[str, Any], item: Item, path: Path, log: MistakeLog) -> None:
    if "parallel" not in values:
        if "join" in values:
            log.add("`join` belongs to `parallel`", item.key_place("join"), (path, "join"), hint="remove it")
        return
    if "on_error" in values:
        log.add(
            "a failed stage has one successor",
            item.key_place("on_error"),
            (path, "on_error"),
            hint="use `to` instead of `parallel`",
        )
    join, siblings = values.get("join"), values["parallel"]
    if isinstance(siblings, Invalid):
        return
    if len(siblings) < 2:
        log.add_at(
            item.value["parallel"],
            (path, "parallel"),
            "`parallel` needs two stages or more",
            hint="use `to` for one stage",
        )
    if join in siblings:
        log.add_at(
            item.value["join"],
            (path, "join"),
            "a stage cannot join itself",
            hint="name the stage that runs after all of `parallel`",
        )


_NEXT = Shape(
    "an entry of `next`",
    {
        "to": Key(Text(), "the stage or step that comes next, or `$end`", topics=(FLOW,)),
        "parallel": Key(ListOf(Text(), distinct=True), "stages that run side by side", topics=(FLOW,)),
        "join": Key(Text(), "the stage after all of `parallel` (default: the end)", topics=(FLOW,)),
        "when": Key(Templated(), "the condition: `{{ … }}` or an expression"),
        "on_error": Key(
            OnError(),
            "which failures of the stage this entry is for; leave it out for success",
            topics=(FLOW,),
        ),
    },
    make=_route,
    check=_check_route,
    one_of=("to", "parallel"),
    about="A successor. The first whose condition holds is taken.",
)
_CHOICE = Shape(
    "`next` in Python",
    {
        "code": Key(_FUNCTION, "returns one of `to`", required=True),
        "to": Key(ListOf(Text(), min_items=1), "what it can return", required=True, topics=(FLOW,)),
    },
)


def _single(value: str, item: Item, _path: Path, _log: MistakeLog) -> Any:
    return (Successor(route=Route(to=value, place=item.place)),)


def _schema(value: Any, item: Item, path: Path, log: MistakeLog) -> Any:
    from jsonschema_rs import meta

    if value.get("type") == "object" and meta.is_valid(value):
        return value
    log.add_at(
        item, path, "`completionSchema` is not the JSON Schema of an object", hint="begin with `type: object`"
    )
    return INVALID


KEYS: dict[str, Key] = {
    "id": Key(NAME, "how `next` and templates name it", required=True),
    "name": Key(Text(allow_empty=True), "what people call it"),
    "setup": Key(
        ByType("values by name, or `module:function`", mapping=VALUES, text=_FUNCTION),
        "what it writes into the context",
    ),
    "init": Key(_FUNCTION, "runs before the prompts are rendered: `module:function`"),
    "body": Key(Templated(allow_empty=True), "the system prompt of the stage"),
    "prompt": Key(Templated(allow_empty=True), "what the model is asked"),
    "checkGate": Key(_checks("checkGate", "proceed", "retry", "skip"), "whether the stage may act"),
    "allowedTools": Key(ListOf(Text()), "the tools that the model may call (default: none)"),
    "grants": Key(
        Choice("ask", "deny"), "whether a person may grant one call of another tool (default: deny)"
    ),
    "completionTool": Key(Text(r"[A-Za-z_][A-Za-z0-9_-]{0,63}"), "a tool whose call ends the stage"),
    "completionSchema": Key(Converted(MapOf(AnyJson()), _schema), "the JSON Schema of its arguments"),
    "turnCap": Key(Number(1, 1_000, integer=True), "model calls of one attempt (default: 20)"),
    "visitCap": Key(Number(1, 10_000, integer=True), "how often a run may enter the stage (default: 10)"),
    "assert": Key(_checks("assert", "ok", "retry", "skip", "fail"), "whether the work is accepted"),
    "exit": Key(
        ByType("values by name, or `module:function`", mapping=VALUES, text=_FUNCTION),
        "the output (default: what the model answered)",
    ),
    "next": Key(
        ByType(
            "a stage, a list of entries, or a choice in Python",
            text=Converted(Text(), _single),
            list=ListOf(_NEXT),
            mapping=_CHOICE,
        ),
        "the successors (default: the end)",
        topics=(FLOW,),
    ),
    "retryPolicy": Key(_RETRY_POLICY, "when a failed attempt is repeated"),
    "resolutionPolicy": Key(
        Choice("skip", "retry-later", "abort-workflow"), "what a failure means (default: abort-workflow)"
    ),
    "model": Key(Templated(), "which model"),
    "timeout_seconds": Key(Duration(), "seconds of one attempt of `act`"),
    "estimate_usd": Key(Number(0), "what it is expected to cost, reserved in the budget while it runs"),
    **{key: AGENT[key] for key in _SETTINGS},
}
_SNAKE: dict[str, str] = {re.sub(r"([A-Z])", r"_\1", key).lower(): key for key in KEYS}


class StageShape(Shape):
    """One entry of `stages`, read as a `Node`, with the groups that its successors need."""

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        errors = log.errors
        read = self.values(_as_written(item), path, log)
        if isinstance(read, Invalid):
            log.unknown_topics.update((FLOW, NAMES))
            return read
        values = readable_part(read)
        name = values.get("id")
        if not isinstance(name, str):
            log.unknown_topics.update((FLOW, NAMES))
            return INVALID
        if name in RESERVED_NAMES:
            hint = "it has another meaning in templates; choose another id"
            log.add_at(item.value["id"], (path, "id"), f"the id `{name}` is reserved", hint=hint)
        _check_stage(values, item, path, log)
        stage = _stage(values, item)
        return stage if log.errors == errors else Invalid((incomplete(stage[0], log).partial, *stage[1:]))


def _as_written(item: Item) -> Item:
    """The stage with its keys in one spelling."""
    if item.keys is None or not _SNAKE.keys() & item.value.keys():
        return item
    keys = cast("dict[str, Item]", item.value)
    names = {key: _SNAKE.get(key, key) for key in keys}
    if len({*names.values()}) < len(names):
        return item
    copy = Item(
        {names[key]: value for key, value in item.value.items()},
        item.line,
        item.column,
        item.file,
        item.folder,
    )
    copy.keys = {names.get(key, key): place for key, place in item.keys.items()}
    return copy


def _check_stage(values: Mapping[str, Any], item: Item, path: Path, log: MistakeLog) -> None:
    if "completionSchema" in values and "completionTool" not in values:
        log.add_at(
            item, path, "`completionSchema` needs `completionTool`", hint="name the tool that ends the stage"
        )


def _stage(values: Mapping[str, Any], item: Item) -> tuple[Node, ...]:
    """The node of a stage, and a group for each successor that is several stages."""
    name = values["id"]
    place = Place(file=item.file, line=item.line + 1, column=item.column + 1)
    code: dict[str, str] = {key: str(values[key]) for key in ("setup", "init", "checkGate", "assert", "exit") if isinstance(values.get(key), Code)}  # fmt: skip
    following: Any = values.get("next", ())
    routes: list[Route] = []
    groups: list[Node] = []
    if isinstance(following, Mapping):
        choice = cast("Mapping[str, Any]", following)
        code["next"] = str(choice.get("code", ""))
        routes = [Route(to=target, place=place) for target in choice.get("to", ())]
    else:
        for successor in cast("tuple[Successor, ...]", following):
            route = successor.route
            if successor.parallel:
                group = _group(name, len(groups), successor)
                groups.append(group)
                route = replace(route, to=group.name)
            routes.append(route)
    spec = StageSpec(
        setup=_plain(values.get("setup")) or {},
        body=values.get("body"),
        prompt=values.get("prompt"),
        gate=_plain(values.get("checkGate")) or (),
        checks=_plain(values.get("assert")) or (),
        exit=_plain(values.get("exit")),
        code=code,
        allowed_tools=values.get("allowedTools", ()),
        grants=values.get("grants", "deny"),
        completion_tool=values.get("completionTool"),
        completion_schema=values.get("completionSchema"),
        turn_cap=values.get("turnCap", 20),
        visit_cap=values.get("visitCap", 10),
        resolution=values.get("resolutionPolicy", "abort-workflow"),
        model=values.get("model"),
        timeout=values.get("timeout_seconds"),
        settings={key: values[key] for key in _SETTINGS if key in values},
    )
    stage = Node(
        name=name,
        type="stage",
        spec=spec,
        description=values.get("name", ""),
        routes=tuple(routes),
        retry=values.get("retryPolicy"),
        estimate_usd=values.get("estimate_usd"),
        place=place,
    )
    return (stage, *groups)


def _plain(value: Any) -> Any:
    return None if isinstance(value, Code) else value


def _group(stage: str, index: int, successor: Successor) -> Node:
    """The group of a fan-out. A failing member stops the others."""
    place = successor.route.place
    return Node(
        name=f"{stage}-parallel{f'-{index + 1}' if index else ''}",
        type="parallel",
        spec=ParallelSpec(members=tuple(Member(name=member) for member in successor.parallel)),
        routes=() if successor.join is None else (Route(to=successor.join, place=place),),
        place=place,
    )


STAGE = StageShape("a stage", KEYS, about="A stage of a state machine.")
