"""Steps that a person answers: gates and questions."""

from collections.abc import Mapping
from typing import Any

from failwell.files.mistakes import Problems
from failwell.files.shapes import Key, Many, Shape
from failwell.files.tree import Item, Path
from failwell.files.values import Choice, Duration, Flag, Text
from failwell.workflow.compile.step_index import FLOW
from failwell.workflow.compile.template_values import Templated
from failwell.workflow.plan import END, GateSpec, Option, Question, QuestionsSpec, Template

REJECTIONS = ("reject", "rejected", "deny", "denied", "no")
"""Values that `on_reject: fail` means unless `reject_values` names others."""


def _option(got: dict[str, Any], _item: Item, _at: Path, _on: Problems) -> Any:
    return Option(
        label=got["label"],
        value=got["value"],
        route=got["route"],
        prompt_for=got.get("prompt_for"),
        multiline=got.get("multiline", False),
    )


def _rescued_option(got: dict[str, Any], _item: Item, _at: Path) -> Option:
    label = got.get("label") or Template(text="")
    return Option(label=label, value=got.get("value", ""), route=got.get("route", END))


OPTION = Shape(
    "an option",
    {
        "label": Key(Templated(), "what the person sees", required=True),
        "value": Key(Text(), "what is stored when it is chosen", required=True),
        "route": Key(Text(), "the step that comes next, or `$end`", required=True, topics=(FLOW,)),
        "prompt_for": Key(Text(), "the name of a text that is asked for as well"),
        "multiline": Key(Flag(), "whether that text may have several lines"),
    },
    make=_option,
    rescue=_rescued_option,
)
GATE: dict[str, Key] = {
    "prompt": Key(Templated(), "what the person is asked", required=True),
    "options": Key(Many(OPTION, least=1), "the answers to choose from", required=True, topics=(FLOW,)),
    "assignee": Key(Templated(), "who is asked"),
    "timeout_seconds": Key(Duration(most=None), "how long to wait for the answer"),
    "timeout_option": Key(Text(), "the value that is chosen when the time is up"),
    "on_reject": Key(Choice("continue", "fail"), "whether a rejection follows its option or fails the step"),
    "reject_values": Key(Many(Text(), least=1, distinct=True), "the values that are rejections"),
}


def gate(got: Mapping[str, Any]) -> GateSpec:
    """What a gate asks."""
    reject: tuple[str, ...] = ()
    if got.get("on_reject") == "fail":
        values = [option.value for option in got["options"]]
        reject = got.get("reject_values") or tuple(value for value in values if value in REJECTIONS)
    return GateSpec(
        prompt=got["prompt"],
        options=got["options"],
        assignee=got.get("assignee"),
        timeout=got.get("timeout_seconds"),
        timeout_option=got.get("timeout_option"),
        reject=reject,
    )


def check_gate(got: Mapping[str, Any], item: Item, at: Path, on: Problems) -> None:
    """Whether the values that a gate names are among its options."""
    values = [option.value for option in got["options"]]
    known = _known(item)
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            where = item.value["options"].value[index].value["value"]
            path = (((at, "options"), index), "value")
            on.wrong(where, path, "two options have the same value", hint="give each its own")
        seen.add(value)
    if "timeout_option" in got:
        if got["timeout_option"] not in seen:
            where = item.value["timeout_option"]
            on.wrong(where, (at, "timeout_option"), "`timeout_option` is not among the options", hint=known)
        if "timeout_seconds" not in got:
            where = item.value["timeout_option"]
            on.wrong(where, (at, "timeout_option"), "`timeout_option` needs `timeout_seconds`", hint="add it")
    _check_rejections(got, seen, item, at, on)


def _known(item: Item) -> str:
    """The values of a gate's options, as far as they stand in the file."""
    held = [option.value["value"] for option in item.value["options"].value]
    return f"the values are {', '.join(one.value if not one.veiled else '…' for one in held)}"


