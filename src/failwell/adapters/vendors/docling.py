"""docling: a document that cannot be converted is its input's fault, whatever class says so."""

from failwell.adapters.reading import Reading
from failwell.adapters.registry import Table
from failwell.adapters.sdk import adapter
from failwell.adapters.traceback_frames import memory_in
from failwell.adapters.vendors.pypdfium2 import unreadable


def _conversion(error: BaseException) -> Reading:
    # docling wraps what its models raise, and they run on the graphics card.
    return memory_in(error) or Reading.from_rule(
        kind="validation.input_invalid",
        rule="docling.ConversionError",
        saw=type(error).__name__,
        message="The document could not be converted.",
    )


def raised(error: BaseException) -> Reading | None:
    """A builtin exception that came out of docling or a parser below it."""
    return memory_in(error) or unreadable(error, "docling")


def _is(kind: str, *names: str) -> Table:
    return {name: Reading.from_rule(kind=kind, rule=f"docling.{name}", saw=name) for name in names}


_service = adapter("docling", "docling")

TABLES: dict[str, Table] = {
    "docling": {
        "BaseError": _conversion,
        "ConversionError": _conversion,
        **_is("tool.denied", "OperationNotAllowed", "SecurityError"),
        **_is("extension.dependency_missing", "AcceleratorDeviceNotAvailableError"),
        **_is(
            "validation.input_invalid", "OcrLanguageNotSupportedError", "RapidOcrModelSizeNotSupportedError"
        ),
        # its client for a service that converts elsewhere
        "ServiceError": _service,
        "DoclingServiceClientError": _service,
        **_is("provider.output_invalid", "ResponseSchemaMismatchError"),
        **_is("provider.quota_exhausted", "UsageLimitExceededError"),
        **_is("provider.outcome_unknown", "TaskTimeoutError"),
        **_is("provider.bad_request", "TaskNotFoundError"),
        **_is("tool.busy", "ResultNotReadyError"),
    }
}
