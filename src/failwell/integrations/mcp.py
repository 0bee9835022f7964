"""MCP: one failure as the result of a tool call, and back; `reliability(server)` does so for all tools of a server.

The model sees the model's view and nothing else. On the way back, what the other side says is evidence: its texts
are kept apart, and a tool cannot say that *our* run was cancelled, halted or out of budget.

Example:
    >>> from failwell import describe
    >>> from failwell.integrations.mcp import from_tool_result, tool_result
    >>> result = tool_result(describe(ConnectionRefusedError(111, "Connection refused")))
    >>> result["isError"], from_tool_result(result).kind
    (True, 'provider.connection')
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, Unpack, cast

from failwell.agents.tool_errors import ToolFailure
from failwell.calls.retry_options import RetryParameters
from failwell.delivery.tool_result import from_tool_result, tool_result
from failwell.errors.foreign_objects import safe_getattr
from failwell.errors.missing_extra import need
from failwell.errors.report import ErrorReport
from failwell.integrations._tool_server import ToolEffects, ToolServer, is_repeatable
from failwell.store.effects.claims import ClaimStore

__all__ = ["from_tool_result", "is_repeatable", "reliability", "tool_result"]

S = TypeVar("S")


def reliability(
    server: S,
    *,
    on_tool_error: Callable[[ErrorReport], object] | None = None,
    effect_key: Callable[[str, Mapping[str, Any]], str | None] | None = None,
    effect_store: ClaimStore | None = None,
    **parameters: Unpack[RetryParameters],
) -> S:
    """The server, whose tools answer with a typed result where they fail: kind, retry class, wait and what to do.

    A tool whose `readOnlyHint` or `idempotentHint` is true is repeated here as its failures allow. Any other is called
    once, and its result says whether the client may repeat it. The text of an exception stays in the server, but for that
    of a `ToolError` which the tool raises itself.

    Args:
        server: An `MCPServer`, or a low-level `Server`, of mcp 2.
        on_tool_error: Called with the report of each failed call. Without it the observers of `failwell.calls.observe` get it, or
            the log.
        effect_key: Called with the name of a tool and its arguments; what makes two calls the same effect, or `None`. A tool
            without `readOnlyHint` and `idempotentHint` then runs once for each key, as with `failwell.effect`.
        effect_store: Where claims of effects are kept; by default the state folder.
        parameters: Those of `failwell.retry`.

    Raises:
        MissingExtra: mcp is not installed.
        TypeError: it is no server of mcp 2, a parameter has the wrong type, or there is none of that name.
        ValueError: a number makes no sense.
    """
    effects = None if effect_key is None else ToolEffects(effect_key, effect_store)
    tools = ToolServer(on_tool_error, parameters, effects=effects)
    own: Any = server
    if not isinstance(safe_getattr(own, "middleware"), list):
        raise TypeError(
            f"`reliability` takes an `MCPServer` or a `Server` of mcp 2, not {type(server).__name__}"
        )
    call_tool = safe_getattr(own, "call_tool")
    if callable(call_tool):
        own.call_tool = _calls_of_server(own, call_tool, tools)
    else:
        own.middleware.append(_calls_of_handler(own, tools))
    return server


def _calls_of_server(server: Any, call_tool: Any, tools: ToolServer) -> Any:
    async def call(name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        async def annotations() -> object:
            return next((tool.annotations for tool in await server.list_tools() if tool.name == name), None)

        result_type: Any = need("mcp.types").CallToolResult
        result = await tools.call(
            name, annotations, lambda: call_tool(name, arguments, context), arguments, result_type
        )
        return _call_result(result) if isinstance(result, ToolFailure) else result

    return call


def _calls_of_handler(server: Any, tools: ToolServer) -> Any:
    """A middleware for a low-level server, whose handler raises what its tools raise."""

    async def middleware(ctx: Any, call_next: Any) -> Any:
        if ctx.method != "tools/call" or ctx.request_id is None:
            return await call_next(ctx)
        params = cast("Mapping[str, Any]", ctx.params or {})
        name = str(params.get("name", ""))

        async def annotations() -> object:
            entry = server.get_request_handler("tools/list")
            listed = None if entry is None else await entry.handler(ctx, entry.params_type())
            return next(
                (tool.annotations for tool in getattr(listed, "tools", ()) if tool.name == name), None
            )

        arguments = cast("Mapping[str, Any]", params.get("arguments") or {})
        result_type: Any = need("mcp.types").CallToolResult
        result = await tools.call(name, annotations, lambda: call_next(ctx), arguments, result_type)
        return _call_result(result) if isinstance(result, ToolFailure) else result

    return middleware


def _call_result(failure: ToolFailure) -> Any:
    types: Any = need("mcp.types")
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=failure.text)],
        structured_content=failure.content,
        is_error=True,
    )
