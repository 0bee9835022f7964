"""The replies of the lab in the order of a script: fail, then fail otherwise, then answer."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from time import monotonic
from typing import Any

from failwell.testing.laboratory.delay_forms import Wait
from failwell.testing.laboratory.lab_reply import LabCall, Reply, as_json
from failwell.testing.laboratory.lab_routes import check
from tests.sdks.frameworks.replies import tool_call

Step = Callable[[str, LabCall], Reply]
"""What is answered to a request in a dialect."""
STALL = 5.0
"""Seconds for which a stalled stream sends nothing."""


def lab_reply(scenario: str) -> Step:
    """The reply that the lab gives in this scenario."""

    def answer(dialect: str, call: LabCall) -> Reply:
        reply = check(dialect, scenario).dialect.reply(scenario, call)
        assert reply is not None, f"{dialect} has no scenario {scenario}"
        return reply

    return answer


def stalls_in_text(dialect: str, call: LabCall) -> Reply:
    """The lab's answer, which stalls after the first words if it is a stream."""
    reply = lab_reply("ok")(dialect, call)
    pieces = reply.pieces or (reply.body,)
    begun = next(place for place, piece in enumerate(pieces, 1) if b"Hello" in piece)
    return replace(reply, pieces=(b"".join(pieces[:begun]), *pieces[begun:]), stall="body")


def rate_limited(seconds: float) -> Step:
    """The lab's rate limit, with a delay of this many seconds in the header that vendors use."""

    def answer(dialect: str, call: LabCall) -> Reply:
        headers = (("retry-after", f"{seconds:g}"),)
        lab_answer = check(dialect, "rate_limited").dialect.answer("rate_limited")
        assert lab_answer is not None
        wait = Wait("seconds", seconds, headers)
        return lab_answer(
            LabCall(call.method, call.path, call.body, stream=call.stream, wait=wait, base=call.base)
        )

    return answer


def calls_tool(name: str, arguments: dict[str, Any]) -> Step:
    """A reply of the model that calls one tool, in OpenAI's format."""

    def answer(_dialect: str, _call: LabCall) -> Reply:
        return as_json(*tool_call(name, json.dumps(arguments)))

    return answer


class ScriptedLab(ThreadingHTTPServer):
    """Gives the replies of a script in order, the last one for ever, and keeps what it was sent."""

    daemon_threads = True

    def __init__(self, dialect: str, steps: tuple[Step, ...]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.dialect = dialect
        self.steps = steps
        self.requests: list[dict[str, Any]] = []
        """The bodies of all requests."""
        self.times: list[float] = []
        """When they arrived."""
        self.stall_is_over = False
        """Whether a stream that stalls was read to the end of its pause."""
        self.closes = Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        lab: Any = self.server
        body: Any = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"null")
        step = lab.steps[min(len(lab.requests), len(lab.steps) - 1)]
        lab.times.append(monotonic())
        lab.requests.append(body)
        stream = LabCall(body=body).member("stream") is True or "stream" in self.path.lower()
        path = self.path.partition("?")[0].removeprefix("/v1")
        self._send(step(lab.dialect, LabCall("POST", path, body, stream=stream, base=lab.url)))

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status or 500)
        for name, value in reply.headers:
            self.send_header(name, value)
        pieces = (reply.body,) if reply.pieces is None else reply.pieces
        if reply.pieces is None:
            self.send_header("content-length", str(len(reply.body)))
        else:
            self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for place, piece in enumerate(pieces):
            self.wfile.write(piece if reply.pieces is None else b"%x\r\n%b\r\n" % (len(piece), piece))
            if place == 0 and reply.stall == "body":
                lab: Any = self.server
                lab.stall_is_over = not lab.closes.wait(STALL)
        if reply.pieces is not None:
            self.wfile.write(b"0\r\n\r\n")

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            # The client gave up on a stream that stalled.
            self.close_connection = True

    def log_message(self, *_args: object, **_named: object) -> None:
        """Print nothing."""


@contextmanager
def scripted_lab(dialect: str, *steps: Step) -> Generator[ScriptedLab]:
    """A running server with these replies."""
    server = ScriptedLab(dialect, steps)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.closes.set()
        server.shutdown()
        server.server_close()
        thread.join()
