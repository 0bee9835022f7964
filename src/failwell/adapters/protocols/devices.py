"""The status names of GPU runtimes: CUDA, HIP, cuBLAS, cuDNN, NCCL, and the status words of XLA.

CUDA: "CUDA Runtime API", enum `cudaError`, and "CUDA Driver API", enum `CUresult`; HIP names its own after
them. cuBLAS and cuDNN: `cublasStatus_t` and `cudnnStatus_t` of their manuals. NCCL: `ncclResult_t`. XLA: the
canonical codes of `absl::Status`.
"""

import re

from failwell.errors.lazy_regex import lazy_regex

_MEMORY, _BUG, _CRASHED = "resource.gpu_memory", "internal.bug", "worker.crashed"
_MISSING, _CONFIG, _BUSY = "extension.dependency_missing", "validation.config_invalid", "tool.busy"

_CUDA: dict[str, tuple[str, str]] = {
    # name without its prefix → the kind, and the sentence that the runtime prints for it
    "memoryallocation": (_MEMORY, "out of memory"),
    "outofmemory": (_MEMORY, "out of memory"),
    # A kernel's own assertion or a wild pointer: the same input fails again, and the context is gone.
    "assert": (_BUG, "device-side assert triggered"),
    "illegaladdress": (_BUG, "an illegal memory access was encountered"),
    "illegalinstruction": (_BUG, "an illegal instruction was encountered"),
    "misalignedaddress": (_BUG, "misaligned address"),
    "invalidaddressspace": (_BUG, "operation not supported on global/shared address space"),
    "invalidpc": (_BUG, "invalid program counter"),
    "hardwarestackerror": (_BUG, "hardware stack error"),
    "launchfailure": (_BUG, "unspecified launch failure"),
    "launchfailed": (_BUG, "unspecified launch failure"),
    "launchoutofresources": (_BUG, "too many resources requested for launch"),
    "invalidvalue": (_BUG, "invalid argument"),
    "invalidconfiguration": (_BUG, "invalid configuration argument"),
    # The function was not compiled for the architecture of this device.
    "invaliddevicefunction": (_MISSING, "invalid device function"),
    "invalidresourcehandle": (_BUG, "invalid resource handle"),
    "peeraccessunsupported": (_CONFIG, "peer access is not supported between these two devices"),
    "nokernelimagefordevice": (_MISSING, "no kernel image is available for execution on the device"),
    "nobinaryforgpu": (_MISSING, "no kernel image is available for execution on the device"),
    "unsupportedptxversion": (_MISSING, "the provided ptx was compiled with an unsupported toolchain"),
    "invalidptx": (_MISSING, "a ptx jit compilation failed"),
    "insufficientdriver": (_MISSING, "cuda driver version is insufficient for cuda runtime version"),
    "systemdrivermismatch": (_MISSING, "system has unsupported display driver / cuda driver combination"),
    "compatnotsupportedondevice": (_MISSING, "forward compatibility was attempted on non supported hw"),
    "nodevice": (_MISSING, "no cuda-capable device is detected"),
    "stublibrary": (_MISSING, "cuda driver is a stub library"),
    "sharedobjectinitfailed": (_MISSING, "shared object initialization failed"),
    "notinitialized": (_MISSING, "initialization error"),
    "initializationerror": (_MISSING, "initialization error"),
    "systemnotready": (_CONFIG, "system not yet initialized"),
    "invaliddevice": (_CONFIG, "invalid device ordinal"),
    "notpermitted": (_CONFIG, "operation not permitted"),
    "mpsserverunavailable": (_CONFIG, ""),
    "devicesunavailable": (_BUSY, "cuda-capable device(s) is/are busy or unavailable"),
    "deviceunavailable": (_BUSY, "cuda-capable device(s) is/are busy or unavailable"),
    "devicealreadyinuse": (_BUSY, "exclusive-thread device already in use by a different thread"),
    "launchtimeout": ("worker.timeout", "the launch timed out and was terminated"),
    # The board or the link failed, and another process or machine may do the work.
    "eccuncorrectable": (_CRASHED, "uncorrectable ecc error encountered"),
    "nvlinkuncorrectable": (_CRASHED, "uncorrectable nvlink error detected during the execution"),
    "contained": (_CRASHED, "invalid access of peer gpu memory over nvlink or a hardware error"),
    "contextisdestroyed": (_CRASHED, "context is destroyed"),
    "cudartunloading": (_CRASHED, "driver shutting down"),
    "unknown": (_CRASHED, "unknown error"),
    "notsupported": ("validation.input_invalid", "operation not supported"),
}
_LIBRARIES: dict[str, str] = {
    "ALLOC_FAILED": _MEMORY,
    "INTERNAL_ERROR_HOST_ALLOCATION_FAILED": "resource.system_memory",
    "INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED": _MEMORY,
    # As a rule the memory or the context was gone before the library could be set up.
    "NOT_INITIALIZED": _CRASHED,
    "ARCH_MISMATCH": _MISSING,
    "VERSION_MISMATCH": _MISSING,
    "RUNTIME_PREREQUISITE_MISSING": _MISSING,
    "LICENSE_ERROR": _CONFIG,
    "INVALID_VALUE": _BUG,
    "BAD_PARAM": _BUG,
    "MAPPING_ERROR": _CRASHED,
    "EXECUTION_FAILED": _BUG,
    "INTERNAL_ERROR": _CRASHED,
    "NOT_SUPPORTED": "validation.input_invalid",
}
"""What follows `CUBLAS_STATUS_`, `CUDNN_STATUS_`, `CUSOLVER_STATUS_`, `CUSPARSE_STATUS_`."""
_NCCL: dict[str, str] = {
    "ncclUnhandledCudaError": _CRASHED,
    "ncclSystemError": _CRASHED,
    "ncclInternalError": _CRASHED,
    "ncclRemoteError": _CRASHED,
    "ncclInProgress": _BUSY,
    "ncclInvalidArgument": _BUG,
    "ncclInvalidUsage": _CONFIG,
}
_XLA: dict[str, str] = {
    "RESOURCE_EXHAUSTED": _MEMORY,
    "INVALID_ARGUMENT": "validation.input_invalid",
    "OUT_OF_RANGE": "validation.input_invalid",
    "UNIMPLEMENTED": "provider.capability_missing",
    "UNAVAILABLE": "worker.transient",
    "ABORTED": "worker.transient",
    "CANCELLED": "cancel.job",
    "DEADLINE_EXCEEDED": "worker.timeout",
    "INTERNAL": _CRASHED,
    "UNKNOWN": _CRASHED,
    "DATA_LOSS": _CRASHED,
    "NOT_FOUND": _CONFIG,
    "PERMISSION_DENIED": _CONFIG,
    # No visible device, or a library of the device that does not start.
    "FAILED_PRECONDITION": _CONFIG,
}

