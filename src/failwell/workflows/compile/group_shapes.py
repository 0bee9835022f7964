"""Groups: `parallel` and `for_each`, and the step that a `for_each` runs for each item."""

from collections.abc import Callable, Mapping
from typing import Any

from failwell.files.item_tree import Item, Path
from failwell.files.mistakes import MistakeLog
from failwell.files.shapes import ByType, Converted, Key, ListOf, Shape, readable_part
from failwell.files.suggestions import nearest
from failwell.files.template_types import Templated
from failwell.files.value_types import (
    INVALID,
    Choice,
    Duration,
    Invalid,
    Number,
    Schema,
    Text,
    name_of,
    type_name,
)
from failwell.workflows.compile.kind_shapes import RAISES
from failwell.workflows.compile.names import dotted
from failwell.workflows.compile.route_shapes import ROUTES
from failwell.workflows.compile.stage_shapes import STAGE
from failwell.workflows.compile.step_index import FLOW, NAMES, WorkflowMistakes
from failwell.workflows.compile.step_keys import NAME
from failwell.workflows.compile.steps import StepShape, incomplete, node, rescued, type_of, unreadable
from failwell.workflows.plan import PEOPLE, ForEachSpec, Member, ParallelSpec, Spec

_VARIABLES_TAKEN = ("workflow", "context", "output", "error", "self", "_index", "_key")
_STEP = StepShape()
MAX_NESTED = 20
"""Levels of groups that name each other as bodies."""

_GROUP: dict[str, Key] = {
    "name": Key(NAME, "how routes and templates name it", required=True),
    "description": Key(Text(allow_empty=True), "what it is for"),
    "failure_mode": Key(
        Choice("fail_fast", "continue_on_error", "all_or_nothing"),
        "what a failing member means (default: fail_fast)",
    ),
    "raises": Key(RAISES, "the kinds that it may raise"),
    "routes": Key(ROUTES, "the ways out of the whole group, in order", topics=(FLOW,)),
    "timeout_seconds": Key(Duration(), "seconds, or a duration such as `90s`, for all members together"),
}


def _member(values: dict[str, Any], _item: Item, _at: Path, _on: MistakeLog) -> Any:
    return Member(name=values["name"], when=values.get("when"))


def _rescued_member(values: dict[str, Any], _item: Item, _at: Path) -> Any:
    return Member(name=values["name"], when=values.get("when")) if "name" in values else None


MEMBER = ByType(
    "a step's name, or a mapping with `name` and `when`",
    text=Converted(Text(), lambda value, _item, _at, _on: Member(name=value)),
    mapping=Shape(
        "a member",
        {
            "name": Key(Text(), "the step", required=True, topics=(FLOW,)),
            "when": Key(Templated(), "whether it takes part, asked at the group's start"),
        },
        make=_member,
        rescue=_rescued_member,
    ),
)


def _members(members: tuple[Member, ...], item: Item, path: Path, log: MistakeLog) -> Any:
    originals: dict[str, Item] = {}
    for index, (child, member) in enumerate(zip(item.value, members, strict=True)):
        if member.name in originals:
            message = (
                f"`{member.name}` is a member twice" if not child.from_env else "a step is a member twice"
            )
            log.add_at(child, (path, index), message, hint="keep one", also=(originals[member.name].place,))
        originals.setdefault(member.name, child)
    return members


def _parallel(values: Mapping[str, Any]) -> ParallelSpec:
    return ParallelSpec(
        members=values["agents"],
        failure_mode=values.get("failure_mode", "fail_fast"),
        max_concurrent=values.get("max_concurrent"),
        timeout=values.get("timeout_seconds"),
    )


class GroupShape(Shape):
    """A group, read as a `Node`."""

    def __init__(
        self, kind: str, keys: Mapping[str, Key], build: Callable[[Mapping[str, Any]], Spec], about: str
    ) -> None:
        super().__init__(f"a {kind} group", keys, about=about)
        self.kind = kind
        self.build = build

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        errors = log.errors
        read = self.values(item, path, log)
        if isinstance(read, Invalid):
            log.unknown_topics.update((FLOW, NAMES))
            return read
        if Invalid not in map(type, read.values()):
            group = node(self.kind, read, self.build(read), item, path, log)
            return group if log.errors == errors else incomplete(group, log)
        if isinstance(read.get("agents"), Invalid):
            log.unknown_topics.add(FLOW)
        values = readable_part(read)
        # Without the name of the item or the step, nothing inside a loop can be checked.
        if self.kind == "for_each" and not {"as", "agent"} <= values.keys():
            return unreadable(item, log)
        return rescued(self.kind, read, self.build, item, path, log)


