"""multiprocessing, pickle and threading: what pools of processes and threads raise beside the failures of their work."""

from failwell.adapters.reading import Reading
from failwell.adapters.registry import Table


def _is(module: str, kind: str, *names: str) -> Table:
    return {name: Reading.from_rule(kind=kind, rule=f"{module}.{name}", saw=name) for name in names}


_PICKLE: Table = {
    **_is("pickle", "internal.bug", "PickleError", "PicklingError"),
    **_is("pickle", "validation.shape_invalid", "UnpicklingError"),
}

TABLES: dict[str, Table] = {
    "multiprocessing": {
        **_is("multiprocessing", "provider.outcome_unknown", "TimeoutError"),
        **_is("multiprocessing", "provider.auth", "AuthenticationError"),
        **_is("multiprocessing", "internal.bug", "BufferTooShort", "MaybeEncodingError"),
        **_is("multiprocessing", "worker.crashed", "ProcessError"),
        # It prints the failure of another process, which is not here any more.
        **_is("multiprocessing", "internal.unknown", "RemoteError"),
    },
    "pickle": _PICKLE,
    "_pickle": _PICKLE,
    "threading": _is("threading", "internal.bug", "BrokenBarrierError"),
}
