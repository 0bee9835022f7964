"""instructor: its errors carry the SDK's, or say that the model's answer did not fit.

The last attempt decides, then the cause, then the last failed attempt in the list, which lags behind:
a rate limit after a schema failure is not in it. Prompts, arguments and completions are on these
exceptions too; of a completion only the model, the stop reason and the counts are read.
"""

from typing import Any, cast

from failwell.adapters.classification import Classification
from failwell.adapters.registry import Table
from failwell.adapters.replies import STOPS, word_of
from failwell.adapters.traceback_frames import innermost, tops_of
from failwell.adapters.vendor_tables import bad_answer, carries, cause_of, last_attempt, rows
from failwell.errors.axes import Certainty
from failwell.errors.foreign_objects import int_attr, safe_getattr, str_attr

_ANSWERS = ("ValidationError", "JSONDecodeError", "AsyncValidationError", "ResponseParsingError")
"""What instructor itself asks the model again for."""


def _retried(error: BaseException) -> Classification:
    rule = f"instructor.{type(error).__name__}"
    tries = int_attr(error, "n_attempts")
    details = {} if tries is None else {"attempts": tries}
    inner = _inside(error)
    if inner is None:
        return Classification.from_rule(
            kind="provider.unknown", rule=rule, saw=type(error).__name__, details=details
        )
    if type(inner).__name__ in _ANSWERS:
        return _stopped(error, details) or bad_answer(inner, rule, details=details)
    if isinstance(inner, AssertionError) and "instructor" in tops_of(inner):
        return _asserted(inner, details)
    return carries(inner, rule, otherwise="provider.unknown", details=details)


def _inside(error: BaseException) -> BaseException | None:
    last = safe_getattr(_item(safe_getattr(error, "failed_attempts"), -1), "exception")
    listed = last if isinstance(last, BaseException) else None
    cause = cause_of(error)
    if cause is None:
        return listed
    inner = last_attempt(cause) or cause
    # It also stumbles over a poor answer while it writes the next question about it.
    stumbled = isinstance(inner, LookupError | AttributeError) and innermost(inner).startswith("instructor")
    return listed if stumbled and listed is not None else inner


def _stopped(error: BaseException, details: dict[str, Any]) -> Classification | None:
    """Why the model stopped, where that is the reason for the answer's poor form."""
    answer = safe_getattr(error, "last_completion")
    choice = _item(safe_getattr(answer, "choices"), 0)
    stop = STOPS.get(
        word_of(safe_getattr(choice, "finish_reason") or safe_getattr(answer, "stop_reason")) or ""
    )
    if stop == "refused" or safe_getattr(safe_getattr(choice, "message"), "refusal") is not None:
        return Classification.from_rule(
            kind="provider.content_refused",
            rule="instructor.stop_reason",
            basis="code",
            saw=type(error).__name__,
            certainty=Certainty.PARTIAL,
            model=str_attr(answer, "model"),
            details=details,
        )
    return _cut(error) if stop == "truncated" else None


def _item(container: Any, place: int) -> object:
    return cast("list[object]", container)[place] if isinstance(container, list) and container else None


def _asserted(inner: BaseException, details: dict[str, Any]) -> Classification:
    # instructor checks answers with `assert`; one of these checks finds the model's refusal.
    refused = str(inner).lower().startswith("unable to")
    return Classification.from_rule(
        kind="provider.content_refused" if refused else "provider.output_invalid",
        rule="instructor.AssertionError",
        saw="AssertionError",
        certainty=Certainty.PARTIAL if refused else None,
        details=details,
    )


def _cut(error: BaseException) -> Classification:
    answer = safe_getattr(error, "last_completion")
    model = str_attr(answer, "model")
    choice = _item(safe_getattr(answer, "choices"), 0)
    usage = safe_getattr(answer, "usage")
    known = {
        "stop_reason": str_attr(choice, "finish_reason") or str_attr(answer, "stop_reason"),
        "input_tokens": int_attr(usage, "prompt_tokens", "input_tokens"),
        "output_tokens": int_attr(usage, "completion_tokens", "output_tokens"),
    }
    return Classification.from_rule(
        kind="provider.output_truncated",
        rule="instructor.IncompleteOutputException",
        saw="IncompleteOutputException",
        message=_cut_words(model, known),
        model=model,
        details={name: value for name, value in known.items() if value is not None},
    )


def _cut_words(model: str | None, known: dict[str, Any]) -> str:
    facts = [
        "" if model is None else f"model `{model}`",
        "" if known["stop_reason"] is None else f"stop reason `{known['stop_reason']}`",
        "" if known["output_tokens"] is None else f"{known['output_tokens']} tokens",
    ]
    suffix = ", ".join(fact for fact in facts if fact)
    return f"The structured answer reached its length limit before it was complete{f' ({suffix})' if suffix else ''}."


def _carried(error: BaseException) -> Classification:
    return carries(cause_of(error), f"instructor.{type(error).__name__}", otherwise="provider.unknown")


TABLES: dict[str, Table] = {
    "instructor": {
        "InstructorRetryException": _retried,
        "IncompleteOutputException": _cut,
        "InstructorError": _carried,
        "ProviderError": _carried,
        **rows(
            "instructor",
            {
                "provider.output_invalid": "ResponseParsingError AsyncValidationError ValidationError",
                "limit.budget_exceeded": "TokenBudgetExceeded",
                "provider.capability_missing": "TokenUsageUnavailableError",
                "validation.config_invalid": "ConfigurationError ModeError ClientError",
                "validation.input_invalid": "MultimodalError RemoteFetchError",
            },
        ),
    }
}
