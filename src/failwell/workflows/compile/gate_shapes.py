"""The shapes of steps that a person answers: gates and questions."""

from collections.abc import Mapping
from typing import Any

from failwell.files.item_tree import Item, Path
from failwell.files.mistakes import MistakeLog
from failwell.files.shapes import Key, ListOf, Shape
from failwell.files.template_types import Templated
from failwell.files.value_types import Choice, Duration, Flag, Text
from failwell.workflows.compile.names import dotted
from failwell.workflows.compile.step_index import FLOW
from failwell.workflows.plan import END, GateSpec, Option, Question, QuestionsSpec, Template

REJECTIONS = ("reject", "rejected", "deny", "denied", "no")
"""Values that `on_reject: fail` means unless `reject_values` names others."""


def _option(values: dict[str, Any], _item: Item, _at: Path, _on: MistakeLog) -> Any:
    return Option(
        label=values["label"],
        value=values["value"],
        route=values["route"],
        prompt_for=values.get("prompt_for"),
        multiline=values.get("multiline", False),
    )


def _rescued_option(values: dict[str, Any], _item: Item, _at: Path) -> Option:
    label = values.get("label") or Template(text="")
    return Option(label=label, value=values.get("value", ""), route=values.get("route", END))


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
    "options": Key(ListOf(OPTION, min_items=1), "the answers to choose from", required=True, topics=(FLOW,)),
    "assignee": Key(Templated(), "who is asked"),
    "timeout_seconds": Key(Duration(maximum=None), "how long to wait for the answer"),
    "timeout_option": Key(Text(), "the value that is chosen when the time is up"),
    "on_reject": Key(Choice("continue", "fail"), "whether a rejection follows its option or fails the step"),
    "reject_values": Key(ListOf(Text(), min_items=1, distinct=True), "the values that are rejections"),
}


def gate(values: Mapping[str, Any]) -> GateSpec:
    """The spec of a gate."""
    reject: tuple[str, ...] = ()
    if values.get("on_reject") == "fail":
        option_values = [option.value for option in values["options"]]
        reject = values.get("reject_values") or tuple(value for value in option_values if value in REJECTIONS)
    return GateSpec(
        prompt=values["prompt"],
        options=values["options"],
        assignee=values.get("assignee"),
        timeout=values.get("timeout_seconds"),
        timeout_option=values.get("timeout_option"),
        reject=reject,
    )


def check_gate(values: Mapping[str, Any], item: Item, path: Path, log: MistakeLog) -> None:
    """Check that the values that a gate names are among its options."""
    option_values = [option.value for option in values["options"]]
    hint = _options_hint(item)
    distinct: set[str] = set()
    for index, value in enumerate(option_values):
        if value in distinct:
            entry = item.value["options"].value[index].value["value"]
            inner_path = (((path, "options"), index), "value")
            log.add_at(entry, inner_path, "two options have the same value", hint="give each its own")
        distinct.add(value)
    if "timeout_option" in values:
        if values["timeout_option"] not in distinct:
            entry = item.value["timeout_option"]
            log.add_at(
                entry, (path, "timeout_option"), "`timeout_option` is not among the options", hint=hint
            )
        if "timeout_seconds" not in values:
            entry = item.value["timeout_option"]
            log.add_at(
                entry, (path, "timeout_option"), "`timeout_option` needs `timeout_seconds`", hint="add it"
            )
    _check_rejections(values, distinct, item, path, log)


def _options_hint(item: Item) -> str:
    """The values of a gate's options, without those from the environment."""
    values = [option.value["value"] for option in item.value["options"].value]
    return f"the values are {', '.join(value.value if not value.from_env else '…' for value in values)}"


def _check_rejections(
    values: Mapping[str, Any], distinct: set[str], item: Item, path: Path, log: MistakeLog
) -> None:
    options_hint = _options_hint(item)
    for index, value in enumerate(values.get("reject_values", ())):
        if value not in distinct:
            entry = item.value["reject_values"].value[index]
            log.add_at(
                entry, ((path, "reject_values"), index), "this is not among the options", hint=options_hint
            )
    fails = values.get("on_reject") == "fail"
    if fails and "reject_values" not in values and not distinct & set(REJECTIONS):
        entry = item.value["on_reject"]
        hint = f"name them under `reject_values`; {options_hint}"
        log.add_at(entry, (path, "on_reject"), "no option of this gate is a rejection", hint=hint)
    if "reject_values" in values and not fails:
        entry = item.value["reject_values"]
        log.add_at(entry, (path, "reject_values"), "`reject_values` needs `on_reject: fail`", hint="add it")


