"""The report of a failure that is known by its kind: a script's typed error, or a limit that a run reached.

No exception is involved, so nothing has to be read or classified. The report is the one that
`describe` would make of a `Fault` with the same kind, message and details.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from failwell.fault.axes import Blame, Category, Certainty
from failwell.fault.facts import NotBefore
from failwell.fault.registry import find_kind
from failwell.report.describe import advice_of
from failwell.report.fingerprint import fingerprint
from failwell.report.identity import new_id
from failwell.report.record import NOWHERE, ErrorReport, Evidence, Scene
from failwell.report.redact import masked, redact_value, refresh
from failwell.report.sanitize import in_utc, place, usable, wait
from failwell.report.scene import current_scene, merge

_TYPE = "Fault"
_DECLARED = (Evidence(rule="declared", basis="declared", saw=_TYPE),)


def report_of_kind(
    kind: str,
    message: str,
    *,
    details: Mapping[str, Any] | None = None,
    category: Category | None = None,
    not_before: NotBefore | None = None,
    scene: Scene | None = None,
    at: datetime | None = None,
    error_id: str | None = None,
) -> ErrorReport:
    """The report of a failure of `kind`, with secrets masked and every text capped.

    Args:
        kind: A kind of the registry, or an author's own.
        message: One sentence for a person.
        details: JSON.
        category: What an author's own kind means; the registry decides for its kinds.
        not_before: The server-requested delay.
        scene: Where it happened.
        at: When it happened; now, by default.
        error_id: The report's id; a new one, by default.
    """
    refresh()
    when = in_utc(at)
    known = find_kind(kind)
    delay = None if not_before is None else usable(wait, not_before, when)
    where = merge(NOWHERE if scene is None else scene, current_scene())
    if known is None:
        # An author's kind speaks of the work, not of us.
        certainty, blame, title, summary = Certainty.UNKNOWN, Blame.WORKFLOW, kind, kind
        category = category or Category.UNKNOWN
        retryable = category is Category.TRANSIENT
    else:
        certainty, blame, title, summary = known.certainty, known.blame, known.title, known.summary
        category = known.category
        retryable = category.retryable
    return ErrorReport(
        id=error_id or new_id(),
        kind=kind,
        category=category,
        certainty=certainty,
        blame=blame,
        retryable=retryable,
        message=masked(message).strip() or summary,
        title=title,
        error_type=_TYPE,
        user_action=advice_of(known, delay),
        fingerprint=fingerprint(kind, _TYPE, None, None, None, ""),
        occurred_at=when,
        caller_facing=True,
        scene=usable(place, where) or NOWHERE,
        not_before=delay,
        details=redact_value(dict(details)) if details else {},
        evidence=_DECLARED,
    )
