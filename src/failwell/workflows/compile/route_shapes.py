"""Routes and their actions, and the `retry` block of a step."""

from typing import Any

from failwell.calls.backoff import Backoff
from failwell.calls.policy import Match, Policy
from failwell.errors.frozen import frozen
from failwell.files.item_tree import Item, Path, Place
from failwell.files.mistakes import MistakeLog
from failwell.files.shapes import Converted, Key, ListOf, MapOf, Ref, Shape
from failwell.files.template_types import Templated, TemplatedJson
from failwell.files.value_types import INVALID, Choice, Flag, Number, Text
from failwell.workflows.compile.kind_shapes import RETRY_ON, OnError
from failwell.workflows.compile.step_index import FLOW
from failwell.workflows.machine.retry_policy import node_retry, route_retry
from failwell.workflows.plan import Route, Template

LONGEST_WAIT = 86_400.0
CURVES = Choice("fixed", "linear", "exponential")
VALUES = MapOf(TemplatedJson())
"""Name → a template, or JSON whose texts are templates."""


def _route_retry(values: dict[str, Any], _item: Item, _at: Path, _on: MistakeLog) -> Any:
    return route_retry(
        max_retries=values.get("max", 3),
        backoff=Backoff(
            curve=values.get("backoff", "exponential"),
            first=float(values.get("initial_seconds", 5)),
            longest=LONGEST_WAIT,
            jitter=float(values.get("jitter", 0.25)),
        ),
    )


ROUTE_RETRY = Shape(
    "`retry` of a route",
    {
        "max": Key(Number(1, 10, integer=True), "how many more times (default: 3)"),
        "backoff": Key(CURVES, "how the waits grow (default: exponential)"),
        "initial_seconds": Key(Number(0, 300), "the first wait (default: 5 seconds)"),
        "jitter": Key(Number(0, 1), "each wait is spread by this share of itself (default: 0.25)"),
    },
    make=_route_retry,
    about="Run the same step again.",
    key_hints={"max_attempts": "a route counts re-runs: write `max`"},
)


def _halt(values: dict[str, Any], _item: Item, _at: Path, _on: MistakeLog) -> Any:
    return values["message"]


HALT = Shape(
    "`halt`",
    {"message": Key(Templated(), "the message for the person who started the run", required=True)},
    make=_halt,
    about="End the run here, on purpose.",
)


def _propagate(value: bool, item: Item, path: Path, log: MistakeLog) -> Any:
    if value:
        return True
    log.add_at(item, path, "`propagate: false` has no meaning", hint="remove it, and use another action")
    return INVALID


def _check_route(values: dict[str, Any], item: Item, path: Path, log: MistakeLog) -> None:
    if "on_error" not in values:
        for action in ("retry", "propagate"):
            if action in values:
                log.add(
                    f"`{action}` needs a failure: a route without `on_error` is taken on success",
                    item.key_place(action),
                    (path, action),
                    hint="add `on_error: true` or the kinds that are meant, or use `to`",
                )


def _route(values: dict[str, Any], item: Item, _at: Path, _on: MistakeLog) -> Route:
    return Route(
        on_error=values.get("on_error"),
        when=values.get("when"),
        to=values.get("to"),
        retry=values.get("retry"),
        halt=values.get("halt"),
        propagate=values.get("propagate", False),
        output=values.get("output") or {},
        place=Place(file=item.file, line=item.line + 1, column=item.column + 1),
    )


def _rescued_route(values: dict[str, Any], item: Item, path: Path) -> Route:
    """A route with its valid parts. An invalid condition or selector still restricts it."""
    keys = item.value
    values = {key: value for key, value in values.items() if value is not None}
    if keys.get("on_error") is not None:
        values.setdefault("on_error", Match())
    if keys.get("when") is not None:
        values.setdefault("when", Template(text="true"))
    return _route(values, item, path, MistakeLog())


ROUTE = Shape(
    "a route",
    {
        "to": Key(Text(), "the step or group that comes next, or `$end`", topics=(FLOW,)),
        "when": Key(Templated(), "the condition: `{{ … }}` or an expression"),
        "output": Key(VALUES, "values that this route adds to the output"),
        "on_error": Key(
            OnError(), "which failures this route is for; leave it out for success", null=True, topics=(FLOW,)
        ),
        "retry": Key(ROUTE_RETRY, "run the same step again", topics=(FLOW,)),
        "halt": Key(HALT, "end the run here, on purpose", topics=(FLOW,)),
        "propagate": Key(
            Converted(Flag(), _propagate), "hand the failure to the calling workflow", topics=(FLOW,)
        ),
    },
    check=_check_route,
    make=_route,
    rescue=_rescued_route,
    one_of=("to", "retry", "halt", "propagate"),
    about="One way out of a step. The first whose selector and condition match is taken.",
)
ROUTES = ListOf(Ref("route", lambda: ROUTE))


def _retry(values: dict[str, Any], _item: Item, _at: Path, _on: MistakeLog) -> Any:
    return node_retry(
        max_attempts=values.get("max_attempts", 3),
        backoff=Backoff(
            curve=values.get("backoff", "exponential"),
            first=float(values.get("delay_seconds", 1)),
            longest=LONGEST_WAIT,
        ),
        retry_on=values.get("retry_on"),
        repeat_exhausted=values.get("repeat_exhausted", False),
    )


_ELSEWHERE = {
    "max": "write `max_attempts`, which counts the first call, too",
    "backoff_ms": "write `delay_seconds`",
    "initial_seconds": "write `delay_seconds`",
}
_RETRY = {
    "max_attempts": Key(Number(1, 100, integer=True), "calls, the first one included (default: 3)"),
    "backoff": Key(CURVES, "how the waits grow (default: exponential)"),
    "delay_seconds": Key(Number(0, LONGEST_WAIT), "the first wait (default: 1 second)"),
    "retry_on": Key(RETRY_ON, "kinds or categories (default: whatever can be repeated)"),
    "repeat_exhausted": Key(
        Flag(), "repeat what a job or a loop inside has repeated up to its limit (default: false)"
    ),
}


@frozen
class AgentRetry:
    """`retry` of an agent: the policy of the step, and how often a better answer is asked for in the same turn."""

    policy: Policy
    corrections: int | None = None


def _retry_of_agent(values: dict[str, Any], item: Item, path: Path, log: MistakeLog) -> AgentRetry:
    return AgentRetry(
        policy=_retry(values, item, path, log), corrections=values.get("max_parse_recovery_attempts")
    )


_SHAPE = Shape("`retry`", _RETRY, make=_retry, key_hints=_ELSEWHERE)
RETRY = Ref("retry", lambda: _SHAPE)
RETRY_OF_AGENT = Shape(
    "`retry`",
    _RETRY
    | {
        "max_parse_recovery_attempts": Key(
            Number(0, 10, integer=True),
            "how often a better answer is asked for where one does not match `output` (default: 0)",
        )
    },
    make=_retry_of_agent,
    key_hints=_ELSEWHERE,
)
