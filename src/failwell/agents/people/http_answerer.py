"""Answers over HTTP, from programs of the same user on the same machine.

The server listens on the loopback address alone. Every request needs the token, which is in a file that only its owner can
read; requests of browsers, and requests for another host, are refused.

    GET  /questions        the open questions, the oldest first
    POST /questions/{id}   {"value": …, "by": …, "comment": …, "payload": …}, or {"refuse": true}
"""

import json
import os
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from hmac import compare_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from failwell.agents.people.queue import AnswerInvalid, InteractionClosed, InteractionQueue, RemoteAnswerer
from failwell.agents.people.requests import Answer, Refusal
from failwell.calls.suppress import catch_async
from failwell.errors.redact import register_secret
from failwell.store.private_files import create_private

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter

HOST = "127.0.0.1"
_LONGEST_HEAD = 16 * 1024
_LONGEST_BODY = 256 * 1024
_SECONDS = 10.0
_REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    413: "Content Too Large",
    422: "Unprocessable Content",
}


class HttpAnswerer(RemoteAnswerer):
    """Takes answers by HTTP while `serving` lasts."""

    name = "http"

    def __init__(self) -> None:
        self._token = secrets.token_urlsafe(32)
        register_secret(self._token)
        self._port = 0

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://{HOST}:{self._port}"

    @asynccontextmanager
    async def serving(self, queue: InteractionQueue, file: Path, port: int = 0) -> AsyncGenerator[None]:
        """Serve the questions of `queue`, and write the address and the token to `file`, for the duration of the block.

        Args:
            queue: The questions.
            file: Created for its owner alone, and removed at the end.
            port: By default one that is free.

        Raises:
            OSError: the port is taken, or the file cannot be written.
        """
        import asyncio

        async def serve(reader: "StreamReader", writer: "StreamWriter") -> None:
            try:
                async with asyncio.timeout(_SECONDS):
                    reply, error = await catch_async(self._reply, queue, reader)
                    status, body = (
                        reply if error is None else (400, _problem(400, "this is no valid request"))
                    )
                    writer.write(_response(status, body))
                    await writer.drain()
            except (TimeoutError, ConnectionError):
                # The other side is slow or gone. That does not affect the question.
                return
            finally:
                writer.close()

        server = await asyncio.start_server(serve, HOST, port, limit=_LONGEST_HEAD)
        try:
            self._port = server.sockets[0].getsockname()[1]
            self._write(file)
            try:
                yield
            finally:
                _remove(file)
        finally:
            server.close()

    def _write(self, file: Path) -> None:
        # There may be one of a process with the same number that was killed.
        _remove(file)
        with os.fdopen(create_private(file), "w", encoding="utf-8") as output:
            json.dump({"url": self.url, "token": self._token, "pid": os.getpid()}, output)

    async def _reply(self, queue: InteractionQueue, reader: "StreamReader") -> tuple[int, Any]:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        method, target, _ = first.split(" ")
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
        }
        refusal = self._refusal(headers)
        if refusal is not None:
            return refusal, _problem(
                refusal, "send the token of the file, to the address of the file, from no browser"
            )
        path = target.partition("?")[0]
        if path == "/questions":
            if method != "GET":
                return 405, _problem(405, "questions are read with GET")
            return 200, {"questions": [question.to_dict() for question in queue.pending]}
        if not path.startswith("/questions/"):
            return 404, _problem(404, "there is /questions and /questions/{id}")
        if method != "POST":
            return 405, _problem(405, "questions are answered with POST")
        length = int(headers.get("content-length", "0"))
        if not 0 <= length <= _LONGEST_BODY:
            return 413, _problem(413, f"an answer has at most {_LONGEST_BODY} bytes")
        body: object = json.loads(await reader.readexactly(length))
        if not isinstance(body, dict):
            return 400, _problem(400, "an answer is a JSON object")
        return self._answer(queue, unquote(path.removeprefix("/questions/")), cast("dict[str, Any]", body))

    def _refusal(self, headers: Mapping[str, str]) -> int | None:
        """The status for a request that is not from a program of the owner."""
        if "origin" in headers or headers.get("host") not in (
            f"{HOST}:{self._port}",
            f"localhost:{self._port}",
        ):
            # A page of a browser, or a name that somebody else lets point here.
            return 403
        sent = headers.get("authorization", "")
        expected = f"Bearer {self._token}"
        return None if compare_digest(sent.encode("utf-8"), expected.encode("utf-8")) else 401

    def _answer(self, queue: InteractionQueue, question: str, body: Mapping[str, Any]) -> tuple[int, Any]:
        by = str(body.get("by") or self.name)
        answer: Answer | Refusal
        if body.get("refuse") is True:
            answer = Refusal(by=by, reason=str(body.get("comment") or ""))
        elif "value" not in body:
            return 422, _problem(422, "an answer has a `value`", kind="validation.input_invalid")
        else:
            comment = str(body.get("comment") or "")
            answer = Answer(value=body["value"], by=by, comment=comment, payload=body.get("payload"))
        try:
            queue.answer(question, answer)
        except InteractionClosed as closed:
            return 409, _problem(409, closed.summary(), kind=closed.kind)
        except AnswerInvalid as invalid:
            return 422, _problem(422, invalid.summary(), kind=invalid.kind)
        return 200, {"ok": True}


def _remove(file: Path) -> None:
    file.unlink(missing_ok=True)


def _problem(status: int, detail: str, kind: str | None = None) -> dict[str, Any]:
    problem: dict[str, Any] = {"status": status, "title": _REASONS[status], "detail": detail}
    return problem if kind is None else {**problem, "kind": kind}


def _response(status: int, body: Any) -> bytes:
    content = json.dumps(body).encode("ascii")
    kind = "application/json" if status == 200 else "application/problem+json"
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + content
