"""Gates, questions and budget approvals: what a person decides during a run."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast

from failwell.errors.faults import Validation
from failwell.workflows.failure import Failure
from failwell.workflows.machine.closing import close_phase, end_run
from failwell.workflows.machine.context import ScopeNames, look_up
from failwell.workflows.machine.ending import complete, fail, is_stopping
from failwell.workflows.machine.limits import decide_limit
from failwell.workflows.machine.messages import Answered, Ask, SetTimer
from failwell.workflows.machine.run_state import Task
from failwell.workflows.machine.turn import Turn
from failwell.workflows.plan import GateSpec, Node, Question, QuestionsSpec
from failwell.workflows.template.render import render, render_value

TIMEOUT = "timeout"
"""The `decided_by` of a gate that expired."""
APPROVED, REJECTED = "approved", "rejected"
ANSWERED, SKIPPED, ABORTED = "answered", "skipped", "aborted"
"""The decisions of a `questions` step: all questions were seen, the rest was skipped, the step was left."""
COMPLETED = "completed"
_OUTCOMES = {ANSWERED: COMPLETED, SKIPPED: "skipped_remaining"}


def ask_person(turn: Turn, task: Task, node: Node, names: ScopeNames) -> None:
    """Open a gate."""
    spec = node.spec
    assert isinstance(spec, GateSpec)
    options = [
        {
            "label": render(option.label, names),
            "value": option.value,
            **({"prompt_for": option.prompt_for, "multiline": option.multiline} if option.prompt_for else {}),
        }
        for option in spec.options
    ]
    data: dict[str, Any] = {"type": "human_gate", "prompt": render(spec.prompt, names), "options": options}
    if spec.assignee is not None:
        data["assignee"] = render(spec.assignee, names)
    if spec.timeout is not None:
        data["expires_at"] = turn.at + spec.timeout
        data["timeout_option"] = spec.timeout_option
    _open(turn, task, data)


def ask_questions(turn: Turn, task: Task, node: Node, names: ScopeNames) -> None:
    """Open a list of questions. An empty list is answered at once."""
    spec = node.spec
    assert isinstance(spec, QuestionsSpec)
    questions = (
        [_question(question, names) for question in spec.questions]
        if spec.source is None
        else _computed_questions(task.node, spec.source, names)
    )
    if not questions:
        complete(turn, task, _questions_output([], {}, COMPLETED))
        return
    data: dict[str, Any] = {
        "type": "questions",
        "prompt": node.description if spec.prompt is None else render(spec.prompt, names),
        "questions": questions,
        "options": [],
        "allow_back": spec.allow_back,
        "allow_skip": spec.allow_skip,
        "allow_skip_all": spec.allow_skip_all,
    }
    if spec.abort_route is not None:
        data["can_abort"] = True
    _open(turn, task, data)


def _question(question: Question, names: ScopeNames) -> dict[str, Any]:
    return {
        "id": question.id,
        "text": render(question.text, names),
        "hint": "" if question.hint is None else render(question.hint, names),
        "choices": [render(choice, names) for choice in question.choices],
        "default": render_value(question.default, names),
        "required": question.required,
        "allow_free_text": question.allow_free_text,
        "multiline": question.multiline,
    }


def _computed_questions(node: str, source: str, names: ScopeNames) -> list[dict[str, Any]]:
    """The questions of a list that another step computed. Their texts are data, and are not rendered."""
    value = look_up(source, names)
    if not isinstance(value, list):
        raise Validation(
            kind="validation.input_invalid",
            message=f"the questions' source, `{source}`, is not a list",
            details={"source": source},
        )
    questions: list[dict[str, Any]] = []
    ids: set[str] = set()
    for number, entry in enumerate(cast("list[Any]", value), 1):
        question = _computed_question(node, number, entry)
        if question["id"] in ids:
            _refuse_question(node, number, "has an `id` that another question has; give each its own")
        ids.add(question["id"])
        questions.append(question)
    return questions


def _is_anything(_part: Any) -> bool:
    return True


def _is_text(part: Any) -> bool:
    return isinstance(part, str)


def _is_flag(part: Any) -> bool:
    return isinstance(part, bool)


def _is_texts(part: Any) -> bool:
    return isinstance(part, list) and all(isinstance(choice, str) for choice in cast("list[Any]", part))


_QUESTION_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("id", "text", "hint", "default"), (_is_text, "a text")),
    **dict.fromkeys(("required", "allow_free_text", "multiline"), (_is_flag, "true or false")),
    "choices": (_is_texts, "a list of texts"),
}
_QUESTION_DEFAULTS: dict[str, Any] = {
    "hint": "", "choices": [], "default": None, "required": False, "allow_free_text": True, "multiline": True,
}  # fmt: skip


def _computed_question(node: str, number: int, entry: Any) -> dict[str, Any]:
    """One computed question: a text, or an object with `text` or `question` and the keys of written ones."""
    if isinstance(entry, str):
        entry = {"text": entry}
    if not isinstance(entry, dict):
        _refuse_question(node, number, "is neither a text nor an object")
    fields = {name: part for name, part in cast("dict[str, Any]", entry).items() if part is not None}
    text = fields.pop("question", None)
    fields.setdefault("text", text)
    for name, part in fields.items():
        is_valid, words = _QUESTION_FIELDS.get(name, (_is_anything, ""))
        if not is_valid(part):
            _refuse_question(node, number, f"needs {words} as `{name}`")
    question: dict[str, Any] = {**_QUESTION_DEFAULTS, **fields}
    if not question.get("id"):
        question["id"] = f"q{number}"
    if not question["choices"] and not question["allow_free_text"]:
        _refuse_question(node, number, "has no `choices` and allows no free text, so it has no answer")
    return question


def _refuse_question(node: str, number: int, problem: str) -> NoReturn:
    raise Validation(
        kind="validation.input_invalid",
        message=f"question {number} of `{node}` {problem}",
        details={"question": number},
    )


def _open(turn: Turn, task: Task, data: dict[str, Any]) -> None:
    gate = gate_id(task)
    data = {"path": task.path, "node": task.node, "gate": gate, **data}
    turn.record("human_gate:paused", data)
    turn.commands.append(Ask(gate=gate, question=data))
    if "expires_at" in data:
        turn.commands.append(SetTimer(timer=task.path, at=data["expires_at"]))


def gate_id(task: Task, prefix: str = "") -> str:
    """The id of a gate. It differs for each visit of the node."""
    return f"{prefix}{task.path}" if task.visit == 1 else f"{prefix}{task.path}#{task.visit}"


def answer(turn: Turn, event: Answered) -> None:
    """Apply an answer. It changes nothing if the gate is not open."""
    task = next((task for task in turn.state.tasks.values() if task.gate == event.gate), None)
    if task is None or turn.is_closing:
        return
    data: dict[str, Any] = {
        "path": task.path,
        "gate": event.gate,
        "decision": event.decision,
        "decided_by": event.by,
    }
    if event.payload is not None:
        data["payload"] = event.payload
    if event.comment:
        data["comment"] = event.comment
    if task.status == "budget":
        decide = decide_limit if (task.asked or {}).get("type") == "limit" else _budget_decided
        turn.record("human_gate:resumed", data)
        decide(turn, turn.state.tasks[task.path], event)
        return
    turn.record("human_gate:resumed", data)
    now = turn.state.tasks[task.path]
    node = turn.node(now)
    if isinstance(node.spec, GateSpec):
        _gate_decided(turn, now, node.spec, event)
    else:
        _questions_answered(turn, now, node, task.asked or {}, event)


def _gate_decided(turn: Turn, task: Task, spec: GateSpec, event: Answered) -> None:
    option = next((option for option in spec.options if option.value == event.decision), None)
    if option is None:
        unknown = turn.failure(
            "validation.input_invalid", f"gate `{event.gate}` has no such option", task=task
        )
        fail(turn, task, unknown)
        return
    if option.value in spec.reject:
        rejection = turn.failure(
            "halt.intentional",
            f"`{task.node}` was answered with `{option.value}`, which ends the run",
            task=task,
            details={"decision": option.value, "decided_by": event.by, "comment": event.comment},
            typed=True,
        )
        fail(turn, task, rejection)
        return
    additional_input = _as_mapping(event.payload)
    if option.prompt_for and not additional_input and event.payload is not None:
        additional_input = {option.prompt_for: event.payload}
    complete(turn, task, {"selected": option.value, "additional_input": additional_input}, to=option.route)


def _questions_answered(
    turn: Turn, task: Task, node: Node, gate_data: Mapping[str, Any], event: Answered
) -> None:
    spec = node.spec
    assert isinstance(spec, QuestionsSpec)
    outcome = _OUTCOMES.get(event.decision, event.decision)
    output = _questions_output(gate_data.get("questions", []), _as_mapping(event.payload), outcome)
    to = spec.abort_route if event.decision == ABORTED else None
    complete(turn, task, output, to=to)


def _questions_output(
    questions: list[dict[str, Any]], payload: Mapping[str, Any], outcome: str
) -> dict[str, Any]:
    """The output of a `questions` step. After an abort, questions without an answer are left out."""
    items: list[dict[str, Any]] = []
    lines: list[str] = []
    for number, entry in enumerate(questions, 1):
        answer = payload.get(entry["id"])
        if is_blank(answer) and outcome == ABORTED:
            continue
        text = entry.get("text") or entry.get("question") or ""
        item = {"id": entry["id"], "question": text, **_answer(entry, answer)}
        items.append(item)
        if not item["skipped"]:
            lines.append(f"Q{number}. {text}\nA: {item['answer']}")
    answers = {item["id"]: item["answer"] for item in items if not item["skipped"]}
    return {
        "answers": answers,
        "items": items,
        "transcript": "\n\n".join(lines),
        "answered_count": len(answers),
        "skipped_count": len(items) - len(answers),
        "answered_any": bool(answers),
        "total_count": len(questions),
        "outcome": outcome,
    }


def _answer(question: Mapping[str, Any], answer: Any) -> dict[str, Any]:
    if not is_blank(answer):
        source = "choice" if answer in (question.get("choices") or ()) else "free_text"
        return {"answer": answer, "source": source, "skipped": False}
    default = question.get("default")
    is_skipped = default is None
    return {"answer": default, "source": "skipped" if is_skipped else "default", "skipped": is_skipped}


def is_blank(answer: Any) -> bool:
    """Whether a question was left without an answer."""
    return answer is None or (isinstance(answer, str) and not answer.strip())


def _as_mapping(payload: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", payload) if isinstance(payload, dict) else {}


def gate_timed_out(turn: Turn, task: Task) -> None:
    """Apply a gate's `timeout_option`, or fail the node."""
    node = turn.node(task)
    spec = node.spec
    if isinstance(spec, GateSpec) and spec.timeout_option is not None and task.gate is not None:
        answer(turn, Answered(at=turn.at, gate=task.gate, decision=spec.timeout_option, by=TIMEOUT))
        return
    late = turn.failure(
        "limit.run_timeout", f"nobody answered `{task.node}` in time", task=task, details={"gate": task.gate}
    )
    fail(turn, task, late)


