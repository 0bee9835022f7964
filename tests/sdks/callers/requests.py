"""One call with requests itself, to a service that is nobody's model."""

from importlib import import_module
from typing import Any

SDK = "requests"
DISTRIBUTION = "requests"
DIALECT = "plain"
PROVIDER = "plain"
NOT_HERE: dict[str, str] = {
    "empty_reply stream": "no lines are a valid stream of lines",
    "garbage_json stream": "the stream is handed out as lines, and nobody parses them",
}


def call(url: str, *, stream: bool, timeout: float) -> object:
    requests: Any = import_module("requests")
    with requests.Session() as client:
        client.trust_env = False
        reply = client.post(f"{url}/things", json={"stream": stream}, stream=stream, timeout=timeout)
        reply.raise_for_status()
        return list(reply.iter_lines()) if stream else reply.json()
