"""One failure as the result of a tool call of MCP, and back.

The model sees the model's view and nothing else. On the way back, what the other side says is evidence: its texts
are kept apart, and a tool cannot say that *our* run was cancelled, halted or out of budget.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from json import loads
from typing import Any, cast

from failwell.adapters.describe import describe, new_id
from failwell.adapters.log_records.peer import claimed_kind, report_of_claim
from failwell.delivery.plain_text import finite, json_text
from failwell.errors.faults import ToolTerminal
from failwell.errors.foreign_objects import safe_getattr
from failwell.errors.identity import fingerprint
from failwell.errors.kind_registry import find_kind, is_kind
from failwell.errors.redact import redact_value
from failwell.errors.report import SCHEMA, ErrorReport, Evidence

_ERROR_TYPE = "ToolResult"
_MOST_BLOCKS = 20
_LONGEST_TEXT = 100_000


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
