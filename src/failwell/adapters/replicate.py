"""replicate: problem details without their headers, and predictions that failed on the way.

A `ModelError` holds the whole prediction with its input and logs; only its status and, for the rules,
its error are read.
"""

from typing import Any

from failwell.adapters.ask import ask, ask_str
from failwell.adapters.extract import Extract
from failwell.adapters.reading import Reading
from failwell.adapters.registry import Table
from failwell.adapters.render import render
from failwell.adapters.sdk import doorway


def _refine(error: BaseException, facts: dict[str, Any]) -> None:
    said = [ask_str(error, name, limit=2_000) for name in ("title", "detail")]
    facts["message"] = "\n".join(part for part in said if part)


def _failed(error: BaseException) -> Reading:
    prediction = ask(error, "prediction")
    said = ask_str(prediction, "error", limit=4_000) or ""
    if ask_str(prediction, "status") in ("canceled", "aborted"):
        return Reading(kind="cancel.run", rule="replicate.ModelError", saw="canceled", provider="replicate")
    found = Extract(
        provider="replicate",
        sdk="replicate",
        exception_type="ModelError",
        # With nothing said, the container fell over; it says what is wrong with an input.
        codes=() if said else ("model_error",),
        message=said,
        model=ask_str(prediction, "model"),
    )
    return render(found)


def raised(error: BaseException) -> Reading | None:
    """A builtin exception that came out of replicate's client."""
    if type(error) is not ValueError:
        return None
    reading = render(
        Extract(provider="replicate", sdk="replicate", exception_type="ValueError", message=str(error)[:500])
    )
    return reading if reading.kind == "provider.auth" else None


TABLES: dict[str, Table] = {
    "replicate": {
        "ReplicateError": doorway("replicate", "replicate", _refine),
        "ModelError": _failed,
        "ReplicateException": doorway("replicate", "replicate"),
        "WebhookValidationError": Reading(
            kind="validation.input_invalid",
            rule="replicate.WebhookValidationError",
            saw="WebhookValidationError",
            provider="replicate",
        ),
    }
}
