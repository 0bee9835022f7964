"""Listing runs: the query, and a row of its answer as a `Run`."""

from collections.abc import Sequence
from typing import Any, TypeVar

from failwell.journal.event import decoded
from failwell.journal.store import Run, Subject

COLUMNS = """runs.id, subject, workflow, file, digest, started, status, ended, blocked_until, gates, kind, message, node,
    pid, host, metadata,
    (SELECT at FROM events WHERE id >= key << 32 AND id < (key + 1) << 32 ORDER BY id DESC LIMIT 1),
    (SELECT seq + 1 FROM events WHERE id >= key << 32 AND id < (key + 1) << 32 ORDER BY id DESC LIMIT 1)"""
_HIGHEST = "\x7f"
_T = TypeVar("_T")


def storable(value: _T) -> _T | str:
    """`value`, with what no UTF-8 can say written as escapes if it is text: names of files may hold such."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def listed(
    subject: Subject,
    statuses: Sequence[str],
    workflow: str | None,
    since: float | None,
    prefix: str,
    limit: int | None,
) -> tuple[str, list[Any]]:
    """The statement that lists the runs that fit, and its values."""
    wanted = ["subject = ?"]
    values: list[Any] = [subject]
    if statuses:
        wanted.append(f"status IN ({','.join('?' * len(statuses))})")
        values += statuses
    if workflow is not None:
        wanted.append("workflow = ?")
        values.append(workflow)
    if since is not None:
        wanted.append("started >= ?")
        values.append(since)
    if prefix:
        # A range instead of LIKE: `_` is a letter of run ids and a wildcard there.
        wanted.append("id >= ? AND id < ?")
        values += (prefix, prefix + _HIGHEST)
    values.append(-1 if limit is None else limit)
    return (
        f"SELECT {COLUMNS} FROM runs WHERE {' AND '.join(wanted)} ORDER BY started DESC, id DESC LIMIT ?",  # noqa: S608  (constants and marks)
        values,
    )


def read_run(row: Sequence[Any]) -> Run:
    """One row of `COLUMNS`."""
    *fields, metadata, updated, events = row
    names = (
        "id", "subject", "workflow", "file", "digest", "started", "status", "ended", "blocked_until", "gates",
        "kind", "message", "node", "pid", "host",
    )  # fmt: skip
    found: dict[str, Any] = dict(zip(names, fields, strict=True))
    return Run(
        **found,
        metadata=decoded(metadata),
        updated=found["started"] if updated is None else updated,
        events=events or 0,
    )
