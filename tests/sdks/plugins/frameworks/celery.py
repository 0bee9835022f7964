"""Celery: a task in a real worker, with its broker in memory."""

import logging
from collections.abc import Callable
from importlib import import_module
from typing import Any

from failwell.integrations.celery import reliability
from tests.sdks.plugins.tasks import NO_STREAM, NO_TOOLS, call_model

NAME = "Celery"
PACKAGE = "celery"
LINE = "app = reliability(Celery(...))"
WAITS_ITSELF = True
ABSENT = {
    "stalled_stream": NO_STREAM,
    "tool_error": NO_TOOLS,
    "long_delay": "the message waits in the queue for the hour; `tests/integrations/test_celery_plugin.py` looks at it there",
}


def before(url: str) -> Callable[..., str]:
    return _caller(url, _app(), autoretry_for=(Exception,), retry_backoff=True, retry_jitter=False)


def after(url: str, **options: Any) -> Callable[..., str]:
    return _caller(url, reliability(_app(), **options))


def _app() -> Any:
    celery: Any = import_module("celery")
    return celery.Celery("lab", broker="memory://", backend="cache+memory://", set_as_current=False)


def _caller(url: str, app: Any, **parameters: Any) -> Callable[..., str]:
    workers: Any = import_module("celery.contrib.testing.worker")
    task = app.task(name="lab.call", shared=False, **parameters)(call_model)

    def ask(stream: bool = False) -> str:
        logging.disable(logging.CRITICAL)
        try:
            with workers.start_worker(app, pool="solo", perform_ping_check=False, shutdown_timeout=30):
                return task.delay(url).get(timeout=120, interval=0.02)
        finally:
            logging.disable(logging.NOTSET)

    return ask
