"""multiprocessing, pickle and threading: what pools of processes and threads raise beside the failures of their work."""

from failwell.adapters.registry import Table
from failwell.adapters.vendor_tables import rows

_PICKLE: Table = {
    **rows(
        "pickle",
        {
            "internal.bug": "PickleError PicklingError",
            "validation.shape_invalid": "UnpicklingError",
        },
    ),
}

TABLES: dict[str, Table] = {
    "multiprocessing": {
        **rows(
            "multiprocessing",
            {
                "provider.outcome_unknown": "TimeoutError",
                "provider.auth": "AuthenticationError",
                "internal.bug": "BufferTooShort MaybeEncodingError",
                "worker.crashed": "ProcessError",
            },
        ),
        # It prints the failure of another process, which is not here any more.
        **rows("multiprocessing", {"internal.unknown": "RemoteError"}),
    },
    "pickle": _PICKLE,
    "_pickle": _PICKLE,
    "threading": rows("threading", {"internal.bug": "BrokenBarrierError"}),
}
