"""torch: memory that ran out, with the numbers it gives, and processes that died together.

`torch.OutOfMemoryError` has its sizes in prose. Older releases and some calls raise a bare
`RuntimeError` with the same words, which `places` reads.
"""

from failwell.adapters.places import memory_in
from failwell.adapters.reading import Reading
from failwell.adapters.registry import Table


def _memory(error: BaseException) -> Reading:
    return memory_in(error) or Reading(
        kind="resource.gpu_memory", rule="torch.OutOfMemoryError", saw="OutOfMemoryError"
    )


def _accelerator(error: BaseException) -> Reading:
    # After most of these the process's device context is gone; a fresh process may work.
    return memory_in(error) or Reading(
        kind="worker.crashed", rule="torch.AcceleratorError", saw="AcceleratorError"
    )


def _is(kind: str, *names: str) -> Table:
    return {name: Reading(kind=kind, rule=f"torch.{name}", saw=name) for name in names}


TABLES: dict[str, Table] = {
    "torch": {
        "OutOfMemoryError": _memory,
        "AcceleratorError": _accelerator,
        **_is("provider.outcome_unknown", "DistBackendError", "DistNetworkError", "DistStoreError"),
        **_is("worker.crashed", "ChildFailedError", "ProcessExitedException", "ProcessRaisedException"),
    }
}