PARALLEL = GroupShape(
    "parallel",
    _GROUP
    | {
        "type": Key(Choice("parallel"), "`parallel`"),
        "agents": Key(
            Converted(ListOf(MEMBER, min_items=1), _members), "its members", required=True, topics=(FLOW,)
        ),
        "max_concurrent": Key(Number(1, 1_000, integer=True), "how many run at once (default: all)"),
    },
    _parallel,
    about="Different steps side by side.",
)


class Body:
    """The step of a `for_each`: written in place, or named."""

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        value = item.value
        if type(value) is str and value:
            return self._named(item, path, log)
        if item.keys is None:
            message = f"{name_of(path)} must be a step or the name of one, not {type_name(value)}"
            log.add_at(item, path, message, hint="write the step's keys under it")
            return INVALID
        kind = type_of(item, path, log, ("parallel", "for_each"))
        if kind in PEOPLE:
            return self._people(kind, item.value["type"], (path, "type"), log)
        if kind == "for_each":
            return FOR_EACH.read(item, path, log)
        return PARALLEL.read(item, path, log) if kind == "parallel" else _STEP.read(item, path, log)

    def _named(self, item: Item, path: Path, log: MistakeLog) -> Any:
        """The step with that name."""
        assert isinstance(log, WorkflowMistakes)
        name = item.value
        quoted = "" if item.from_env else f" `{name[:100]}`"
        if len(log.within) >= MAX_NESTED:
            log.add_at(
                item, path, f"groups are nested more than {MAX_NESTED} deep", hint="use a sub-workflow"
            )
            return INVALID
        if name in log.within:
            log.add_at(item, path, f"the group{quoted} runs itself for each item", hint="name another step")
            return INVALID
        section, step = log.steps.get(name, ("", item))
        if not section:
            near = "" if item.from_env else nearest(name, log.plain_names)
            hint = f"did you mean `{near}`?" if near else "add it under `agents`, or write its keys here"
            log.add_at(item, path, f"there is no step{quoted}", hint=hint)
            return INVALID
        log.within.append(name)
        try:
            shapes = {"agents": _STEP, "stages": STAGE, "parallel": PARALLEL, "for_each": FOR_EACH}
            result = shapes[section].read(step, path, log)
            if section == "stages":
                result = result if isinstance(result, Invalid) else result[0]
        finally:
            log.within.pop()
        body = result.partial if isinstance(result, Invalid) else result
        if section == "stages" and isinstance(result, Invalid):
            return INVALID
        if body is not None and body.type in PEOPLE:
            return self._people(body.type, item, path, log)
        return result

    def _people(self, kind: str, item: Item, path: Path, log: MistakeLog) -> Any:
        hint = "ask before or after the group; several people would be asked at once"
        log.add_at(item, path, f"a {kind} step cannot run for each item", hint=hint)
        return INVALID

    def schema(self) -> Schema:
        inner = [{"$ref": f"#/$defs/{name}"} for name in ("step", "parallel", "for_each")]
        return {"anyOf": [{"type": "string", "minLength": 1}, *inner]}


def _variable(value: str, item: Item, path: Path, log: MistakeLog) -> Any:
    if value.isidentifier() and value not in _VARIABLES_TAKEN:
        return value
    hint = f"choose a word of letters, digits and `_`, other than {', '.join(_VARIABLES_TAKEN)}"
    log.add_at(item, path, "`as` must be a name that templates can use and that is not taken", hint=hint)
    return INVALID


def _for_each(values: Mapping[str, Any]) -> ForEachSpec:
    return ForEachSpec(
        source=values["source"],
        variable=values["as"],
        body=values["agent"],
        failure_mode=values.get("failure_mode", "fail_fast"),
        max_concurrent=values.get("max_concurrent", 10),
        key_by=values.get("key_by"),
        timeout=values.get("timeout_seconds"),
    )


FOR_EACH = GroupShape(
    "for_each",
    _GROUP
    | {
        "type": Key(Choice("for_each"), "`for_each`"),
        "source": Key(
            Text(dotted(1), "a dotted reference to a list, such as `finder.output.files`"),
            "the list",
            required=True,
        ),
        "as": Key(Converted(Text(), _variable), "how templates name the item", required=True),
        "agent": Key(Body(), "the step that runs for each item, or its name", required=True, topics=(FLOW,)),
        "max_concurrent": Key(Number(1, 1_000, integer=True), "how many run at once (default: 10)"),
        "key_by": Key(
            Text(), "where in an item its key is, such as `path` or, with the loop variable, `file.path`"
        ),
    },
    _for_each,
    about="One step for each item of a list.",
)
