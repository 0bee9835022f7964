"""Ids and fingerprints of reports, and a count of the failures that no rule recognised.

The count is held per process, by fingerprint, within bounds. It holds names of classes, never messages.
"""

import os
import time
from dataclasses import replace
from datetime import datetime
from threading import Lock

from failwell.errors.causes import module_name, type_name
from failwell.errors.frozen import frozen
from failwell.errors.lazy_regex import lazy_regex
from failwell.errors.report import ErrorReport

_DIGITS = 16
_random_parts: list[str] = []
if hasattr(os, "register_at_fork"):
    # A child process must not use the parts that its parent uses.
    os.register_at_fork(after_in_child=_random_parts.clear)


def new_id() -> str:
    """A new id for a report. The first part is the time in milliseconds, the second is random."""
    try:
        # Taking one off the end is a single step, so no two threads get the same.
        random_part = _random_parts.pop()
    except IndexError:
        # To ask the system for each id would take longer than all else that is done for it.
        digits = os.urandom(64 * _DIGITS // 2).hex()
        random_part, *rest = [digits[at : at + _DIGITS] for at in range(0, len(digits), _DIGITS)]
        _random_parts.extend(rest)
    return f"err_{time.time_ns() // 1_000_000:011x}{random_part}"


_NUMBERS = lazy_regex(r"0x[0-9a-fA-F]+|[0-9a-fA-F]{8,}|\d+")
_MOST_FINGERPRINTS = 4096
_fingerprints: dict[tuple[str | int | None, ...], str] = {}


def fingerprint(*parts: str | int | None) -> str:
    """The fingerprint of a report: a versioned hash over `parts`, with every number inside a text blanked."""
    known = _fingerprints.get(parts)
    if known is None:
        if len(_fingerprints) >= _MOST_FINGERPRINTS:
            _fingerprints.clear()
        known = _fingerprints[parts] = _hash(parts)
    return known


def _hash(parts: tuple[str | int | None, ...]) -> str:
    try:
        # `hashlib` brings OpenSSL along, which takes a quarter of the time of a bare start.
        from _blake2 import blake2s
    except ImportError:
        from hashlib import blake2s

    text = "\x1f".join(_blanked(part) for part in parts)
    return "f1-" + blake2s(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _blanked(part: str | int | None) -> str:
    if part is None:
        return ""
    # A status is a number that says what happened; a number inside a text says when, which or how many.
    return str(part) if isinstance(part, int) else _NUMBERS.sub("#", part)


UNKNOWN = frozenset({"internal.unknown", "provider.unknown"})
_MOST = 256
_lock = Lock()
_seen: dict[str, "Unclassified"] = {}


@frozen
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
                error_type=f"{module_name(error) or '?'}.{type_name(error)}"[:200],
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
