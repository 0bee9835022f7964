"""replicate: problem details, and predictions that failed on the way. The reply stays in the client.

A `ModelError` holds the whole prediction with its input and logs; only its status and, for the rules,
its error are read.
"""

from dataclasses import replace
from typing import Any

from failwell.adapters.classification import Classification
from failwell.adapters.classify import classify
from failwell.adapters.facts import Facts, message_of, parse_body
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import adapter
from failwell.adapters.traceback_frames import reply_in
from failwell.errors.axes import Certainty
from failwell.errors.foreign_objects import safe_getattr, str_attr
from failwell.errors.headers import lower_headers
from failwell.errors.safe_str import words_of


def _refine(error: BaseException, facts: Facts) -> None:
    texts = [str_attr(error, name, limit=2_000) for name in ("title", "detail")]
    facts.message = "\n".join(part for part in texts if part)
    facts.headers = lower_headers(safe_getattr(reply_in(error, "replicate"), "headers"))


def _failed(error: BaseException) -> Classification:
    prediction = safe_getattr(error, "prediction")
    if str_attr(prediction, "status") in ("canceled", "aborted"):
        return Classification.from_rule(
            kind="cancel.run", rule="replicate.ModelError", saw="canceled", provider="replicate"
        )
    text = str_attr(prediction, "error", limit=4_000) or ""
    if prediction is None:
        # A log has the error alone, which is the text of the exception.
        text = words_of(error)[:4_000]
    # Without a message the container crashed; an invalid input has a message.
    return _classified_as(
        error, text, codes=() if text else ("model_error",), model=str_attr(prediction, "model")
    )


def raised(error: BaseException) -> Classification | None:
    """A builtin exception that came out of replicate's client: no token, or an error event of a stream."""
    if type(error) is ValueError:
        reading = _classified_as(error, words_of(error)[:500])
        return reading if reading.kind == "provider.auth" else None
    if type(error) is RuntimeError:
        text = message_of(parse_body(words_of(error)))
        reading = _classified_as(error, text, in_stream=True)
        # The event has no status. Where its words say nothing, it is the server's failure.
        return (
            reading
            if reading.evidence[0].basis == "message"
            else _classified_as(error, text, status=500, in_stream=True)
        )
    return None


def _classified_as(error: BaseException, text: str, **facts: Any) -> Classification:
    if "nsfw" in text.lower():
        # What its safety checker says of a picture.
        facts = {**facts, "codes": ("content_filter",), "status": None}
    gathered = Facts(
        provider="replicate", sdk="replicate", exception_type=type(error).__name__, message=text, **facts
    )
    reading = classify(gathered)
    if reading.kind != "provider.content_refused":
        return reading
    return replace(reading, certainty=None if "input" in text.lower() else Certainty.PARTIAL)


TABLES: dict[str, Table] = {
    "replicate": {
        "ReplicateError": adapter("replicate", "replicate", _refine),
        "ModelError": _failed,
        "ReplicateException": adapter("replicate", "replicate"),
        "WebhookValidationError": Classification.from_rule(
            kind="validation.input_invalid",
            rule="replicate.WebhookValidationError",
            saw="WebhookValidationError",
            provider="replicate",
        ),
    }
}
