"""The official MCP server: an agent that calls its model and its tool through one session with a server."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from failwell.integrations.mcp import reliability
from tests.sdks.plugins.tool_server import NO_STREAM, RESULT_ERROR, agent

NAME = "MCP server"
PACKAGE = "mcp"
OLDEST = (2,)
ABSENT = {"stalled_stream": NO_STREAM}
TYPES = {"long_delay": RESULT_ERROR}
NO_SHRINK = True
LINE = "server = reliability(MCPServer(name))"


def before(url: str) -> Callable[..., str]:
    return agent(url, _server(), import_module("mcp.client").Client)


def after(url: str, **options: Any) -> Callable[..., str]:
    return agent(url, reliability(_server(), **options), import_module("mcp.client").Client)


def _server() -> Any:
    return import_module("mcp.server.mcpserver").MCPServer("lab", log_level="CRITICAL")
