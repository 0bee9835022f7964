"""torch: memory that ran out, with the numbers it gives, and processes that died together.

`torch.OutOfMemoryError` has its sizes in prose. Older releases and some calls raise a bare
`RuntimeError` with the same words, which `places` reads.
"""

from failwell.adapters.classification import Classification
from failwell.adapters.classify import shortfall_of
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import text_of
from failwell.adapters.traceback_frames import device_in, memory_in
from failwell.adapters.vendor_tables import rows


def _memory(error: BaseException) -> Classification:
    return Classification.from_rule(
        kind="resource.gpu_memory",
        rule="torch.OutOfMemoryError",
        saw="OutOfMemoryError",
        resource_shortfall=shortfall_of("resource.gpu_memory", text_of(error)),
    )


def _accelerator(error: BaseException) -> Classification:
    full = memory_in(error)
    if full is not None:
        return full
    return device_in(error) or Classification.from_rule(
        kind="worker.crashed", rule="torch.AcceleratorError", saw="AcceleratorError"
    )


def _distributed(error: BaseException) -> Classification:
    """A failure among several processes: NCCL may say what it was; otherwise another process may have gone on."""
    name = type(error).__name__
    return device_in(error) or Classification.from_rule(
        kind="provider.outcome_unknown", rule=f"torch.{name}", saw=name
    )


def raised(error: BaseException) -> Classification | None:
    """A built-in exception that came out of torch: most of its errors are a bare `RuntimeError` or `AssertionError`."""
    return memory_in(error) or device_in(error)


TABLES: dict[str, Table] = {
    "torch": {
        "OutOfMemoryError": _memory,
        "AcceleratorError": _accelerator,
        **dict.fromkeys(("DistBackendError", "DistNetworkError", "DistStoreError"), _distributed),
        **rows("torch", {"worker.crashed": "ChildFailedError ProcessExitedException ProcessRaisedException"}),
    }
}