_NAME = lazy_regex(r"\b(?:cudaError|hipError|CUDA_ERROR_)([A-Za-z_]{3,40})\b")
_LIBRARY = lazy_regex(
    r"\b(?:CUBLAS|CUDNN|CUSOLVER|CUSPARSE|CUFFT|HIPBLAS|ROCBLAS|MIOPEN)_STATUS_([A-Z_]{3,60})\b"
)
_NCCL_NAME = lazy_regex(r"\bnccl(?:[A-Z][a-z]+){1,3}\b")
_XLA_WORD = lazy_regex(r"\s*(?:XlaRuntimeError: |jaxlib\.[\w.]*: )?([A-Z][A-Z_]{3,30}): ")
_SENTENCE = lazy_regex(r"(?:cuda|hip) (?:driver |runtime )?(?:error|failure)(?: \d+)?\W{1,4}", re.IGNORECASE)
_UNMISTAKABLE = 28
"""So long a sentence is printed by the runtime alone, whatever stands before it."""
_SAYINGS = {
    **dict.fromkeys(
        ("cuda out of memory", "hip out of memory", "xpu out of memory", "mps backend out of memory"), _MEMORY
    ),
    "nccl error": _CRASHED,
    "no nvidia driver on your system": _MISSING,
    "no cuda gpus are available": _MISSING,
    "the nvidia driver on your system is too old": _MISSING,
    "torch not compiled with cuda enabled": _MISSING,
    "unable to find an engine to execute this computation": _BUG,
}
"""Sentences of torch about the same states, which name no status."""


def kind_of_xla(word: str | None) -> str | None:
    """The kind for a status word of XLA, which the messages of jax begin with."""
    return None if word is None else _XLA.get(word)


def xla_word(text: str) -> str | None:
    """The status word that a message of jax begins with."""
    match = _XLA_WORD.match(text)
    return match.group(1) if match and match.group(1) in _XLA else None


def device_status(text: str) -> tuple[str, str] | None:
    """The kind and the status of a GPU runtime that a message names; `None` if it names none.

    A status name decides before a sentence. Shortage of memory decides before what it led to.
    """
    hits: list[tuple[str, str]] = []
    for match in _NAME.finditer(text):
        known = _CUDA.get(match.group(1).replace("_", "").lower())
        if known is not None:
            hits.append((known[0], match.group()))
    for match in _LIBRARY.finditer(text):
        status = match.group(1)
        kind = _LIBRARIES.get(status) or next(
            (kind for beginning, kind in _LIBRARIES.items() if status.startswith(beginning)), None
        )
        if kind is not None:
            hits.append((kind, match.group()))
    hits += [(_NCCL[name], name) for name in _NCCL_NAME.findall(text) if name in _NCCL]
    if hits:
        return next((hit for hit in hits if hit[0] == _MEMORY), hits[0])
    return _by_sentence(text)


def _by_sentence(text: str) -> tuple[str, str] | None:
    match = _SENTENCE.search(text)
    if match is not None:
        rest = text[match.end() : match.end() + 100].lower().replace("rocm", "cuda")
        for name, (kind, sentence) in _CUDA.items():
            if sentence and rest.startswith(sentence):
                return kind, name
    low = text[:2_000].lower()
    for name, (kind, sentence) in _CUDA.items():
        if len(sentence) >= _UNMISTAKABLE and sentence in low:
            return kind, name
    return next(((kind, saying) for saying, kind in _SAYINGS.items() if saying in low), None)
