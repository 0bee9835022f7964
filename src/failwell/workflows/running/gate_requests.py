"""Gates as questions to people: the request, the check of an answer, and asking through the queue of the process."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from failwell.agents.people.queue import InteractionQueue, InteractionRequired
from failwell.agents.people.requests import Answer, Request
from failwell.calls.suppress import catch_async
from failwell.errors.redact import redact_value
from failwell.workflows.machine.gate_steps import ABORTED, ANSWERED, SKIPPED, is_blank
from failwell.workflows.running.settings import GateAnswer

_LOG = logging.getLogger("failwell.workflows")


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRequest(Request):
    """A gate. The answer's `value` is the decision, its `payload` holds more input or the answers to questions."""

    question: Mapping[str, Any]
    """What the machine asks: `type`, `prompt`, `options` or `questions`."""

    type: ClassVar[str] = "gate"

    def problem_with(self, answer: Answer) -> str | None:
        """Why `answer` does not fit."""
        if not isinstance(answer.value, str):
            return "answer with the value of an option"
        return refusal({self.id: self.question}, self.id, answer.value, answer.payload)

    @property
    def values(self) -> tuple[str, ...]:
        """The values that it takes."""
        return tuple(map(str, answers_of(self.question)))

    def fields(self) -> dict[str, Any]:
        """The answers that the gate takes, and its questions."""
        fields: dict[str, Any] = {"gate_type": self.question.get("type")}
        if self.question.get("questions"):
            fields["questions"] = redact_value(self.question["questions"])
        return fields


async def ask_gate(
    queue: InteractionQueue, gate: str, question: Mapping[str, Any], *, run: str
) -> GateAnswer | None:
    """Ask the question of a gate; `None` if nobody answers here, and the gate stays open for other ways to answer."""
    text = str(question.get("prompt") or gate)
    scope = {"run": run, "node": question.get("node")}
    request = GateRequest(text=text, id=gate, scope=scope, question=question)
    reply, error = await catch_async(queue.ask, request)
    if error is not None and not isinstance(error, InteractionRequired):
        _LOG.error("gate `%s` of run %s cannot be asked here", gate, run, exc_info=error)
    if not isinstance(reply, Answer):
        return None
    return GateAnswer(decision=reply.value, by=reply.by, payload=reply.payload, comment=reply.comment)


def gates_in(tasks: Any) -> dict[str, Mapping[str, Any]]:
    """The open gates of `tasks`, with their questions."""
    return {str(task.gate): task.asked or {} for task in tasks if task.gate is not None}


def refusal(
    gates: Mapping[str, Mapping[str, Any]], gate: str, decision: str, payload: Any = None
) -> str | None:
    """Why an answer is not valid, or `None`."""
    if gate not in gates:
        open_names = ", ".join(f"`{name}`" for name in gates) or "none"
        return f"no gate `{gate}` is open; open ones: {open_names}"
    gate_data = gates[gate]
    if "answer" in gate_data:
        return f"gate `{gate}` was answered by {gate_data['answer']['decided_by'] or 'somebody'} already"
    values = answers_of(gate_data)
    if decision not in values:
        return f"`{decision}` is not an answer of gate `{gate}`; write {' or '.join(f'`{one}`' for one in values)}"
    if gate_data.get("type") != "questions" or decision == ABORTED:
        return None
    return _unanswered(gate_data, decision, payload)


def answers_of(gate_data: Mapping[str, Any]) -> list[str]:
    """The valid answers of a gate."""
    if gate_data.get("type") == "questions":
        skipped = [SKIPPED] if gate_data.get("allow_skip_all", True) else []
        return [ANSWERED, *skipped, ABORTED] if gate_data.get("can_abort") else [ANSWERED, *skipped]
    return [option["value"] for option in gate_data.get("options", ())]


def _unanswered(gate_data: Mapping[str, Any], decision: str, payload: Any) -> str | None:
    answers: dict[str, Any] = payload if isinstance(payload, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    questions: dict[str, Mapping[str, Any]] = {entry["id"]: entry for entry in gate_data.get("questions", ())}
    for name in answers:
        if name not in questions:
            return f"there is no question `{name}`; the questions are {', '.join(questions)}"
    may_skip = decision == SKIPPED or gate_data.get("allow_skip", True)
    for name, question in questions.items():
        value = question.get("default") if is_blank(answers.get(name)) else answers[name]
        choices: list[str] = question.get("choices") or []
        if value is None:
            if question.get("required") or not may_skip:
                return f"the question `{name}` must be answered: {question.get('text', '')}"
        elif choices and not question.get("allow_free_text", True) and value not in choices:
            return f"the question `{name}` takes one of {', '.join(choices)}"
    return None
