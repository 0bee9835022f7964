"""An agent that is interrupted while it answers: what has arrived so far is no answer."""

import json
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.cli.running import Done, failwell, failwell_process

FLOW = """\
workflow:
  name: w
  entry_point: ask
  runtime: {{provider: {{name: openai-chat, base_url: "{url}", api_key: k}}, default_model: gpt-4o}}
agents:
  - name: ask
    prompt: Answer.
    output: {{colour: {{type: string}}}}
    validator: {{criteria: It is a colour.}}
    routes:
      - {{on_error: true, to: mend}}
      - {{to: $end}}
  - {{name: mend, type: set, value: mended}}
"""
ENVELOPE = {"failwell_error": True, "kind": "external.colour.unknown", "message": "m"}


@contextmanager
def stalled_model(text: str) -> Generator[tuple[str, Event, list[int]]]:
    """A server that streams `text` and then nothing; its address, the moment it was sent, and one entry for each call."""
    sent, over = Event(), Event()
    calls: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            calls.append(1)
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
            chunk = {
                "id": "c",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "gpt-4o",
                "choices": [choice],
            }
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.flush()
            sent.set()
            over.wait(60)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the base class names it)
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", sent, calls
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def events(folder: Path) -> list[dict[str, Any]]:
    done = failwell("runs", "export", "r1", "--store", str(folder / "state"), cwd=folder)
    return [json.loads(line) for line in done.out.splitlines()]


@pytest.mark.acceptance("conductor 23")
@pytest.mark.parametrize(
    ("way", "partial"),
    # Whole and broken texts; as answers, each would fail one of the checks.
    [("signal", json.dumps(ENVELOPE)), ("command", '{"colour": 3}'), ("signal", "It is bl")],
)
def test_neither_check_runs_on_an_answer_that_was_interrupted(tmp_path: Path, way: str, partial: str) -> None:
    pytest.importorskip("openai")
    store = ("--store", str(tmp_path / "state"))
    with stalled_model(partial) as (url, sent, calls):
        (tmp_path / "w.yaml").write_text(FLOW.format(url=url))

        def interrupt() -> None:
            if sent.wait(60) and way == "signal":
                os.kill(os.getpid(), signal.SIGINT)
            elif sent.is_set():
                stopped.append(failwell_process("stop", "r1", *store, cwd=tmp_path))

        stopped: list[Done] = []
        interrupter = Thread(target=interrupt)
        interrupter.start()
        done = failwell("run", "w.yaml", "--run-id", "r1", "--quiet", *store, cwd=tmp_path)
        interrupter.join()

    recorded = events(tmp_path)
    types = [event["type"] for event in recorded]
    text = json.dumps(recorded) + done.out + done.err
    assert types[-1] == "run:cancelled"
    [failed] = [event for event in recorded if event["type"] == "node:failed"]
    assert failed["data"]["failure"]["report"]["kind"].startswith("cancel.")
    assert {"node:completed", "node:retrying"}.isdisjoint(types)
    assert "schema_violation" not in text
    assert "external.colour.unknown" not in text
    assert "mended" not in text
    assert (len(calls), done.code) == (1, 130 if way == "signal" else 1)
    assert [command.code for command in stopped] == ([] if way == "signal" else [0])
