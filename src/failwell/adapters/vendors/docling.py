"""docling: a document that cannot be converted is its input's fault, whatever class says so."""

from failwell.adapters.classification import Classification
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import adapter
from failwell.adapters.traceback_frames import memory_in
from failwell.adapters.vendor_tables import rows
from failwell.adapters.vendors.pypdfium2 import unreadable


def _conversion(error: BaseException) -> Classification:
    # docling wraps what its models raise, and they run on the graphics card.
    return memory_in(error) or Classification.from_rule(
        kind="validation.input_invalid",
        rule="docling.ConversionError",
        saw=type(error).__name__,
        message="The document could not be converted.",
    )


def raised(error: BaseException) -> Classification | None:
    """A builtin exception that came out of docling or a parser below it."""
    return memory_in(error) or unreadable(error, "docling")


_service = adapter("docling", "docling")

TABLES: dict[str, Table] = {
    "docling": {
        "BaseError": _conversion,
        "ConversionError": _conversion,
        **rows(
            "docling",
            {
                "tool.denied": "OperationNotAllowed SecurityError",
                "extension.dependency_missing": "AcceleratorDeviceNotAvailableError",
                "validation.input_invalid": "OcrLanguageNotSupportedError RapidOcrModelSizeNotSupportedError",
            },
        ),
        # its client for a service that converts elsewhere
        "ServiceError": _service,
        "DoclingServiceClientError": _service,
        **rows(
            "docling",
            {
                "provider.output_invalid": "ResponseSchemaMismatchError",
                "provider.quota_exhausted": "UsageLimitExceededError",
                "provider.outcome_unknown": "TaskTimeoutError",
                "provider.bad_request": "TaskNotFoundError",
                "tool.busy": "ResultNotReadyError",
            },
        ),
    }
}
