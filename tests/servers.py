"""Real servers on loopback for the tests of HTTP services, and what is logged while they run."""

import logging
import socket
from collections.abc import Generator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import uvicorn
from werkzeug.serving import make_server


@contextmanager
def asgi_server(app: Any) -> Generator[str]:
    """The address of `app` behind uvicorn on a free port."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    thread = Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        # The socket listens already, so a first call waits in its queue until the server is up.
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()
    assert not thread.is_alive()


@contextmanager
def wsgi_server(app: Any) -> Generator[str]:
    """The address of `app` behind werkzeug's server on a free port."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(20)
        server.server_close()
    assert not thread.is_alive()


class Records(logging.Handler):
    """Every record of a warning or worse, from any logger, and its text as a plain formatter prints it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))
        self.records: list[logging.LogRecord] = []
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        self.texts.append(self.format(record))

    def take(self) -> list[str]:
        """The texts since the last call."""
        texts = self.texts[:]
        self.records.clear()
        self.texts.clear()
        return texts


@contextmanager
def recorded() -> Generator[Records]:
    """What is logged inside the block."""
    records = Records()
    root = logging.getLogger()
    root.addHandler(records)
    try:
        yield records
    finally:
        root.removeHandler(records)
