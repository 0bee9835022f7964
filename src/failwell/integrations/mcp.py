"""One failure as the result of an MCP tool call, and back.

The model sees the model's view and nothing else. On the way back, prose from the other side is
not taken for a message, and a tool cannot say that *our* run was cancelled, halted or out of budget.

Example:
    >>> from failwell import describe
    >>> from failwell.integrations.mcp import from_tool_result, tool_result
    >>> result = tool_result(describe(ConnectionRefusedError(111, "Connection refused")))
    >>> result["isError"], from_tool_result(result).kind
    (True, 'provider.connection')
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from json import loads
from typing import Any, cast

from failwell.delivery.plain_text import finite, json_text, text_or
from failwell.fault.classes import ToolTerminal
from failwell.fault.registry import find_kind, is_kind
from failwell.report.describe import describe, new_id
from failwell.report.identity import fingerprint
from failwell.report.record import SCHEMA, ErrorReport, Evidence
from failwell.report.redact import redact_text, redact_value

__all__ = ["from_tool_result", "tool_result"]

OURS_ALONE = ("cancel.", "halt.", "limit.", "retry.", "session.", "subworkflow.")
"""Kinds about the run that made the call; no answer may claim one."""
_ERROR_TYPE = "ToolResult"


def tool_result(report: ErrorReport) -> dict[str, Any]:
    """The result to return from the tool: the same JSON as text and as structured content."""
    seen = finite(report.view("model"))
    return {
        "content": [{"type": "text", "text": json_text(seen)}],
        "structuredContent": seen,
        "isError": True,
    }


def from_tool_result(result: object) -> ErrorReport | None:
    """The report behind a tool's result, or `None` when the call did not fail. Never raises.

    `result` may be the JSON or the object that an MCP client made of it.
    """
    if _part(result, "isError") is not True:
        return None
    seen = _seen(result)
    if seen is None:
        report = describe(ToolTerminal(kind="tool.failed"))
        return replace(
            report,
            error_type=_ERROR_TYPE,
            evidence=(Evidence(rule="mcp.is_error", basis="declared"),),
        )
    return _read(seen)


def _read(seen: Mapping[str, Any]) -> ErrorReport:
    kind = str(seen["kind"])
    known = find_kind(kind)
    title = known.title if known else redact_text(text_or(seen.get("title"), "") or kind, 200)
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
    if _is_ours(structured := _part(result, "structuredContent")):
        return structured
    content = _part(result, "content")
    for block in cast("list[object]", content) if isinstance(content, list) else []:
        text = _part(block, "text")
        try:
            parsed: object = loads(text) if isinstance(text, str) else None
        except (ValueError, RecursionError):
            # Ordinary prose, as most tools answer.
            continue
        if _is_ours(parsed):
            return cast("Mapping[str, Any]", parsed)
    return None


def _is_ours(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    seen = cast("Mapping[str, Any]", value)
    kind = seen.get("kind")
    if not isinstance(kind, str) or not is_kind(kind) or kind.startswith(OURS_ALONE):
        return False
    return {"category", "retryable"} <= seen.keys()


def _part(of: object, name: str) -> Any:
    if isinstance(of, Mapping):
        return cast("Mapping[str, Any]", of).get(name)
    return getattr(of, name, None)
