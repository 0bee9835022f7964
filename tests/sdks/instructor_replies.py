"""A server that answers clients of instructor by a script, and the replies that such scripts are made of."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self

PROMPT = "the-prompt-nobody-may-see"
ANSWER = "the-answer-nobody-may-see"
REFUSAL = "the-refusal-nobody-may-see"


def a_completion(message: dict[str, Any], finish: str = "stop") -> tuple[int, dict[str, Any]]:
    usage = {"prompt_tokens": 11, "completion_tokens": 16, "total_tokens": 27}
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": None, **message},
    }
    reply = {"id": "c-1", "object": "chat.completion", "created": 1, "model": "lab-model", "usage": usage}
    return 200, {**reply, "choices": [choice]}


def a_tool_call(arguments: str, finish: str = "tool_calls") -> tuple[int, dict[str, Any]]:
    call = {"id": "t-1", "type": "function", "function": {"name": "User", "arguments": arguments}}
    return a_completion({"tool_calls": [call]}, finish)


UNFIT = a_tool_call(json.dumps({"name": ANSWER, "age": ANSWER}))
NO_CALL = a_completion({"content": ANSWER})
REFUSED = a_completion({"content": None, "refusal": REFUSAL})
CUT = a_tool_call('{"name": "' + ANSWER, "length")
LIMITED = (
    429,
    {"error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}},
)
NO_KEY = (401, {"error": {"message": "Incorrect API key", "code": "invalid_api_key"}})


class Script:
    """A server that answers with the given replies in order, the last one for ever."""

    def __init__(self, *replies: tuple[int, dict[str, Any]]) -> None:
        self.replies = list(replies)
        self.calls = 0
        script = self

        class Answering(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                status, body = script.replies[min(script.calls, len(script.replies) - 1)]
                script.calls += 1
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.send_header("retry-after", "7")
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the name it has there)
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self.thread = Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