def needs_approval(turn: Turn, task: Task, node: Node) -> bool:
    """Check the budget before a leaf starts. Returns whether the leaf has to wait or the run fails."""
    limits = turn.plans[turn.state.file].limits
    cap = turn.state.limits.get("budget_usd", limits.budget_usd)
    if cap is None:
        return False
    estimate = node.estimate_usd or 0.0
    reserved = sum(running.reserve for running in turn.state.tasks.values() if running.status == "running")
    spent = turn.state.spent + reserved
    if spent + estimate <= cap and (estimate or spent < cap or not spent):
        return False
    recorded = turn.state.tasks.get(task.path)
    if recorded is not None and recorded.approved:
        return False
    if limits.on_exceed == "warn":
        if not turn.state.warned:
            share = min(100, max(0, int(spent / cap * 100 + 0.5)))
            turn.record("budget:warning", {"spent_usd": spent, "limit_usd": cap, "threshold_pct": share})
        return False
    from failwell.workflows.machine.entering import started

    turn.record("node:started", started(turn, task, node))
    now = turn.state.tasks[task.path]
    if limits.on_exceed == "fail":
        _over_budget(turn, now, spent, cap)
        return True
    _ask_to_spend(turn, now, spent, cap)
    return True


def pauses_for_budget(turn: Turn, task: Task, failure: Failure) -> bool:
    """Stop at the budget that a leaf reached while it ran: ask a person, or end the run. Returns whether it did."""
    limits = turn.plans[turn.state.file].limits
    cap = turn.state.limits.get("budget_usd", limits.budget_usd)
    if failure.kind != "limit.budget_exceeded" or cap is None or task.approved or limits.on_exceed == "warn":
        return False
    if turn.is_closing or is_stopping(turn, task):
        return False
    usage = dict(failure.usage or {})
    spent = turn.state.spent + (usage.get("cost_usd") or 0.0)
    if limits.on_exceed == "fail":
        _over_budget(turn, task, spent, cap, usage)
    else:
        _ask_to_spend(turn, task, spent, cap, usage)
    return True


