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
from dataclasses import replace
from datetime import UTC, datetime
from json import loads
from typing import Any, TypeVar, Unpack, cast

from failwell._extras import need
from failwell.adapters.safe_getattr import safe_getattr
from failwell.delivery.plain_text import finite, json_text
from failwell.fault.classes import ToolTerminal
from failwell.fault.registry import find_kind, is_kind
from failwell.integrations._model_calls import PluginOptions
from failwell.integrations._tool_calls import ToolFailure
from failwell.integrations._tool_server import ToolEffects, ToolServer, is_repeatable
from failwell.report.describe import describe, new_id
from failwell.report.identity import fingerprint
from failwell.report.record import SCHEMA, ErrorReport, Evidence
from failwell.report.redact import redact_value
from failwell.report.saved_failures.peer import claimed_kind, report_of_claim
from failwell.runtime.retry_options import RetryOptions
from failwell.shared.claims import ClaimStore

__all__ = ["from_tool_result", "is_repeatable", "reliability", "tool_result"]

S = TypeVar("S")

_ERROR_TYPE = "ToolResult"
_MOST_BLOCKS = 20
_LONGEST_TEXT = 100_000


def reliability(
    server: S,
    *,
    options: RetryOptions | None = None,
    on_tool_error: Callable[[ErrorReport], object] | None = None,
    effect_key: Callable[[str, Mapping[str, Any]], str | None] | None = None,
    effect_store: ClaimStore | None = None,
    **parameters: Unpack[PluginOptions],
) -> S:
    """The server, whose tools answer with a typed result where they fail: kind, retry class, wait and what to do.

    A tool whose `readOnlyHint` or `idempotentHint` is true is repeated here as its failures allow. Any other is called
    once, and its result says whether the client may repeat it. The text of an exception stays in the server, but for that
    of a `ToolError` which the tool raises itself.

    Args:
        server: An `MCPServer`, or a low-level `Server`, of mcp 2.
        options: All parameters as one value. A parameter beside it wins.
        on_tool_error: Called with the report of each failed call. Without it the observers of `failwell.observe` get it, or
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
    tools = ToolServer(options, on_tool_error, parameters, effects=effects)
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


def tool_result(report: ErrorReport) -> dict[str, Any]:
    """The result to return from an MCP tool: the same JSON as text and as structured content."""
    seen = finite(report.view("model"))
    return {
        "content": [{"type": "text", "text": json_text(seen)}],
        "structuredContent": seen,
        "isError": True,
    }


def from_tool_result(result: object, *, trusted: bool = False) -> ErrorReport | None:
    """The report behind a tool's result, or `None` when the call did not fail. Never raises.

    A kind that the result names counts if it is registered here and speaks of a provider, a tool or the input;
    any other failure is `tool.failed`. Texts of the tool are evidence: they are masked, cut and kept in
    `details["peer"]`, and never reach a model as ours.

    Args:
        result: The JSON, or the object that an MCP client made of it.
        trusted: Whether the server is your own. Then the fields, the context and kinds that are not registered here are
            taken over, masked and cut. Kinds about its own run never are.
    """
    if _part(result, "is_error", "isError") is not True:
        return None
    return replace(_read_result(result, trusted=trusted), origin="tool")


def _read_result(result: object, *, trusted: bool) -> ErrorReport:
    seen = _seen(result)
    if seen is None:
        report = describe(ToolTerminal(kind="tool.failed"))
        return replace(
            report, error_type=_ERROR_TYPE, evidence=(Evidence(rule="mcp.is_error", basis="declared"),)
        )
    kind = claimed_kind(seen.get("kind"), trusted=trusted)
    if kind is None:
        return report_of_claim("tool.failed", seen, error_type=_ERROR_TYPE, rule="mcp.structured_content")
    if trusted:
        return _ours(kind, seen)
    return report_of_claim(kind, seen, error_type=_ERROR_TYPE, rule="mcp.structured_content")


def _ours(kind: str, seen: Mapping[str, Any]) -> ErrorReport:
    known = find_kind(kind)
    title = kind if known is None else known.title
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "id": new_id(),
        "kind": kind,
        "category": seen.get("category"),
        "certainty": known.certainty.value if known else "unknown",
        "blame": known.blame.value if known else "tool",
        "retryable": seen.get("retryable"),
        "message": known.summary if known else title,
        "title": title,
        "error_type": _ERROR_TYPE,
        "user_action": {"kind": seen.get("action"), "detail": known.advice if known else ""},
        "fingerprint": fingerprint(kind, _ERROR_TYPE),
        "occurred_at": datetime.now(UTC).isoformat(),
        "not_before": {"after": seen.get("wait_seconds"), "source": "tool result"},
        "fields_invalid": redact_value(seen.get("fields_invalid")),
        # A server shows a model only the fields that it may see.
        "caller_facing": bool(seen.get("fields_invalid")),
        "details": _context(seen.get("context"), known.model_keys if known else ()),
        "evidence": [{"rule": "mcp.structured_content", "basis": "declared", "saw": kind}],
    }
    return ErrorReport.read(record)


def _context(context: object, allowed: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(context, Mapping):
        return {}
    held = cast("Mapping[str, Any]", context)
    return redact_value({key: held[key] for key in allowed if key in held})


def _seen(result: object) -> Mapping[str, Any] | None:
    """The model's view in the result, wherever a client or a proxy left it."""
    if _is_view(structured := _part(result, "structured_content", "structuredContent")):
        return structured
    content = _part(result, "content")
    for block in cast("list[object]", content)[:_MOST_BLOCKS] if isinstance(content, list) else []:
        text = _part(block, "text")
        try:
            parsed: object = loads(text) if isinstance(text, str) and len(text) <= _LONGEST_TEXT else None
        except (ValueError, RecursionError):
            # Ordinary prose, as most tools answer.
            continue
        if _is_view(parsed):
            return cast("Mapping[str, Any]", parsed)
    return None


def _is_view(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    seen = cast("Mapping[str, Any]", value)
    return is_kind(seen.get("kind")) and {"category", "retryable"} <= seen.keys()


def _part(of: object, *names: str) -> Any:
    """A part of a result: by the name that mcp 2 gives it, or by its name in the protocol, which mcp 2 warns about."""
    for name in names:
        part = cast("Mapping[str, Any]", of).get(name) if isinstance(of, Mapping) else safe_getattr(of, name)
        if part is not None:
            return part
    return None
