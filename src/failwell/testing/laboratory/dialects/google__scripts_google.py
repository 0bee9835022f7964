"""A scripted turn as a reply of Google's generateContent."""

from typing import Any

from failwell.testing.laboratory.lab_reply import LabCall, Reply, as_events, as_json, event
from failwell.testing.laboratory.lab_reply__turn import LabTurn, Pieces

_KIND = "application/json; charset=UTF-8"


def content_turn(call: LabCall, turn: LabTurn, number: int) -> Reply:
    """The reply of generateContent, whole or streamed. Calls come whole in a stream, as Google sends them."""
    calls: list[dict[str, Any]] = []
    for place, (name, arguments) in enumerate(turn.calls):
        # Of parallel calls the first one alone is signed.
        signature = {} if place else {"thoughtSignature": f"c2lnLWxhYi{number:02d}"}
        calls.append({"functionCall": {"name": name, "args": dict(arguments)}, **signature})
    if not call.stream:
        parts: list[dict[str, Any]] = [{"text": turn.thinking, "thought": True}] if turn.thinking else []
        parts += [{"text": turn.text}] if turn.text else []
        return as_json(200, _chunk([*parts, *calls], number, "STOP"), kind=_KIND)
    parts = [{"text": piece, "thought": True} for piece in Pieces(turn.thinking)]
    parts += [{"text": piece} for piece in Pieces(turn.text)]
    chunks = [_chunk([part], number, None) for part in [*parts, *calls]]
    return as_events(*map(event, [*chunks, _chunk([], number, "STOP")]))


def _chunk(parts: list[dict[str, Any]], number: int, finish: str | None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    if finish is not None:
        candidate["finishReason"] = finish
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 5, "totalTokenCount": 14}
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": "gemini-lab",
        "responseId": f"lab{number}",
    }
