"""claude-agent-sdk: the command-line program behind it, its exit, and the result it reported before that.

An error result names the status of the failing call, or the limit that ended the run. Its prose is read as a
provider's words are, and not kept.
"""

from typing import Any, cast

from failwell.adapters.classification import Classification
from failwell.adapters.classify import classify
from failwell.adapters.facts import Facts
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import add_text_facts, text_of
from failwell.adapters.vendor_tables import carries, inner_of, rows
from failwell.adapters.vendors.process import read_exit
from failwell.errors.foreign_objects import int_attr, plain_str, safe_getattr, str_attr

_LIBRARY = "claude_agent_sdk"
_LONGEST = 4_000
_REASONS: dict[str, str] = {
    "error_max_turns": "limit.turn_limit",
    "max_turns": "limit.turn_limit",
    "error_max_budget_usd": "limit.budget_exceeded",
    "max_budget_usd": "limit.budget_exceeded",
    "error_max_structured_output_retries": "provider.output_invalid",
    "aborted_streaming": "cancel.turn",
    "aborted_tools": "cancel.turn",
    "prompt_too_long": "provider.context_too_long",
    "authentication_failed": "provider.auth",
    "billing_error": "provider.quota_exhausted",
    "rate_limit": "provider.rate_limited",
    "invalid_request": "provider.bad_request",
    "server_error": "provider.unavailable",
}
"""What the program gives as the subtype or the reason of an ended run."""
_STATES: dict[str, str] = {
    "not connected": "internal.bug",
    "processtransport is not ready": "internal.bug",
    "cannot write to": "worker.crashed",
    "failed to load settings": "validation.config_invalid",
    "working directory does not exist": "validation.path_not_found",
}
"""How a message about the connection begins → kind."""


def read_result(result: object) -> Classification:
    """The reading of an error result: a `ResultError`, or a `ResultMessage` whose `is_error` is true."""
    name = type(result).__name__
    reasons = (str_attr(result, "terminal_reason"), str_attr(result, "subtype"))
    known = next((reason for reason in reasons if reason in _REASONS), None)
    status = int_attr(result, "api_error_status")
    if known is not None and status is None:
        return Classification.from_rule(
            kind=_REASONS[known], rule=f"{_LIBRARY}.{name}", basis="code", saw=known
        )
    return _said(
        status, [plain_str(safe_getattr(result, "result")), *_texts(result)], f"{_LIBRARY}.{name}"
    ) or Classification.from_rule(kind="provider.unknown", rule=f"{_LIBRARY}.{name}", saw=name)


def _texts(result: object) -> list[str | None]:
    errors: Any = safe_getattr(result, "errors")
    return [plain_str(text) for text in cast("list[object]", errors)[:8]] if isinstance(errors, list) else []


def _said(status: int | None, texts: list[str | None], rule: str) -> Classification | None:
    """What the status and the words of the failing call say, as a provider's reply would."""
    text = "\n".join(text for text in texts if text)[:_LONGEST]
    facts = Facts(provider="anthropic", sdk=_LIBRARY, status=status, message=text)
    if status is None:
        add_text_facts(facts)
    reading = classify(facts)
    return None if reading.kind == "provider.unknown" else reading.by(rule, reading.kind)


def _ended(error: BaseException) -> Classification:
    """The program ended: what it printed last says more than its exit code, unless a signal ended it."""
    code = int_attr(error, "exit_code")
    by_exit = None if code is None else read_exit(code)
    if by_exit is not None and by_exit.kind != "internal.script_error":
        return by_exit
    printed = _said(None, [plain_str(safe_getattr(error, "stderr"))], f"{_LIBRARY}.ProcessError")
    inner = inner_of(error)
    return printed or by_exit or carries(inner, f"{_LIBRARY}.ProcessError", otherwise="worker.crashed")


def _connection(error: BaseException) -> Classification:
    text = text_of(error).lower()
    kind = next((kind for start, kind in _STATES.items() if text.startswith(start)), "worker.start_failed")
    return carries(
        inner_of(error), f"{_LIBRARY}.CLIConnectionError", otherwise=kind, saw="CLIConnectionError"
    )


def _any(error: BaseException) -> Classification:
    return carries(inner_of(error), f"{_LIBRARY}.ClaudeSDKError", otherwise="internal.unknown")


TABLES: dict[str, Table] = {
    _LIBRARY: {
        "ResultError": read_result,
        "ProcessError": _ended,
        "CLIConnectionError": _connection,
        "ClaudeSDKError": _any,
        **rows(_LIBRARY, {
            "extension.dependency_missing": "CLINotFoundError",
            "tool.output_malformed": "CLIJSONDecodeError MessageParseError",
        }),
    }
}  # fmt: skip
