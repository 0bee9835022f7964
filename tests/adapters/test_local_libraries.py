"""Memory that ran out is a shortage with numbers, and a document that cannot be read is the document's fault.

torch and jax are gigabytes. Their exceptions are made here by module and name, as classes with the text
that torch 2.11 and jax 0.11 wrote on a real card; the adapters see nothing else of them either.
"""

import errno
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.errors.axes import Category

TORCH = (
    "CUDA out of memory. Tried to allocate 3.47 GiB. GPU 0 has a total capacity of 23.57 GiB of which 2.66 GiB "
    "is free. Including non-PyTorch memory, this process has 20.90 GiB memory in use."
)
OLD_TORCH = (
    "CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 7.79 GiB total capacity; 5.50 GiB already allocated; "
    "312.00 MiB free; 5.61 GiB reserved in total by PyTorch)"
)
XLA = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes."
TPU = (
    "RESOURCE_EXHAUSTED: Attempting to reserve 12.29G at the bottom of memory. That was not possible. There are "
    "10.50G free, 0B reserved, and 10.50G reservable."
)

HBM = "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 22.40G of 15.48G hbm. Exceeded hbm capacity by 6.92G."

MPS = (
    "MPS backend out of memory (MPS allocated: 42.28 GiB, other allocations: 720.00 KiB, max allowed: 42.43 GiB). Tried "
    "to allocate 384.00 MiB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit."
)
FULL_MPS = (
    "MPS backend out of memory (MPS allocated: 1024.00 MiB, other allocations: 384.00 KiB, max allowed: 511.18 MiB). "
    "Tried to allocate 256 bytes on shared pool."
)
TPU_BUFFER = (
    "RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 8.00G. That was not possible. There are "
    "7.50G free.; (0x0x0_HBM0)"
)


def an_error(module: str, name: str, said: str, base: type[BaseException] = RuntimeError) -> BaseException:
    """An exception as a library that is not here would raise it."""
    return type(name, (base,), {"__module__": module})(said)


def raised_inside(module: str, error: BaseException) -> BaseException:
    """`error`, after code of `module` raised it."""
    code = ModuleType(module)
    exec("def read(error):\n    raise error\n", code.__dict__)
    sys.modules[module] = code
    try:
        code.read(error)
    except BaseException as caught:
        return caught
    finally:
        del sys.modules[module]
    raise AssertionError


@pytest.fixture
def docling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docling", ModuleType("docling"))


@pytest.mark.parametrize(
    ("error", "needed", "available"),
    [
        (an_error("torch", "OutOfMemoryError", TORCH), 3553.28, 2723.84),
        (an_error("torch.cuda", "OutOfMemoryError", OLD_TORCH), 512.0, 312.0),
        (RuntimeError(TORCH), 3553.28, 2723.84),
        (RuntimeError(OLD_TORCH), 512.0, 312.0),
        (an_error("jaxlib._jax", "XlaRuntimeError", TPU), 12584.96, 10752.0),
        (an_error("jax.errors", "JaxRuntimeError", TPU, ValueError), 12584.96, 10752.0),
        (an_error("jaxlib._jax", "XlaRuntimeError", HBM), 22937.6, 15851.52),
        (an_error("jaxlib._jax", "XlaRuntimeError", TPU_BUFFER), 8192.0, 7680.0),
        (RuntimeError(MPS), 384.0, 152.9),
        (RuntimeError(FULL_MPS), 0.0, 0.0),
    ],
)
def test_a_full_graphics_card_says_what_was_needed_and_what_there_was(
    error: BaseException, needed: float, available: float
) -> None:
    report = describe(error)

    assert (report.kind, report.category) == ("resource.gpu_memory", Category.RESOURCE)
    assert report.resource_shortfall is not None
    assert report.resource_shortfall.resource == "gpu_vram_mb"
    assert report.resource_shortfall.needed == pytest.approx(needed)
    assert report.resource_shortfall.available == pytest.approx(available)


@pytest.mark.parametrize(
    "error",
    [
        an_error("jaxlib.xla_extension", "XlaRuntimeError", XLA),
        an_error("torch", "OutOfMemoryError", ""),
        an_error("torch", "AcceleratorError", "CUDA error: out of memory"),
        RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be reported later"),
        RuntimeError("MPS backend out of memory (MPS allocated: 9.05 GB, other allocations: 2.00 MB)"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ],
)
def test_a_full_graphics_card_is_known_without_any_number(error: BaseException) -> None:
    report = describe(error)

    assert report.kind == "resource.gpu_memory"
    assert report.resource_shortfall is None


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (
            an_error("jaxlib", "XlaRuntimeError", "INVALID_ARGUMENT: shapes differ"),
            "validation.input_invalid",
        ),
        (
            an_error("jaxlib", "XlaRuntimeError", "FAILED_PRECONDITION: No visible GPU devices."),
            "validation.config_invalid",
        ),
        (an_error("jaxlib", "XlaRuntimeError", "INTERNAL: launch failure"), "worker.crashed"),
        (an_error("jaxlib", "XlaRuntimeError", "no status word"), "internal.unknown"),
        (an_error("torch", "AcceleratorError", "CUDA error: device-side assert triggered"), "internal.bug"),
        (
            an_error("torch", "AcceleratorError", "CUDA error: an illegal memory access was encountered"),
            "internal.bug",
        ),
        (
            an_error("torch", "AcceleratorError", "CUDA error: uncorrectable ECC error encountered"),
            "worker.crashed",
        ),
        (an_error("torch", "AcceleratorError", "something that nobody has seen"), "worker.crashed"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes."),
            "resource.system_memory",
        ),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"), "internal.bug"),
        (an_error("torch.distributed", "DistNetworkError", "connect"), "provider.outcome_unknown"),
        (RuntimeError("dictionary changed size during iteration"), "internal.bug"),
        (RuntimeError("a memory of mine"), "internal.bug"),
        # A wrapper repeats the sentence of the runtime, which nobody else says.
        (an_error("somewhere", "SomeError", TORCH), "resource.gpu_memory"),
    ],
)
def test_other_failures_of_local_libraries_are_told_apart(error: BaseException, kind: str) -> None:
    assert describe(error).kind == kind


