"""Counts the failures that no rule knew, so that what is missing shows itself in a running system.

Kept per process, by fingerprint, within bounds. Names of classes are held and nothing they said.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock

from failwell.fault.links import type_name
from failwell.report.record import ErrorReport

UNKNOWN = frozenset({"internal.unknown", "provider.unknown"})
_MOST = 256
_lock = Lock()
_seen: dict[str, "Unclassified"] = {}


@dataclass(frozen=True, slots=True)
class Unclassified:
    """One failure that no rule knew, and how often it was met."""

    fingerprint: str
    error_type: str
    """The class, with its module."""
    kind: str
    provider: str | None
    count: int
    first: datetime
    last: datetime


def note(error: BaseException, report: ErrorReport) -> None:
    """Count `report`, which nothing classified."""
    with _lock:
        known = _seen.get(report.fingerprint)
        if known is not None:
            _seen[report.fingerprint] = replace(known, count=known.count + 1, last=report.occurred_at)
        elif len(_seen) < _MOST:
            _seen[report.fingerprint] = Unclassified(
                fingerprint=report.fingerprint,
                error_type=f"{_module(error)}.{type_name(error)}"[:200],
                kind=report.kind,
                provider=report.provider,
                count=1,
                first=report.occurred_at,
                last=report.occurred_at,
            )


def unclassified(*, forget: bool = False) -> list[Unclassified]:
    """What no rule knew since the process began, the most frequent first; `forget` begins anew."""
    with _lock:
        entries = sorted(_seen.values(), key=lambda entry: (-entry.count, entry.first))
        if forget:
            _seen.clear()
    return entries


def _module(error: BaseException) -> str:
    module = type.__getattribute__(type(error), "__module__")
    return module if isinstance(module, str) else "?"
