"""mcp and fastmcp: JSON-RPC codes from a server, and tool errors on the server's own side.

A server's text is foreign text, so the code decides. A tool's error carries what the tool raised.
"""

from failwell.adapters.classification import Classification
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import text_of
from failwell.adapters.vendor_tables import carries, cause_of, envelopes, rows
from failwell.errors.foreign_objects import int_attr, safe_getattr, str_attr

_CODES: dict[int, str] = {
    -32700: "provider.bad_request",
    -32600: "provider.bad_request",
    -32601: "provider.capability_missing",
    -32602: "tool.input_invalid",
    -32603: "tool.failed",
    -32000: "provider.outcome_unknown",
    -32001: "tool.timeout",
    408: "tool.timeout",
    -32002: "tool.not_found",
    -32020: "provider.bad_request",
    -32021: "tool.unavailable",
    -32022: "validation.contract_version_mismatch",
    -32042: "session.interaction_required",
}
_UNKNOWN_TOOL = ("unknown tool", "tool not found")
_SENTENCES = {
    "parse error": -32700,
    "invalid request": -32600,
    "method not found": -32601,
    "invalid params": -32602,
    "internal error": -32603,
}
"""JSON-RPC 2.0, section 5.1."""
_CLOSED, _TIMED_OUT = "connection closed", "timed out while waiting for response"
"""What the SDK says itself, with a code or, in some releases and in logs, without."""


def _rpc_error(error: BaseException) -> Classification:
    holder = safe_getattr(error, "error") or error
    code = int_attr(holder, "code")
    text = (str_attr(holder, "message", limit=200) or text_of(error)[:200]).lower()
    if code is None:
        # Logs and some releases drop the code. The protocol has a sentence for each of its own.
        code = _SENTENCES.get(text, -32000 if text == _CLOSED else None)
    kind = "tool.failed" if code is None else _CODES.get(code, "tool.failed")
    if kind in ("tool.input_invalid", "tool.failed") and text.startswith(_UNKNOWN_TOOL):
        kind = "tool.not_found"
    elif code is None and text.startswith(_TIMED_OUT):
        kind = "tool.timeout"
    return Classification.from_rule(
        kind=kind,
        rule="mcp.MCPError",
        basis="type" if code is None else "code",
        saw=type(error).__name__ if code is None else str(code),
        details={} if code is None else {"jsonrpc_code": code},
    )


def _tool(error: BaseException) -> Classification:
    return carries(
        cause_of(error), f"mcp.{type(error).__name__}", otherwise="tool.failed", saw=type(error).__name__
    )


TABLES: dict[str, Table] = {
    "mcp": {
        "MCPError": _rpc_error,
        "McpError": _rpc_error,
        "ToolError": _tool,
        "ResourceError": _tool,
        "MCPServerError": _tool,
        "FastMCPError": _tool,
        **rows(
            "mcp",
            {
                "validation.input_invalid": "ValidationError InvalidSignature InvalidUriTemplate InvalidRequestState",
                "tool.not_found": "ResourceNotFoundError",
                "tool.denied": "PathEscapeError ResourceSecurityError",
                "tool.unavailable": "ListenNotSupportedError NoBackChannelError",
                "provider.stream_interrupted": "SubscriptionLost ResumptionError",
                "provider.outcome_unknown": "StreamableHTTPError",
                "provider.auth": (
                    "OAuthFlowError OAuthTokenError OAuthRegistrationError AuthenticationError "
                    "AuthorizeError TokenError RegistrationError InvalidScopeError InvalidRedirectUriError"
                ),
                "limit.turn_limit": "InputRequiredRoundsExceededError",
                "provider.output_invalid": "UnexpectedClaimedResult",
            },
        ),
    },
    "fastmcp": {
        "MCPError": _rpc_error,
        **envelopes(
            "fastmcp",
            {
                "tool.failed": "ToolError ResourceError PromptError ClientError",
                "internal.unknown": "FastMCPError",
            },
        ),
        **rows(
            "fastmcp",
            {
                "validation.input_invalid": "ValidationError",
                "validation.config_invalid": "InvalidSignature",
                "tool.not_found": "NotFoundError",
                "tool.unavailable": "DisabledError",
                "tool.denied": "AuthorizationError InsufficientScopeError ResourceSecurityError",
            },
        ),
    },
}
