"""pypdfium2: what PDFium could not read, by its error code; the file is at fault, not the program."""

from failwell.adapters.classification import Classification
from failwell.adapters.registry import Table
from failwell.adapters.vendors.python import read_oserror
from failwell.errors.foreign_objects import int_attr

_REASONS = {
    2: "not_accessible",
    3: "not_a_pdf",
    4: "password_needed",
    5: "encryption_unsupported",
    6: "page_broken",
}


def _pdfium(error: BaseException) -> Classification:
    reason = _REASONS.get(int_attr(error, "err_code") or 0)
    return Classification.from_rule(
        kind="validation.input_invalid",
        rule="pypdfium2.PdfiumError",
        saw="PdfiumError",
        message="The document could not be read as a PDF.",
        details={} if reason is None else {"reason": reason},
    )


def raised(error: BaseException) -> Classification | None:
    """A builtin exception that came out of a reader of documents: the document is at fault."""
    return unreadable(error, "pypdfium2")


def unreadable(error: BaseException, library: str) -> Classification | None:
    """What a builtin exception from a reader of documents says about the document."""
    if isinstance(error, OSError):
        known = read_oserror(error)
        # A full disk is a full disk, wherever it is noticed.
        if known.kind != "internal.io_error":
            return known
    elif not isinstance(error, ValueError) and type(error) is not RuntimeError:
        return None
    return Classification.from_rule(
        kind="validation.input_invalid",
        rule=f"{library}.{type(error).__name__}",
        basis="origin",
        saw=type(error).__name__,
        message="The document could not be read.",
    )


TABLES: dict[str, Table] = {"pypdfium2": {"PdfiumError": _pdfium, "_ImageExtractionError": _pdfium}}
