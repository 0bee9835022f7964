"""The report of a saved failure: a row of a log, a reply in a file, a printed line.

It is judged by the very rules that judge a live exception, from the same facts. What the row says in
prose is read for that and not recorded.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from failwell.adapters.classification import Classification
from failwell.adapters.describe import describe
from failwell.adapters.log_records.reading import NO_LIBRARY, is_misuse, read_saved
from failwell.adapters.origin import ORIGINS, seen_from
from failwell.adapters.retry_after import LARGEST_SKEW, instant
from failwell.errors.facts import Origin
from failwell.errors.fault import Fault
from failwell.errors.headers import lower_headers
from failwell.errors.redact import redact_text
from failwell.errors.report import Cause, ErrorReport, Evidence, origin_of

_MOST_CAUSES = 12
_LABEL_CAP = 200


class SavedFailure(Fault):
    """A failure that was written down."""


def classify(
    row: Mapping[str, Any],
    *,
    model: str | None = None,
    origin: Origin | None = None,
    at: datetime | None = None,
) -> ErrorReport:
    """Classify a saved failure, as `describe` classifies a live one.

    Args:
        row: What is known, under any of these names: `provider`, `sdk`, `transport` (`http`, `stream`,
            `connection`, `local`), `http_status`, `headers`, `body` (parsed or as text),
            `exception_class` (with its module), `message`, `cause_chain` (a list of `class` and
            `message`, outermost first). Other names are not looked at.
        model: Which model was called.
        origin: Where it arose, as for `describe`. By default in a `call`, or in `code` where the row's `transport` is
            `local`.
        at: When it happened; by default when the reply says it was sent, or else now. A `Date` in the future
            is ignored.
    """
    headers = lower_headers(row.get("headers") or {})
    when = at or _sent_at(headers.get("date", "")) or datetime.now(UTC)
    name = str(row.get("exception_class") or "").rpartition(".")[2]
    reading = seen_from(
        read_saved(row, when),
        origin if origin in ORIGINS else ("code" if row.get("transport") == "local" else "call"),
        name,
        by_library=row.get("sdk") not in NO_LIBRARY and not is_misuse(str(row.get("message") or "")),
    )
    report = describe(SavedFailure(**fields_of(reading)), model=model, at=when)
    return replace(
        report,
        origin=reading.origin or origin_of(reading.kind),
        error_type=redact_text(name, _LABEL_CAP) or report.error_type,
        causes=tuple(_causes(row.get("cause_chain"))),
        evidence=evidence_of(reading),
    )


def _sent_at(date: str) -> datetime | None:
    """When a reply says that it was sent, unless it says that it was sent in the future."""
    at = instant(date)
    return None if at is None or at > datetime.now(UTC) + LARGEST_SKEW else at


def fields_of(reading: Classification) -> dict[str, Any]:
    """What an adapter read, as the fields of a fault that stands for it."""
    return {
        "kind": reading.kind,
        "message": reading.message,
        "caller_facing": False,
        "certainty": reading.certainty,
        "blame": reading.blame,
        "retryable": reading.retryable,
        "provider": reading.provider,
        "model": reading.model,
        "provider_metadata": reading.provider_metadata,
        "user_action": reading.user_action,
        "not_before": reading.not_before,
        "fields_invalid": None if reading.fields_invalid is None else list(reading.fields_invalid),
        "resource_shortfall": reading.resource_shortfall,
        "details": dict(reading.details) or None,
    }


def evidence_of(reading: Classification) -> tuple[Evidence, ...]:
    """The evidence of a reading of text that came from elsewhere, masked."""
    first, *runners_up = reading.evidence
    return (replace(first, saw=redact_text(first.saw, _LABEL_CAP)), *runners_up)


def _causes(chain: object) -> list[Cause]:
    links = cast("list[object]", chain)[:_MOST_CAUSES] if isinstance(chain, list) else []
    names = [
        str(cast("Mapping[str, Any]", link).get("class") or "") for link in links if isinstance(link, Mapping)
    ]
    return [
        Cause(type=redact_text(name.rpartition(".")[2], _LABEL_CAP), level=level)
        for level, name in enumerate(filter(None, names), 1)
    ]
