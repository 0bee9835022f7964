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

from failwell.store.faults import os_fault
from failwell.store.watch import bound_socket, socket_address
from failwell.workflows.machine.messages import Answered, Cancel
from failwell.workflows.running.settings import RunDriver

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter

    from failwell.agents.people.queue import InteractionQueue
    from failwell.agents.people.requests import Request

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
            interactions = driver.settings.interactions
            pending = () if interactions is None else interactions.pending
            waiting = next((question for question in pending if question.id == gate), None)
            if interactions is not None and waiting is not None:
                return _answer(interactions, waiting, request)
            from failwell.workflows.running.gate_requests import refusal

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
        case {"do": "list"}:
            interactions = driver.settings.interactions
            pending = () if interactions is None else interactions.pending
            return {"ok": True, "questions": [question.to_dict() for question in pending]}
        case _:
            return {"ok": False, "error": "there is no such request"}


def _answer(queue: "InteractionQueue", question: "Request", request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a question that waits in this process."""
    from failwell.agents.people.queue import AnswerInvalid, InteractionClosed
    from failwell.agents.people.requests import Answer

    answer = Answer(
        value=question.value_of(request["decision"]),
        by=str(request.get("by", "")),
        comment=str(request.get("comment", "")),
        payload=request.get("payload"),
    )
    try:
        queue.answer(question.id, answer)
    except (AnswerInvalid, InteractionClosed) as fault:
        return {"ok": False, "error": fault.summary()}
    return {"ok": True}


def open_gates(driver: RunDriver) -> dict[str, Mapping[str, Any]]:
    """The open gates of a run."""
    from failwell.workflows.running.gate_requests import gates_in

    return gates_in(driver.state.tasks.values())
