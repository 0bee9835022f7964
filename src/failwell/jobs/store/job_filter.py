"""Which jobs a listing, a total or a bulk command is about, and the SQL condition for it."""

from typing import Any, NamedTuple

from failwell.errors.frozen import frozen

RETRY_KEY = "retry/"
"""The key of the first retry of a job is this and the id of the job, so that a job is not retried twice by accident."""


@frozen
class JobFilter:
    """A choice of stored jobs. What is empty or `None` matches all."""

    states: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    """Kinds of the last error; one that ends in a dot is a prefix, as in a policy."""
    fingerprint: str | None = None
    """Of the last error; the beginning of one is enough."""
    since: float | None = None
    """Ended at this time or later; for jobs that have not ended, submitted. Seconds since 1970."""
    until: float | None = None
    """Ended, or submitted, before this time."""
    group: str | None = None
    is_retried: bool | None = None
    """Whether the job was retried: submitted again as a new job."""


class JobTotal(NamedTuple):
    """How many jobs have one status, kind of error and instance."""

    state: str
    kind: str | None
    instance: str
    jobs: int
    latest: float
    """When the latest of them ended, or was submitted."""


def condition(chosen: JobFilter) -> tuple[str, list[Any]]:
    """The SQL condition of a filter, and its values."""
    terms: list[str] = []
    values: list[Any] = []

    def add(term: str, *of: Any) -> None:
        terms.append(term)
        values.extend(of)

    if chosen.states:
        add(f"state IN ({_marks(chosen.states)})", *chosen.states)
    if chosen.instances:
        add(f"instance IN ({_marks(chosen.instances)})", *chosen.instances)
    if chosen.kinds:
        # `error IS NOT NULL` lets SQLite use the index.
        choices = " OR ".join(
            "(kind >= ? AND kind < ?)" if kind.endswith(".") else "kind = ?" for kind in chosen.kinds
        )
        bounds = [
            bound
            for kind in chosen.kinds
            for bound in ((kind, f"{kind[:-1]}/") if kind.endswith(".") else (kind,))
        ]
        add(f"error IS NOT NULL AND ({choices})", *bounds)
    if chosen.fingerprint is not None:
        add(
            "error IS NOT NULL AND fingerprint >= ? AND fingerprint < ?",
            chosen.fingerprint,
            f"{chosen.fingerprint}\U0010ffff",
        )
    if chosen.since is not None:
        add("coalesce(ended, submitted) >= ?", chosen.since)
    if chosen.until is not None:
        add("coalesce(ended, submitted) < ?", chosen.until)
    if chosen.group is not None:
        add(
            """key IN (SELECT job FROM job_group_members
                WHERE group_key = (SELECT key FROM job_groups WHERE id = ?))""",
            chosen.group,
        )
    if chosen.is_retried is not None:
        negation = "" if chosen.is_retried else "NOT "
        add(f"{negation}EXISTS (SELECT 1 FROM jobs AS later WHERE later.once = ? || jobs.id)", RETRY_KEY)  # noqa: S608  (constants)
    return " AND ".join(terms) or "1", values


def _marks(values: tuple[str, ...]) -> str:
    return ",".join("?" * len(values))
