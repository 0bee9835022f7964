"""Answers questions by a function: the `on_gate` of `workflows.run`, and `--skip-gates`."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from failwell.agents.people.requests import Answer, Ask, Request, Select
from failwell.workflows.running.gate_requests import GateRequest

if TYPE_CHECKING:
    from failwell.workflows.running.settings import GateAnswer

    OnGate = Callable[[str, Mapping[str, Any]], Awaitable[GateAnswer | None]]

_ANSWER = "answer"


class CallbackAnswerer:
    """An answerer that calls `on_gate` with the id and the question of a gate. Other requests look like gates to it."""

    name = "on_gate"

    def __init__(self, on_gate: "OnGate") -> None:
        self._on_gate = on_gate

    async def answer(self, request: Request) -> Answer | None:
        """What the function answers."""
        question = request.question if isinstance(request, GateRequest) else _as_gate(request)
        reply = await self._on_gate(request.id, question)
        if reply is None:
            return None
        if isinstance(request, Ask):
            payload: Mapping[str, Any] = reply.payload or {}
            return Answer(value=str(payload.get(_ANSWER) or ""), by=reply.by)
        value = request.value_of(reply.decision)
        return Answer(value=value, by=reply.by, comment=reply.comment, payload=reply.payload)


def _as_gate(request: Request) -> dict[str, Any]:
    """A request as the question of a gate. Whatever answers without reading takes the first option, the cautious one."""
    if isinstance(request, Ask):
        question: dict[str, Any] = {
            "id": _ANSWER,
            "text": request.text,
            "hint": "",
            "choices": [],
            "required": False,
        }
        return {
            "type": "questions",
            "prompt": "",
            "questions": [question],
            "options": [],
            "allow_back": False,
        }
    kind = "approval" if request.type == "approve" else request.type
    options = (
        [option.to_dict() for option in request.options]
        if isinstance(request, Select)
        else [{"label": value, "value": value} for value in request.values]
    )
    return {
        **{name: value for name, value in request.scope.items() if name in ("path", "node")},
        "type": kind,
        "prompt": request.text,
        "options": options,
    }