def _ask_to_spend(
    turn: Turn, task: Task, spent: float, cap: float, usage: Mapping[str, Any] | None = None
) -> None:
    gate = gate_id(task, "budget:")
    gate_data: dict[str, Any] = {
        "path": task.path,
        "node": task.node,
        "gate": gate,
        "spent_usd": spent,
        "limit_usd": cap,
    }
    turn.record("budget:paused", {**gate_data, "usage": dict(usage)} if usage else gate_data)
    options = [{"label": "spend beyond the budget", "value": APPROVED}, {"label": "stop", "value": REJECTED}]
    prompt = f"{spent:.2f} of {cap:.2f} USD are spent; may `{task.node}` run?"
    data = {**gate_data, "type": "budget", "prompt": prompt, "options": options}
    turn.record("human_gate:paused", data)
    turn.commands.append(Ask(gate=gate, question=data))


def _over_budget(
    turn: Turn, task: Task, spent: float, cap: float, usage: Mapping[str, Any] | None = None
) -> None:
    failure = turn.failure(
        "limit.budget_exceeded",
        f"`{task.node}` would go beyond the budget of {cap:.2f} USD",
        task=task,
        details={"spent_usd": spent, "limit_usd": cap},
    )
    extra = {"usage": dict(usage)} if usage else {}
    close_phase(turn, task, failure)
    turn.record("node:failed", {"path": task.path, "attempt": task.attempt, "failure": failure, **extra})
    end_run(turn, failure, error_type="LimitReached", node=task.path)


def _budget_decided(turn: Turn, task: Task, event: Answered) -> None:
    from failwell.workflows.machine.entering import start_again

    if event.decision == APPROVED:
        start_again(turn, task, because="approval")
        return
    limits = turn.plans[turn.state.file].limits
    _over_budget(turn, task, turn.state.spent, limits.budget_usd or 0.0)
