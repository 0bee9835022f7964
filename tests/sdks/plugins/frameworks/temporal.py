"""Temporal: an activity of a workflow, with a development server."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from importlib import import_module
from typing import Any
from uuid import uuid4

from failwell.temporal.plugin import reliability
from tests.sdks.plugins.tasks import NO_STREAM, NO_TOOLS, call_model
from tests.temporal_server import server, task_queue

NAME = "Temporal"
PACKAGE = "temporalio"
LINE = "Client.connect(address, plugins=[reliability()])"
WAITS_ITSELF = True
ABSENT = {
    "stalled_stream": NO_STREAM,
    "tool_error": NO_TOOLS,
    "long_delay": "the workflow waits with a timer for the hour; `tests/integrations/test_temporal_plugin.py` looks at its history",
}


def before(url: str) -> Callable[..., str]:
    # Without a limit, the server repeats for ever.
    return _caller(url, attempts=4, plugins=[])


def after(url: str, **options: Any) -> Callable[..., str]:
    return _caller(url, attempts=0, plugins=[reliability(**options)])


def _caller(url: str, *, attempts: int, plugins: list[Any]) -> Callable[..., str]:
    workflow: Any = import_module("temporalio.workflow")
    activity: Any = import_module("temporalio.activity")
    policies: Any = import_module("temporalio.common")
    act = activity.defn(name="call_model")(_copy())
    limits: dict[str, Any] = {"start_to_close_timeout": timedelta(seconds=60)}
    if attempts:
        limits["retry_policy"] = policies.RetryPolicy(maximum_attempts=attempts)

    async def run(_flow: object, address: str) -> str:
        return await workflow.execute_activity("call_model", address, result_type=str, **limits)

    run.__qualname__ = "Lab.run"
    flow = workflow.defn(name="Lab", sandboxed=False)(type("Lab", (), {"run": workflow.run(run)}))

    async def main() -> str:
        clients: Any = import_module("temporalio.client")
        workers: Any = import_module("temporalio.worker")
        client = await clients.Client.connect(server().address, plugins=plugins)
        queue = task_queue()
        with ThreadPoolExecutor(2) as threads:
            async with workers.Worker(
                client, task_queue=queue, workflows=[flow], activities=[act], activity_executor=threads
            ):
                return await client.execute_workflow("Lab", url, id=uuid4().hex, task_queue=queue)

    def ask(stream: bool = False) -> str:
        logging.disable(logging.CRITICAL)
        try:
            return asyncio.run(main())
        finally:
            logging.disable(logging.NOTSET)

    return ask


def _copy() -> Callable[[str], str]:
    """A function of its own for each definition: Temporal marks it, and refuses to mark it twice."""

    def call(address: str) -> str:
        return call_model(address)

    return call
