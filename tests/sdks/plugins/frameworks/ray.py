"""Ray: a task in a worker of a local cluster."""

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from failwell.integrations.ray import reliability
from tests.sdks.plugins.tasks import NO_STREAM, NO_TOOLS, call_model

NAME = "Ray"
PACKAGE = "ray"
LINE = "@reliability(ray.remote)"
WAITS_ITSELF = True
UNWATCHED = True
ABSENT = {"stalled_stream": NO_STREAM, "tool_error": NO_TOOLS}
TYPES = {"long_delay": "RayTaskError(TaskFailed)"}


def before(url: str) -> Callable[..., str]:
    return _caller(url, lambda ray: ray.remote(retry_exceptions=True, max_retries=3))


def after(url: str, **options: Any) -> Callable[..., str]:
    # A watcher belongs to this process, and the loop runs in another.
    options.pop("watcher", None)
    return _caller(url, lambda ray: reliability(ray.remote, **options))


@cache
def _cluster() -> Any:
    ray: Any = import_module("ray")
    # Its sockets need a short path.
    folder = tempfile.mkdtemp(prefix="ray")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, _temp_dir=folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(ray.shutdown)
    return ray


def _caller(url: str, decorator: Callable[[Any], Callable[..., Any]]) -> Callable[..., str]:
    ray = _cluster()
    task = decorator(ray)(call_model)

    def ask(stream: bool = False) -> str:
        return ray.get(task.remote(url))

    return ask
