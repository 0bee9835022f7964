"""openai-agents: limits, guardrails, tools and its sandboxes. A provider's failure arrives as the SDK's own exception.

`run_data` holds the conversation; it is never read. A sandbox error says itself whether a repeat may succeed.
"""

from dataclasses import replace

from failwell.adapters.classification import Classification
from failwell.adapters.registry import Table
from failwell.adapters.vendor_tables import carries, envelopes, inner_of, rows
from failwell.adapters.vendors.process import read_exit
from failwell.errors.axes import Certainty
from failwell.errors.foreign_objects import int_attr, safe_getattr, str_attr

_SANDBOX: dict[str, str] = {
    "APPLY_PATCH": "tool.input_invalid",
    "EXEC_NONZERO": "internal.script_error",
    "EXEC_TIMEOUT": "tool.timeout",
    "EXEC_TRANSPORT": "provider.outcome_unknown",
    "EXPOSED_PORT": "tool.unavailable",
    "GIT_MISSING": "extension.dependency_missing",
    "GIT_SUBPATH": "validation.path_not_found",
    "GIT": "tool.failed",
    "INVALID": "validation.config_invalid",
    "LOCAL_CHECKSUM": "validation.input_invalid",
    "LOCAL": "internal.file_unavailable",
    "MOUNT_MISSING": "extension.dependency_missing",
    "MOUNT_CONFIG": "validation.config_invalid",
    "MOUNT": "tool.failed",
    "PTY_SESSION": "tool.input_invalid",
    "SANDBOX_CONFIG": "validation.config_invalid",
    "SKILLS_CONFIG": "validation.config_invalid",
    "SNAPSHOT_NOT_RESTORABLE": "session.no_snapshot",
    "SNAPSHOT": "session.store_unavailable",
    "WORKSPACE_READ_NOT_FOUND": "validation.path_not_found",
    "WORKSPACE_ROOT_NOT_FOUND": "validation.path_not_found",
    "WORKSPACE_WRITE_TYPE": "validation.path_wrong_type",
    "WORKSPACE_START": "worker.start_failed",
    "WORKSPACE_STOP": "extension.lifecycle_failure",
    "WORKSPACE": "internal.io_error",
}
"""The beginning of a sandbox's error code → kind; the first that fits decides."""


def _sandbox(error: BaseException) -> Classification:
    exit_code = int_attr(error, "exit_code")
    if exit_code is not None:
        return read_exit(exit_code)
    code = (str_attr(safe_getattr(error, "error_code"), "name") or "").upper()
    kind = next((kind for start, kind in _SANDBOX.items() if code.startswith(start)), None)
    repeat = safe_getattr(error, "retryable")
    rule = f"agents.{type(error).__name__}"
    if kind is None:
        return carries(inner_of(error), rule, otherwise="internal.sandbox_error", saw=type(error).__name__)
    reading = Classification.from_rule(kind=kind, rule=rule, basis="code", saw=code)
    return replace(reading, retryable=False) if repeat is False else reading


def _mistake(error: BaseException) -> Classification:
    """A mistake in how an agent was put together; the same class carries what a tool raised."""
    inner = inner_of(error)
    kind = "validation.config_invalid" if inner is None else "tool.failed"
    return carries(inner, "agents.UserError", otherwise=kind, saw="UserError")


TABLES: dict[str, Table] = {
    "agents": {
        "SandboxError": _sandbox,
        "UserError": _mistake,
        **envelopes("agents", {"internal.unknown": "AgentsException"}),
        **rows("agents", {
            "limit.turn_limit": "MaxTurnsExceeded",
            "provider.output_invalid": "ModelBehaviorError",
            "provider.outcome_unknown": "ModelTimeoutError",
            "provider.connection": "STTWebsocketConnectionError",
            "tool.timeout": "ToolTimeoutError",
            "tool.denied": "ToolInputGuardrailTripwireTriggered ToolOutputGuardrailTripwireTriggered",
            "cancel.tool": "MCPToolCancellationError",
            "provider.content_refused": "InputGuardrailTripwireTriggered",
        }),
        **rows("agents", {
            "provider.content_refused": "ModelRefusalError OutputGuardrailTripwireTriggered",
        }, certainty=Certainty.PARTIAL),
    }
}  # fmt: skip
