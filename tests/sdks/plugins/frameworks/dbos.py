"""DBOS: a step of a workflow, with its database in SQLite."""

import logging
import tempfile
from collections.abc import Callable
from importlib import import_module
from typing import Any

from failwell.integrations.dbos import reliability
from tests.sdks.plugins.tasks import NO_STREAM, NO_TOOLS, call_model

NAME = "DBOS"
PACKAGE = "dbos"
LINE = "@reliability(DBOS.step())"
WAITS_ITSELF = True
ABSENT = {
    "stalled_stream": NO_STREAM,
    "tool_error": NO_TOOLS,
    "long_delay": "the workflow sleeps durably for the hour; `tests/sdks/engines/test_task_plugins.py` looks at its record",
}


def before(url: str) -> Callable[..., str]:
    return _caller(url, lambda engine: engine.step(retries_allowed=True))


def after(url: str, **options: Any) -> Callable[..., str]:
    return _caller(url, lambda engine: reliability(engine.step(), **options))


def _caller(url: str, decorator: Callable[[Any], Callable[..., Any]]) -> Callable[..., str]:
    engine: Any = import_module("dbos").DBOS

    def ask(stream: bool = False) -> str:
        logging.disable(logging.CRITICAL)
        with tempfile.TemporaryDirectory() as folder:
            database = f"sqlite:///{folder}/dbos.sqlite"
            running = engine(
                config={"name": "lab", "system_database_url": database, "run_admin_server": False}
            )
            step = decorator(engine)(call_model)

            @engine.workflow()
            def lab_flow(address: str) -> str:
                return step(address)

            try:
                engine.launch()
                return lab_flow(url)
            finally:
                running.destroy(destroy_registry=True)
                logging.disable(logging.NOTSET)

    return ask
