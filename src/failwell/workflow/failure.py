"""A failure as it travels through a run: an envelope for authors, a report for everybody else.

It is plain JSON, because it lies in the journal and crosses every boundary as it is. The report is
made once, where the failure happened; the machine adds frames and never changes what it says.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from failwell.fault.axes import Blame, Category
from failwell.fault.base import Fault
from failwell.fault.facts import NotBefore
from failwell.fault.registry import find_kind
from failwell.report.describe import describe
from failwell.report.record import ErrorReport, Scene
from failwell.report.redact import cut, redact_text, redact_value
from failwell.report.wire import to_dict

Failure = dict[str, Any]
"""`envelope` {kind, message, details}, `report`, `typed`, and `frames` from the leaf up."""


def failure(
    kind: str,
    message: str,
    *,
    details: Mapping[str, Any] | None = None,
    typed: bool = False,
    category: Category | None = None,
    not_before: NotBefore | None = None,
    scene: Scene | None = None,
    at: datetime | None = None,
    error_id: str | None = None,
) -> Failure:
    """The failure of `kind`; `category` is for an author's kind that the registry does not know."""
    told = cut(redact_text(message))
    facts: dict[str, Any] = redact_value(dict(details or {}))
    is_known = find_kind(kind) is not None
    fault = Fault(kind=kind, message=told, details=facts, not_before=not_before)
    if not is_known:
        # An author's kind speaks of the work, not of us.
        fault.blame = Blame.WORKFLOW
    report = describe(fault, scene=scene, at=at)
    if error_id is not None:
        report = replace(report, id=error_id)
    if category is not None and not is_known:
        report = replace(report, category=category, retryable=category is Category.TRANSIENT)
    return of_report(report, details=facts, typed=typed)


def of_report(
    report: ErrorReport, *, details: Mapping[str, Any] | None = None, typed: bool = False
) -> Failure:
    """The failure that `report` tells of."""
    return {
        "envelope": {
            "kind": report.kind,
            "message": report.message,
            "details": dict(details or report.details),
        },
        "report": to_dict(report),
        "typed": typed,
        "frames": [],
    }


def of_exception(error: BaseException, *, scene: Scene | None = None, typed: bool = False) -> Failure:
    """The failure that an exception stands for, described where it was caught."""
    return of_report(describe(error, scene=scene), typed=typed)


def kind_of(failed: Failure) -> str:
    """Its kind."""
    kind: str = failed["envelope"]["kind"]
    return kind


def report_of(failed: Failure) -> ErrorReport:
    """Its report, with the boundaries that it has crossed by now."""
    return ErrorReport.read({**failed["report"], "frames": _frames(failed["frames"])})


def moment(at: float) -> datetime:
    """Seconds since 1970 as an aware time."""
    return datetime.fromtimestamp(at, UTC)


def derived_id(at: float, *parts: object) -> str:
    """An id for a failure that the machine itself found: the same facts give the same id."""
    seed = "\0".join(str(part) for part in parts).encode("utf-8", "surrogatepass")
    return f"err_{int(at * 1000):011x}{blake2b(seed, digest_size=8).hexdigest()}"


def _frames(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    for frame in frames:
        kept = {key: value for key, value in frame.items() if value is not None and key != "node"}
        told.append({"boundary": "node", "name": frame["node"], **kept})
    return told
