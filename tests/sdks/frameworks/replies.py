"""A server that speaks OpenAI's chat completions and gives the replies of a script, in order."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Reply = tuple[int, dict[str, Any]]
NO_KEY: Reply = (401, {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}})
NO_QUOTA: Reply = (
    429,
    {"error": {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}},
)  # fmt: skip
OVERLOADED: Reply = (503, {"error": {"message": "The server is overloaded", "type": "server_error"}})


def completion(finish: str = "stop", **message: Any) -> Reply:
    """A chat completion whose message has these fields."""
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": None, **message},
    }
    usage = {"prompt_tokens": 11, "completion_tokens": 16, "total_tokens": 27}
    return 200, {
        "id": "c-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "usage": usage,
        "choices": [choice],
    }


def tool_call(name: str, arguments: str) -> Reply:
    """A chat completion that calls one tool."""
    call = {"id": "t-1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return completion("tool_calls", tool_calls=[call])


class Script(ThreadingHTTPServer):
    """Gives the replies in order, the last one for ever."""

    def __init__(self, replies: tuple[Reply, ...]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies = replies
        self.requests: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Script)
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        replies, seen = self.server.replies, self.server.requests
        status, reply = replies[min(len(seen), len(replies) - 1)]
        seen.append(body)
        data = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_args: object, **_named: object) -> None:
        """Print nothing."""


@contextmanager
def script(*replies: Reply) -> Generator[Script]:
    """A running server with these replies."""
    server = Script(replies)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