def _question(values: dict[str, Any], item: Item, path: Path, log: MistakeLog) -> Any:
    if not values.get("choices") and values.get("allow_free_text") is False:
        entry = item.value["allow_free_text"]
        message = "a question without `choices` cannot be answered without free text"
        log.add_at(entry, (path, "allow_free_text"), message, hint="add `choices`, or allow free text")
    return values


def _rescued_question(values: dict[str, Any], _item: Item, _at: Path) -> dict[str, Any]:
    return {"text": Template(text=""), **values}


QUESTION = Shape(
    "a question",
    {
        "text": Key(Templated(), "what is asked", required=True),
        "id": Key(Text(), "the name of the answer (default: q1, q2, …)"),
        "hint": Key(Templated(allow_empty=True), "a line below the question"),
        "choices": Key(ListOf(Templated()), "answers to choose from"),
        "allow_free_text": Key(Flag(), "whether another answer may be written (default: yes)"),
        "default": Key(Text(allow_empty=True), "the answer when it is skipped"),
        "required": Key(Flag(), "whether it must be answered (default: no)"),
        "multiline": Key(Flag(), "whether an answer may have several lines (default: yes)"),
    },
    make=_question,
    rescue=_rescued_question,
)
QUESTIONS: dict[str, Key] = {
    "prompt": Key(Templated(allow_empty=True), "what the questions are about"),
    "questions": Key(ListOf(QUESTION, min_items=1), "the questions"),
    "source": Key(
        Text(dotted(2), "a dotted reference, such as `planner.output.questions`"),
        "a list of questions that another step computed",
    ),
    "allow_back": Key(Flag(), "whether one may go back (default: yes)"),
    "allow_skip": Key(Flag(), "whether one may be skipped (default: yes)"),
    "allow_skip_all": Key(Flag(), "whether the rest may be skipped (default: yes)"),
    "allow_abort": Key(Flag(), "whether the step may be left (default: no)", topics=(FLOW,)),
    "abort_route": Key(Text(), "the step after an abort (default: `$end`)", topics=(FLOW,)),
}


def questions(values: Mapping[str, Any]) -> QuestionsSpec:
    """The spec of a `questions` step."""
    specs = [
        Question(
            id=question.get("id") or f"q{number}",
            text=question["text"],
            hint=question.get("hint"),
            choices=question.get("choices", ()),
            default=question.get("default"),
            required=question.get("required", False),
            allow_free_text=question.get("allow_free_text", True),
            multiline=question.get("multiline", True),
        )
        for number, question in enumerate(values.get("questions", ()), 1)
    ]
    return QuestionsSpec(
        questions=tuple(specs),
        source=values.get("source"),
        abort_route=(values.get("abort_route") or "$end") if values.get("allow_abort") else None,
        prompt=values.get("prompt"),
        allow_back=values.get("allow_back", True),
        allow_skip=values.get("allow_skip", True),
        allow_skip_all=values.get("allow_skip_all", True),
    )


def check_questions(values: Mapping[str, Any], item: Item, path: Path, log: MistakeLog) -> None:
    """Check that ids are unique, and that `abort_route` comes with `allow_abort`."""
    if "abort_route" in values and not values.get("allow_abort"):
        entry = item.value["abort_route"]
        log.add_at(entry, (path, "abort_route"), "`abort_route` needs `allow_abort: true`", hint="add it")
        log.unknown_topics.add(FLOW)
    names: set[str] = set()
    for index, question in enumerate(values.get("questions", ())):
        name = question.get("id") or f"q{index + 1}"
        if name in names:
            entry = item.value["questions"].value[index]
            inner_path = ((path, "questions"), index)
            log.add_at(entry, inner_path, "two questions have the same id", hint="give each its own")
        names.add(name)
