"""instructor: its errors carry the SDK's, or say that the model's answer did not fit.

The last attempt decides, then the cause, then the last failed attempt in the list, which lags behind:
a rate limit after a schema failure is not in it. Prompts, arguments and completions are on these
exceptions too; of a completion only the model, the stop reason and the counts are read.
"""

from typing import Any, cast

from failwell.adapters.ask import ask, ask_int, ask_str
from failwell.adapters.envelope import bad_answer, carries, cause_of, last_attempt
from failwell.adapters.places import tops_of
from failwell.adapters.reading import Reading
from failwell.adapters.registry import Table
from failwell.fault.axes import Certainty

_ANSWERS = ("ValidationError", "JSONDecodeError", "AsyncValidationError", "ResponseParsingError")
"""What instructor itself asks the model again for."""


def _retried(error: BaseException) -> Reading:
    rule = f"instructor.{type(error).__name__}"
    tries = ask_int(error, "n_attempts")
    details = {} if tries is None else {"attempts": tries}
    inner = _inside(error)
    if inner is None:
        return Reading(kind="provider.unknown", rule=rule, saw=type(error).__name__, details=details)
    if type(inner).__name__ in _ANSWERS:
        return bad_answer(inner, rule, details=details)
    if isinstance(inner, AssertionError) and "instructor" in tops_of(inner):
        return _asserted(inner, details)
    return carries(inner, rule, otherwise="provider.unknown", details=details)


def _inside(error: BaseException) -> BaseException | None:
    cause = cause_of(error)
    if cause is not None:
        return last_attempt(cause) or cause
    last = ask(_item(ask(error, "failed_attempts"), -1), "exception")
    return last if isinstance(last, BaseException) else None


def _item(held: Any, place: int) -> object:
    return cast("list[object]", held)[place] if isinstance(held, list) and held else None


def _asserted(inner: BaseException, details: dict[str, Any]) -> Reading:
    # instructor checks answers with `assert`; one of these checks finds the model's refusal.
    refused = str(inner).lower().startswith("unable to")
    return Reading(
        kind="provider.content_refused" if refused else "provider.output_invalid",
        rule="instructor.AssertionError",
        saw="AssertionError",
        certainty=Certainty.PARTIAL if refused else None,
        details=details,
    )


def _cut(error: BaseException) -> Reading:
    answer = ask(error, "last_completion")
    model = ask_str(answer, "model")
    choice = _item(ask(answer, "choices"), 0)
    usage = ask(answer, "usage")
    known = {
        "stop_reason": ask_str(choice, "finish_reason") or ask_str(answer, "stop_reason"),
        "input_tokens": ask_int(usage, "prompt_tokens", "input_tokens"),
        "output_tokens": ask_int(usage, "completion_tokens", "output_tokens"),
    }
    return Reading(
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
    told = ", ".join(fact for fact in facts if fact)
    return f"The structured answer reached its length limit before it was complete{f' ({told})' if told else ''}."


def _carried(error: BaseException) -> Reading:
    return carries(cause_of(error), f"instructor.{type(error).__name__}", otherwise="provider.unknown")


def _is(kind: str, *names: str) -> Table:
    return {name: Reading(kind=kind, rule=f"instructor.{name}", saw=name) for name in names}


TABLES: dict[str, Table] = {
    "instructor": {
        "InstructorRetryException": _retried,
        "IncompleteOutputException": _cut,
        "InstructorError": _carried,
        "ProviderError": _carried,
        **_is("provider.output_invalid", "ResponseParsingError", "AsyncValidationError", "ValidationError"),
        **_is("limit.budget_exceeded", "TokenBudgetExceeded"),
        **_is("provider.capability_missing", "TokenUsageUnavailableError"),
        **_is("validation.config_invalid", "ConfigurationError", "ModeError", "ClientError"),
        **_is("validation.input_invalid", "MultimodalError", "RemoteFetchError"),
    }
}