@pytest.mark.acceptance("pipelex 24")
@pytest.mark.parametrize("error", [ValueError("no page"), RuntimeError("bad xref"), OSError("unreadable")])
@pytest.mark.usefixtures("docling")
def test_what_a_document_reader_raises_is_about_the_document(error: BaseException) -> None:
    report = describe(raised_inside("docling.backend", error))

    assert (report.kind, report.category) == ("validation.input_invalid", Category.USER_INPUT)
    assert report.evidence[0].rule == f"docling.{type(error).__name__}"


@pytest.mark.acceptance("pipelex 24")
@pytest.mark.usefixtures("docling")
def test_the_same_errors_from_anywhere_else_mean_what_they_always_mean() -> None:
    assert describe(raised_inside("elsewhere", RuntimeError("bad xref"))).kind == "internal.bug"
    assert describe(RuntimeError("bad xref")).kind == "internal.bug"
    assert (
        describe(raised_inside("docling.backend", KeyError("page")), origin="input").evidence[0].rule
        == "python.KeyError"
    )


@pytest.mark.usefixtures("docling")
def test_a_missing_file_and_a_full_disk_are_what_they_are_inside_a_document_reader_too() -> None:
    missing = raised_inside("docling.backend", FileNotFoundError(errno.ENOENT, "no such file"))
    full = raised_inside("docling.backend", OSError(errno.ENOSPC, "no space"))

    assert describe(missing, origin="input").kind == "validation.path_not_found"
    assert describe(full).kind == "resource.disk"


@pytest.mark.usefixtures("docling")
def test_a_model_of_a_document_reader_that_finds_no_memory_is_a_shortage() -> None:
    assert describe(raised_inside("docling.models", RuntimeError(TORCH))).kind == "resource.gpu_memory"
    assert describe(an_error("docling.exceptions", "ConversionError", TORCH)).kind == "resource.gpu_memory"
    assert (
        describe(an_error("docling.exceptions", "ConversionError", "p. 3")).kind == "validation.input_invalid"
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("DocumentLoadError", "validation.input_invalid"),
        ("OcrLanguageNotSupportedError", "validation.input_invalid"),
        ("SecurityError", "tool.denied"),
        ("AcceleratorDeviceNotAvailableError", "extension.dependency_missing"),
    ],
)
def test_the_classes_of_docling_are_known_by_name(name: str, kind: str) -> None:
    base: Any = type("ConversionError", (RuntimeError,), {"__module__": "docling.exceptions"})

    assert describe(an_error("docling.exceptions", name, "no", base)).kind == kind


def _pdf(content: bytes, folder: Path) -> BaseException:
    pdfium: Any = pytest.importorskip("pypdfium2")
    file = folder / "broken.pdf"
    file.write_bytes(content)
    with pytest.raises(Exception) as caught:
        pdfium.PdfDocument(file)
    return caught.value


@pytest.mark.acceptance("pipelex 24")
def test_a_broken_pdf_is_bad_input_and_says_why(tmp_path: Path) -> None:
    error = _pdf(b"%PDF-1.7 not really", tmp_path)

    report = describe(error)

    assert type(error).__name__ == "PdfiumError"
    assert (report.kind, report.category) == ("validation.input_invalid", Category.USER_INPUT)
    assert report.details["reason"] == "not_a_pdf"


@pytest.mark.acceptance("pipelex 24")
def test_a_pdf_that_is_not_there_is_a_missing_file(tmp_path: Path) -> None:
    pdfium: Any = pytest.importorskip("pypdfium2")

    with pytest.raises(FileNotFoundError) as caught:
        pdfium.PdfDocument(tmp_path / "absent.pdf")

    assert describe(caught.value, origin="input").kind == "validation.path_not_found"


def test_a_misused_pdf_reader_raises_about_the_document() -> None:
    pdfium: Any = pytest.importorskip("pypdfium2")
    document = pdfium.PdfDocument.new()

    with pytest.raises(Exception) as caught:
        document.get_page(3)

    assert describe(caught.value).kind == "validation.input_invalid"
    document.close()
