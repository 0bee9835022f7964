"""FastMCP: an agent that calls its model and its tool through one session with a server."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from failwell.integrations.fastmcp import reliability
from tests.sdks.plugins.tool_server import NO_STREAM, RESULT_ERROR, agent

NAME = "FastMCP"
PACKAGE = "fastmcp"
ABSENT = {"stalled_stream": NO_STREAM}
TYPES = {"long_delay": RESULT_ERROR}
NO_SHRINK = True
LINE = "FastMCP(name, middleware=[reliability()])"


def before(url: str) -> Callable[..., str]:
    return _agent(url)


def after(url: str, **options: Any) -> Callable[..., str]:
    return _agent(url, middleware=[reliability(**options)])


def _agent(url: str, **parameters: Any) -> Callable[..., str]:
    library: Any = import_module("fastmcp")
    return agent(url, library.FastMCP("lab", **parameters), library.Client, raise_on_error=False)
