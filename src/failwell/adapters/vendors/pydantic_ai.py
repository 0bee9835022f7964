"""pydantic-ai: its own categories, with the SDK's exception as the cause.

A model error knows its status, body, codes, headers, phase and whether the stream had begun; all of it
is judged by the same rules as the SDK's own exception would be. A fallback group is as bad as its
worst member, like any group.
"""

import re

from failwell.adapters.classification import Classification, Phase
from failwell.adapters.facts import Facts
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import adapter, gather
from failwell.adapters.traceback_frames import innermost
from failwell.adapters.vendor_tables import bad_answer, cause_of, rows
from failwell.errors.axes import Certainty
from failwell.errors.foreign_objects import safe_getattr, str_attr
from failwell.errors.headers import lower_headers
from failwell.errors.lazy_regex import lazy_regex

_PHASES: dict[str, Phase] = {"pool": "pool", "connect": "connect", "write": "write", "read": "read"}
_CODES = {
    "ModelQuotaExceededError": "quota_exhausted",
    "ModelRateLimitError": "rate_limit_error",
    "ModelOverloadedError": "overloaded_error",
    "ModelUnavailableError": "service_unavailable",
    "ModelContextWindowExceededError": "context_length_exceeded",
    "ModelNotFoundError": "not_found_error",
    "ModelServerError": "server_error",
}
_UNREADABLE = frozenset(
    {
        "JSONDecodeError",
        "UnicodeDecodeError",
        "ValidationError",
        "UnknownApiResponseError",
        "ChecksumMismatch",
        "InvalidHeadersLength",
        "InvalidPayloadLength",
    }
)
"""Causes that say that the reply could not be read, as the SDKs raise them."""
_GUESSES = frozenset({"provider.bad_request", "provider.stream_interrupted", "provider.unknown"})
"""What the words of a failed validation look like. A reply that holds an error is read as that error."""
_KEY = lazy_regex(r"api[_ ]key|credential|token", re.IGNORECASE)


def _refine(error: BaseException, facts: Facts) -> None:
    cause = cause_of(error)
    if cause is not None:
        _add(facts, gather(cause, None, "pydantic_ai"))
    own = [str_attr(error, name) for name in ("provider_error_code", "provider_error_type")]
    class_code = next((_CODES[cls.__name__] for cls in type(error).__mro__ if cls.__name__ in _CODES), None)
    codes = [*(code.lower() for code in own if code), *facts.codes, *([class_code] if class_code else [])]
    facts.codes = tuple(dict.fromkeys(codes))
    facts.in_stream = facts.in_stream or safe_getattr(error, "in_stream") is True
    facts.model = str_attr(error, "model_name")
    phase = _PHASES.get(str(safe_getattr(error, "phase")))
    facts.phase = facts.phase or phase
    wait = safe_getattr(error, "retry_after")
    if isinstance(wait, int | float) and not isinstance(wait, bool) and "retry-after" not in facts.headers:
        facts.headers = {**facts.headers, "retry-after": f"{wait:g}"}


def _add(facts: Facts, below: Facts) -> None:
    """Fill what pydantic-ai did not keep with what the SDK's exception knows."""
    facts.headers = facts.headers or lower_headers(below.headers)
    facts.codes = (*facts.codes, *below.codes)
    facts.in_stream = facts.in_stream or below.in_stream
    facts.body = facts.body or below.body
    facts.phase = facts.phase or below.phase
    facts.request_id = facts.request_id or below.request_id
    facts.cause_bug = facts.cause_bug or below.cause_bug


_reply = adapter(None, "pydantic_ai", _refine)


def _model(error: BaseException) -> Classification:
    cause = cause_of(error)
    name = "" if cause is None else type(cause).__name__
    reading = None if name in _UNREADABLE else _reply(error)
    if reading is not None and not (name == "ResponseValidationError" and reading.kind in _GUESSES):
        return reading
    assert cause is not None
    return bad_answer(cause, f"pydantic_ai.{type(error).__name__}", model=str_attr(error, "model_name"))


def raised(error: BaseException) -> Classification | None:
    """A builtin exception that came out of pydantic-ai: an answer without what its models look for."""
    if type(error) is not IndexError or not innermost(error).startswith("pydantic_ai.models"):
        return None
    return Classification.from_rule(
        kind="provider.output_invalid", rule="pydantic_ai.IndexError", basis="origin", saw="IndexError"
    )


def _mistake(error: BaseException) -> Classification:
    # The same class says that an agent was put together wrongly and that a key is not set.
    missing = _KEY.search(str_attr(error, "message", limit=500) or "") is not None
    return Classification.from_rule(
        kind="provider.auth" if missing else "validation.config_invalid",
        rule="pydantic_ai.UserError",
        saw="UserError",
        certainty=Certainty.NOT_SENT,
    )


TABLES: dict[str, Table] = {
    "pydantic_ai": {
        "ModelAPIError": _model,
        "UserError": _mistake,
        **rows(
            "pydantic_ai",
            {
                "provider.outcome_unknown": "ModelRequestTimeout",
                "provider.output_invalid": "UnexpectedModelBehavior ResponseRejected",
                "provider.output_truncated": "IncompleteToolCall",
            },
        ),
        **rows(
            "pydantic_ai", {"provider.content_refused": "ContentFilterError"}, certainty=Certainty.PARTIAL
        ),
        **rows(
            "pydantic_ai",
            {
                "limit.budget_exceeded": "UsageLimitExceeded",
                "limit.run_timeout": "RunTimedOut",
                "cancel.run": "RunCancelled",
                "session.no_snapshot": "SuspendedResponseExpired",
                "session.interaction_required": "ApprovalRequired CallDeferred",
                "tool.busy": "ConcurrencyLimitExceeded WorkspaceUnavailableError",
                "tool.timeout": "HookTimeoutError WorkspaceTimeoutError",
                "tool.input_invalid": "ModelRetry ToolRetryError",
                "tool.not_found": "_UnknownTool _ToolUnavailable",
                "tool.failed": "ToolFailed ToolFailedError WorkspaceError",
                "validation.path_denied": "WorkspaceReadOnlyError",
            },
        ),
        # The root of what a run raises; raised itself where a run was driven wrongly. A class below it that
        # is not known here says nothing of the kind.
        "AgentRunError": Classification.from_rule(
            kind="internal.bug", rule="pydantic_ai.AgentRunError", exact=True, saw="AgentRunError"
        ),
        # Signals for pydantic-ai itself: one that escapes was raised outside of a run.
        **rows(
            "pydantic_ai",
            {"internal.bug": "SkipModelRequest RetryModelRequest SkipToolValidation SkipToolExecution"},
        ),
    }
}
