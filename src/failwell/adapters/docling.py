"""docling: a document that cannot be converted is its input's fault, whatever class says so."""

from failwell.adapters.places import memory_in
from failwell.adapters.pypdfium2 import unreadable
from failwell.adapters.reading import Reading
from failwell.adapters.registry import Table


def _conversion(error: BaseException) -> Reading:
    # docling wraps what its models raise, and they run on the graphics card.
    return memory_in(error) or Reading(
        kind="validation.input_invalid",
        rule="docling.ConversionError",
        saw=type(error).__name__,
        message="The document could not be converted.",
    )


def raised(error: BaseException) -> Reading | None:
    """A builtin exception that came out of docling or a parser below it."""
    return memory_in(error) or unreadable(error, "docling")


TABLES: dict[str, Table] = {
    "docling": {
        "BaseError": _conversion,
        "ConversionError": _conversion,
        "OperationNotAllowed": Reading(
            kind="tool.denied", rule="docling.OperationNotAllowed", saw="OperationNotAllowed"
        ),
    }
}
