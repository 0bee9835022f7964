"""Asks the laboratory over a real connection, with the standard library's own client."""

import json
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 20.0
"""Seconds after which a test that hangs gives up."""


@dataclass(frozen=True, slots=True)
class Got:
    """One reply, read to its end."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    url: str,
    path: str = "/v1/chat/completions",
    *,
    body: Any = None,
    stream: bool = False,
    method: str = "POST",
    timeout: float = PATIENCE,
) -> Got:
    """One request to the laboratory, on a connection of its own."""
    where = urlsplit(url)
    if where.path.startswith("/ollama/") and path == "/v1/chat/completions":
        # There it answers as OpenAI does; this is its own API.
        path = "/api/chat"
    connection = HTTPConnection(where.hostname or "", where.port, timeout=timeout)
    try:
        return ask_again(connection, where.path + path, body=body, stream=stream, method=method)
    finally:
        connection.close()


def ask_again(
    connection: HTTPConnection, target: str, *, body: Any = None, stream: bool = False, method: str = "POST"
) -> Got:
    """One more request on a connection that may have served others."""
    asked: dict[str, Any] = {"model": "lab-model", "stream": stream, **(body or {})}
    headers = {"content-type": "application/json", "authorization": "Bearer lab"}
    connection.request(method, target, json.dumps(asked) if method == "POST" else None, headers)
    reply = connection.getresponse()
    return Got(reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read())
