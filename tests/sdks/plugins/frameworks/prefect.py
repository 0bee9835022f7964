"""Prefect: a task in a flow, with a server of its own."""

import logging
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from typing import Any

from failwell.integrations.prefect import reliability
from tests.sdks.plugins.tasks import NO_STREAM, NO_TOOLS, call_model

NAME = "Prefect"
PACKAGE = "prefect"
LINE = "@reliability(task)"
WAITS_ITSELF = True
ABSENT = {"stalled_stream": NO_STREAM, "tool_error": NO_TOOLS}
TYPES = {"long_delay": "TaskFailed"}


def before(url: str) -> Callable[..., str]:
    return _caller(url, lambda task: task(retries=3, retry_delay_seconds=1))


def after(url: str, **options: Any) -> Callable[..., str]:
    return _caller(url, lambda task: reliability(task, **options))


_server = ExitStack()


@cache
def start_server() -> None:
    """A server with a database of its own, until `stop_server`."""
    utilities: Any = import_module("prefect.testing.utilities")
    _server.enter_context(utilities.prefect_test_harness(server_startup_timeout=60))


def stop_server() -> None:
    """Stop the server, if one was started. A process of pytest-xdist may end without what `atexit` has."""
    # It logs its end.
    logging.disable(logging.CRITICAL)
    _server.close()
    logging.disable(logging.NOTSET)


def _caller(url: str, decorator: Callable[[Any], Callable[..., Any]]) -> Callable[..., str]:
    start_server()
    prefect: Any = import_module("prefect")
    task = decorator(prefect.task)(call_model)

    @prefect.flow
    def lab_flow(address: str) -> str:
        return task(address)

    def ask(stream: bool = False) -> str:
        logging.disable(logging.CRITICAL)
        try:
            return lab_flow(url)
        finally:
            logging.disable(logging.NOTSET)

    return ask