def _check_rejections(got: Mapping[str, Any], seen: set[str], item: Item, at: Path, on: Problems) -> None:
    known = _known(item)
    for index, value in enumerate(got.get("reject_values", ())):
        if value not in seen:
            where = item.value["reject_values"].value[index]
            on.wrong(where, ((at, "reject_values"), index), "this is not among the options", hint=known)
    fails = got.get("on_reject") == "fail"
    if fails and "reject_values" not in got and not seen & set(REJECTIONS):
        where = item.value["on_reject"]
        hint = f"name them under `reject_values`; {known}"
        on.wrong(where, (at, "on_reject"), "no option of this gate is known as a rejection", hint=hint)
    if "reject_values" in got and not fails:
        where = item.value["reject_values"]
        on.wrong(where, (at, "reject_values"), "`reject_values` needs `on_reject: fail`", hint="add it")


def _question(got: dict[str, Any], item: Item, at: Path, on: Problems) -> Any:
    if not got.get("choices") and got.get("allow_free_text") is False:
        where = item.value["allow_free_text"]
        message = "a question without `choices` cannot be answered without free text"
        on.wrong(where, (at, "allow_free_text"), message, hint="add `choices`, or allow free text")
    return got


def _rescued_question(got: dict[str, Any], _item: Item, _at: Path) -> dict[str, Any]:
    return {"text": Template(text=""), **got}


QUESTION = Shape(
    "a question",
    {
        "text": Key(Templated(), "what is asked", required=True),
        "id": Key(Text(), "the name of the answer; q1, q2, … unless told"),
        "hint": Key(Templated(empty=True), "a line below the question"),
        "choices": Key(Many(Text()), "answers to choose from"),
        "allow_free_text": Key(Flag(), "whether another answer may be written; yes unless told"),
        "default": Key(Text(empty=True), "the answer when it is skipped"),
        "required": Key(Flag(), "whether it must be answered; no unless told"),
        "multiline": Key(Flag(), "whether an answer may have several lines; yes unless told"),
    },
    make=_question,
    rescue=_rescued_question,
)
QUESTIONS: dict[str, Key] = {
    "prompt": Key(Templated(empty=True), "what the questions are about"),
    "questions": Key(Many(QUESTION, least=1), "the questions"),
    "source": Key(
        Text(
            r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){2,}", "a dotted reference, such as `planner.output.questions`"
        ),
        "a list of questions that another step computed",
    ),
    "allow_back": Key(Flag(), "whether one may go back; yes unless told"),
    "allow_skip": Key(Flag(), "whether one may be skipped; yes unless told"),
    "allow_skip_all": Key(Flag(), "whether the rest may be skipped; yes unless told"),
    "allow_abort": Key(Flag(), "whether the step may be left; no unless told", topics=(FLOW,)),
    "abort_route": Key(Text(), "where leaving leads; `$end` unless told", topics=(FLOW,)),
}


def questions(got: Mapping[str, Any]) -> QuestionsSpec:
    """What a `questions` step asks."""
    made = [
        Question(
            id=one.get("id") or f"q{number}",
            text=one["text"],
            hint=one.get("hint"),
            choices=one.get("choices", ()),
            default=one.get("default"),
            required=one.get("required", False),
            allow_free_text=one.get("allow_free_text", True),
            multiline=one.get("multiline", True),
        )
        for number, one in enumerate(got.get("questions", ()), 1)
    ]
    return QuestionsSpec(
        questions=tuple(made),
        source=got.get("source"),
        abort_route=(got.get("abort_route") or "$end") if got.get("allow_abort") else None,
        prompt=got.get("prompt"),
        allow_back=got.get("allow_back", True),
        allow_skip=got.get("allow_skip", True),
        allow_skip_all=got.get("allow_skip_all", True),
    )


def check_questions(got: Mapping[str, Any], item: Item, at: Path, on: Problems) -> None:
    """Whether each answer has a name of its own, and leaving leads somewhere only where one may leave."""
    if "abort_route" in got and not got.get("allow_abort"):
        where = item.value["abort_route"]
        on.wrong(where, (at, "abort_route"), "`abort_route` needs `allow_abort: true`", hint="add it")
        on.unsure.add(FLOW)
    seen: set[str] = set()
    for index, one in enumerate(got.get("questions", ())):
        name = one.get("id") or f"q{index + 1}"
        if name in seen:
            where = item.value["questions"].value[index]
            path = ((at, "questions"), index)
            on.wrong(where, path, "two questions have the same id", hint="give each its own")
        seen.add(name)
