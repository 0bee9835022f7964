"""FastMCP: `FastMCP("server", middleware=[reliability()])` answers with a typed result where a tool fails.

Example:
    >>> from failwell.integrations.fastmcp import reliability
    >>> def make(fastmcp):
    ...     return fastmcp.FastMCP("server", middleware=[reliability()])
"""

from collections.abc import Callable, Mapping
from typing import Any, Unpack

from failwell.agents.tool_errors import ToolFailure
from failwell.calls.retry_options import RetryParameters
from failwell.errors.missing_extra import need
from failwell.errors.report import ErrorReport
from failwell.integrations._tool_server import ToolEffects, ToolServer
from failwell.store.effects.claims import ClaimStore

__all__ = ["reliability"]


def reliability(
    *,
    on_tool_error: Callable[[ErrorReport], object] | None = None,
    effect_key: Callable[[str, Mapping[str, Any]], str | None] | None = None,
    effect_store: ClaimStore | None = None,
    **parameters: Unpack[RetryParameters],
) -> Any:
    """A middleware for a FastMCP server: the failure of a tool is a result with its kind, retry class and wait.

    A tool whose `readOnlyHint` or `idempotentHint` is true is repeated here as its failures allow. Any other is called
    once, and its result says whether the client may repeat it: not where it may have run. The text of an exception stays in the server, but for that
    of a `ToolError` which the tool raises itself. Do not add FastMCP's `RetryMiddleware` or `ErrorHandlingMiddleware`.

    Args:
        on_tool_error: Called with the report of each failed call. Without it the observers of `failwell.calls.observe` get it, or
            the log.
        effect_key: Called with the name of a tool and its arguments; what makes two calls the same effect, or `None`. A tool
            without `readOnlyHint` and `idempotentHint` then runs once for each key, as with `failwell.effect`.
        effect_store: Where claims of effects are kept; by default the state folder.
        parameters: Those of `failwell.retry`.

    Raises:
        MissingExtra: fastmcp is not installed.
        TypeError: a parameter has the wrong type, or there is none of that name.
        ValueError: a number makes no sense.
    """
    middleware: Any = need("fastmcp.server.middleware").Middleware
    tool_result: Any = need("fastmcp.tools.base").ToolResult
    effects = None if effect_key is None else ToolEffects(effect_key, effect_store)
    server = ToolServer(on_tool_error, parameters, effects=effects)

    class Reliability(middleware):
        """Calls the tools of a server under one retry authority."""

        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            name = context.message.name

            async def annotations() -> object:
                tool = await context.fastmcp_context.fastmcp.get_tool(name)
                return None if tool is None else tool.annotations

            arguments: dict[str, Any] = context.message.arguments or {}
            result = await server.call(name, annotations, lambda: call_next(context), arguments, tool_result)
            if not isinstance(result, ToolFailure):
                return result
            return tool_result(content=result.text, structured_content=result.content, is_error=True)

    return Reliability()
