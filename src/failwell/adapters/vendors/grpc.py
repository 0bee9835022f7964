"""grpc and grpc.aio: the status word, the details, and the trailing metadata of a call that failed."""

from typing import Any

from failwell.adapters.classification import Classification
from failwell.adapters.protocols.rpc import read_rpc
from failwell.adapters.registry import Table
from failwell.adapters.vendor_tables import cause_of, rows
from failwell.errors.foreign_objects import safe_call, safe_getattr, str_attr

_PACKED = "grpc-status-details-bin"


def _read(error: BaseException) -> Classification | None:
    word = str_attr(_answer(error, "code"), "name")
    if word is None:
        # The base class itself is also what interceptors and test doubles raise.
        cause = cause_of(error)
        return (
            None
            if cause is None
            else Classification.from_rule(kind="provider.unknown", rule="grpc.RpcError", inner=cause)
        )
    details_text = _answer(error, "details")
    trailers = list(_pairs(_answer(error, "trailing_metadata")))
    packed = next((value for name, value in trailers if name == _PACKED and isinstance(value, bytes)), b"")
    return read_rpc(
        word,
        details_text[:4_000] if isinstance(details_text, str) else "",
        sdk="grpc",
        name=type(error).__name__,
        headers={name: value for name, value in trailers if isinstance(value, str)},
        details=packed,
        cancelled_here=_answer(error, "cancelled") is True,
    )


def _answer(error: BaseException, name: str) -> Any:
    """What a method of a finished call returns; a running call is never waited for."""
    method = safe_getattr(error, name)
    is_done = safe_getattr(error, "done")
    if not callable(method) or (callable(is_done) and not safe_call(is_done, None)):
        return None
    return safe_call(method, None)


def _pairs(metadata: Any) -> list[tuple[str, Any]]:
    return safe_call(_lower_pairs, None, metadata) or []


def _lower_pairs(metadata: Any) -> list[tuple[str, Any]]:
    return [(str(pair[0]).lower(), pair[1]) for pair in list(metadata or ())[:64]]


TABLES: dict[str, Table] = {
    "grpc": {
        "RpcError": _read,
        **rows(
            "grpc",
            {
                "provider.outcome_unknown": "FutureTimeoutError",
                "cancel.run": "FutureCancelledError",
                "internal.bug": "UsageError InternalError",
                "provider.unknown": "BaseError AbortError",
            },
        ),
    }
}
