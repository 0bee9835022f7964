"""Loopback servers that answer as a store documents it: HTTP with any status and body, and raw sockets."""

import json
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def answering(status: int, body: Any, headers: dict[str, str] | None = None) -> Generator[str]:
    """The address of a server that answers every request with `status` and `body`."""
    payload = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    kind = "text/plain" if isinstance(body, str) else "application/json"
    with routing(lambda _path: (status, payload, {"content-type": kind, **(headers or {})})) as address:
        yield address


Reply = tuple[int, bytes, dict[str, str]]


@contextmanager
def routing(route: Callable[[str], Reply]) -> Generator[str]:
    """The address of a server that answers each path as `route` says."""

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            status, payload, headers = route(self.path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(payload)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(payload)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _answer

        def log_message(self, *_args: Any, **_values: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def speaking(serve: Callable[[socket.socket], None]) -> Generator[int]:
    """The port of a server that handles each connection with `serve`."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(0.1)
    ended = threading.Event()
    workers: list[threading.Thread] = []

    def handle(line: socket.socket) -> None:
        with line:
            line.settimeout(5)
            try:
                serve(line)
            except OSError:
                return

    def accept() -> None:
        while not ended.is_set():
            try:
                line, _ = listening.accept()
            except TimeoutError:
                continue
            worker = threading.Thread(target=handle, args=(line,), daemon=True)
            worker.start()
            workers.append(worker)

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        ended.set()
        thread.join()
        listening.close()
        for worker in workers:
            worker.join(6)


def read_exactly(line: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = line.recv(size - len(data))
        if not piece:
            raise ConnectionResetError
        data += piece
    return data
