"""Control of a running workflow: another process of its owner can answer its gates or stop it.

It uses a socket in the run's private folder, with one JSON object per line each way. If nothing listens
there, no process drives the run, and an answer is written to the journal instead.
"""

import json
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from failwell.journal.errors import os_fault
from failwell.journal.watch import bound_socket, socket_address
from failwell.workflow.machine.gate_steps import ABORTED, ANSWERED, SKIPPED, is_blank
from failwell.workflow.machine.messages import Answered, Cancel
from failwell.workflow.run.run_settings import RunDriver

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter

NAME = "control.sock"
_MAX_LINE = 64 * 1024
_TIMEOUT = 10.0


@asynccontextmanager
async def listening(driver: RunDriver, folder: Path) -> AsyncGenerator[None]:
    """Serve the run's control socket while the block lasts.

    Raises:
        StoreFull: there is no room for it.
        StoreUnavailable: the folder cannot be written to.
    """
    from asyncio import start_unix_server

    (folder / NAME).unlink(missing_ok=True)

    async def serve(reader: "StreamReader", writer: "StreamWriter") -> None:
        try:
            line = await reader.readline()
            reply = _handle(driver, line)
            writer.write(f"{json.dumps(reply)}\n".encode())
            await writer.drain()
        except (ValueError, ConnectionError):
            # The client sent too much or disconnected. That does not affect the run.
            return
        finally:
            writer.close()

    try:
        listener = bound_socket(folder, NAME, socket.SOCK_STREAM)
        server = await start_unix_server(serve, sock=listener, limit=_MAX_LINE)
    except OSError as error:
        raise os_fault(error, folder / NAME) from error
    try:
        yield
    finally:
        server.close()
        (folder / NAME).unlink(missing_ok=True)


def send(folder: Path, request: Mapping[str, Any], *, patience: float = _TIMEOUT) -> dict[str, Any] | None:
    """Send a request to a running workflow; `None` if no process drives it, or it does not reply in time."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(max(patience, 0.1))
    try:
        with socket_address(folder, NAME) as path:
            client.connect(path)
        client.sendall(f"{json.dumps(request)}\n".encode())
        with client.makefile("r", encoding="utf-8") as replies:
            line = replies.readline()
    except (FileNotFoundError, ConnectionError, TimeoutError):
        return None
    finally:
        client.close()
    return json.loads(line) if line else None


def _handle(driver: RunDriver, line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except ValueError:
        return {"ok": False, "error": "that is not JSON"}
    match request:
        case {"do": "cancel"}:
            by = str(request.get("by", ""))
            driver.submit(Cancel(at=driver.now(), reason=str(request.get("reason", "user")), by=by))
            return {"ok": True}
        case {"do": "answer", "gate": str(gate), "decision": str(decision)}:
            problem = refusal(open_gates(driver), gate, decision, request.get("payload"))
            if problem is not None:
                return {"ok": False, "error": problem}
            driver.submit(
                Answered(
                    at=driver.now(),
                    gate=gate,
                    decision=decision,
                    by=str(request.get("by", "")),
                    payload=request.get("payload"),
                    comment=str(request.get("comment", "")),
                )
            )
            return {"ok": True}
        case _:
            return {"ok": False, "error": "there is no such request"}


def open_gates(driver: RunDriver) -> dict[str, Mapping[str, Any]]:
    """The open gates of a run."""
    return gates_in(driver.state.tasks.values())


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
