"""What an agent does, as lines of its step's output: `failwell runs logs` shows them.

A line names models, tools and kinds. It holds no prompt, no answer and no argument.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from failwell.calls.attempt_loop import AttemptEvent, AttemptFailed
from failwell.workflows.machine.messages import Request

if TYPE_CHECKING:
    from failwell.agents.turn import TurnEvent


class AgentLog:
    """Writes the lines of one turn.

    Args:
        note: Takes what a step prints.
        request: The step.
    """

    def __init__(self, note: Callable[[str, dict[str, Any]], None] | None, request: Request) -> None:
        self._note = note
        self._about: dict[str, Any] = {
            "path": request.path,
            "node": request.node.name,
            "stream": "stderr",
            "visit": request.visit,
            "attempt": request.attempt,
        }
        if request.item is not None:
            self._about["item"] = request.item

    def write_attempt(self, event: AttemptEvent) -> None:
        """A model failed, and this was decided about it."""
        if isinstance(event, AttemptFailed):
            row = event.attempt
            self.write(f"model {row.provider}:{row.model}: {row.kind}; {row.reason or 'no further attempt'}")

    def write_event(self, event: "TurnEvent") -> None:
        """A tool was called, or a model answered in a turn of several calls."""
        data = event.data
        if event.type == "tool:called":
            self.write(f"tool {data['tool']}: {data['kind'] or 'done'}")
        elif data["tool_calls"] or data["call"] > 1:
            count = data["tool_calls"]
            what = f"calls {count} tool{'' if count == 1 else 's'}" if count else "answered"
            self.write(f"model {data['provider']}:{data['model']}: {what}")

    def write(self, line: str) -> None:
        """Write one line."""
        if self._note is not None:
            self._note("node:printed", {**self._about, "text": f"{line}\n"})
