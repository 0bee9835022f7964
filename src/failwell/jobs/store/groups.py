"""Groups of jobs in the store: their members, their counts, and the job that follows the last end.

The counts change in the transaction that records an end. The transaction that records the last one also submits the
callback, so it is submitted exactly once, whatever dies in between.
"""

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from json import loads
from time import time
from typing import Any, NamedTuple, cast

from failwell.errors.faults import CapabilityInputError
from failwell.errors.frozen import frozen
from failwell.jobs.job import Job, JobRequest, JobState, new_job
from failwell.jobs.store.records import Values
from failwell.jobs.store.rows import request_from, request_to_json
from failwell.store.event import to_json

MOST_FAILURES = 1_000
"""Ids of failed jobs that a callback gets."""
_FINAL = tuple(state.value for state in JobState if state.is_final)
_ENDED = 8
"""The position of the time of the end in `Values`."""
_COLUMNS = "id, created, jobs, completed, failed, cancelled, sealed, ended, callback, callback_job"


@frozen
class JobGroup:
    """Jobs that were submitted together."""

    id: str
    created: float
    jobs: int
    completed: int
    failed: int
    cancelled: int
    is_sealed: bool
    """Whether all of its jobs are submitted. A group whose submission was interrupted is not."""
    ended: float | None
    callback: JobRequest | None
    callback_job: str | None
    """The job that was submitted when the last one had ended."""

    @property
    def left(self) -> int:
        """How many of its jobs have not ended."""
        return self.jobs - self.completed - self.failed - self.cancelled


class GroupPart(NamedTuple):
    """A part of a group: new jobs are added to it in the commit that stores them."""

    id: str
    callback: JobRequest | None = None
    is_last: bool = True


def add_members(connection: sqlite3.Connection, part: GroupPart, keys: Sequence[int]) -> None:
    """Add jobs to a group, which is created if it does not exist.

    Raises:
        CapabilityInputError: the group is complete.
    """
    connection.execute(
        "INSERT OR IGNORE INTO job_groups VALUES (NULL, ?, ?, 0, 0, 0, 0, 0, NULL, ?, NULL)",
        (part.id, time(), None if part.callback is None else _callback_to_json(part.callback)),
    )
    group, is_sealed = connection.execute(
        "SELECT key, sealed FROM job_groups WHERE id = ?", (part.id,)
    ).fetchone()
    if is_sealed:
        raise CapabilityInputError(
            f"group `{part.id}` is complete; give the new jobs another group", fields_invalid=["group"]
        )
    connection.executemany("INSERT INTO job_group_members VALUES (?, ?)", [(key, group) for key in keys])
    connection.execute(
        "UPDATE job_groups SET jobs = jobs + ?, sealed = ? WHERE key = ?", (len(keys), part.is_last, group)
    )


def finish_groups(
    connection: sqlite3.Connection, moved: Sequence[Values], part: GroupPart | None
) -> list[Job]:
    """Count the ends among `moved`; returns the callbacks of the groups that have ended with them."""
    ended = [job for job in moved if job[4] in _FINAL and job[0] not in _FINAL]
    if not ended and part is None:
        return []
    changed: Counter[tuple[int, str]] = Counter()
    for job in ended:
        row = connection.execute(
            "SELECT group_key FROM job_group_members WHERE job = ?", (job[1],)
        ).fetchone()
        if row is not None:
            changed[row[0], job[4]] += 1
    for (group, state), number in changed.items():
        connection.execute(f"UPDATE job_groups SET {state} = {state} + ? WHERE key = ?", (number, group))  # noqa: S608  (a state)
    groups = {group for group, _ in changed}
    if part is not None:
        groups.add(connection.execute("SELECT key FROM job_groups WHERE id = ?", (part.id,)).fetchone()[0])
    at = max((job[_ENDED] or 0.0 for job in ended), default=0.0) or time()
    return [job for group in sorted(groups) if (job := _finish(connection, group, at)) is not None]


def _finish(connection: sqlite3.Connection, key: int, at: float) -> Job | None:
    row = connection.execute(
        f"""SELECT {_COLUMNS} FROM job_groups WHERE key = ? AND sealed AND ended IS NULL
            AND jobs = completed + failed + cancelled""",  # noqa: S608  (constants)
        (key,),
    ).fetchone()
    if row is None:
        return None
    group = read_group(row)
    callback = None
    if group.callback is not None:
        failures = [
            job
            for (job,) in connection.execute(
                """SELECT id FROM jobs JOIN job_group_members ON job = key
                    WHERE group_key = ? AND state = 'failed' ORDER BY key LIMIT ?""",
                (key, MOST_FAILURES),
            )
        ]
        callback = new_job(_with_counts(group.callback, group, failures), at)
    connection.execute(
        "UPDATE job_groups SET ended = ?, callback_job = ? WHERE key = ?",
        (at, None if callback is None else callback.id, key),
    )
    return callback


def _with_counts(request: JobRequest, group: JobGroup, failures: Sequence[str]) -> JobRequest:
    facts = {
        "id": group.id,
        "jobs": group.jobs,
        "completed": group.completed,
        "failed": group.failed,
        "cancelled": group.cancelled,
        "failures": list(failures),
    }
    return replace(request, arguments={**request.arguments, "group": facts}, key=f"group/{group.id}")


def _callback_to_json(request: JobRequest) -> str:
    fields = loads(request_to_json(request))
    return to_json({**fields, "instance": request.instance, "priority": request.priority})


def read_group(row: Sequence[Any]) -> JobGroup:
    """The group of a row."""
    name, created, jobs, completed, failed, cancelled, sealed, ended, callback, callback_job = row
    request = None
    if callback is not None:
        fields = cast("Mapping[str, Any]", loads(callback))
        request = request_from(fields, fields["instance"], fields["priority"], None)
    return JobGroup(
        id=name,
        created=created,
        jobs=jobs,
        completed=completed,
        failed=failed,
        cancelled=cancelled,
        is_sealed=bool(sealed),
        ended=ended,
        callback=request,
        callback_job=callback_job,
    )


def groups_query(name: str | None, limit: int | None) -> tuple[str, tuple[Any, ...]]:
    """The query for one group, or for all of them, newest first."""
    where, values = ("", ()) if name is None else (" WHERE id = ?", (name,))
    return f"SELECT {_COLUMNS} FROM job_groups{where} ORDER BY key DESC LIMIT ?", (  # noqa: S608  (constants)
        *values,
        -1 if limit is None else limit,
    )


def delete_members(connection: sqlite3.Connection, keys: Sequence[int]) -> None:
    """Forget that deleted jobs belonged to groups, and the ended groups of which none is left."""
    marks = ",".join("?" * len(keys))
    groups = [
        row[0]
        for row in connection.execute(
            f"SELECT DISTINCT group_key FROM job_group_members WHERE job IN ({marks})",  # noqa: S608  (constants)
            keys,
        )
    ]
    if not groups:
        return
    connection.execute(f"DELETE FROM job_group_members WHERE job IN ({marks})", keys)  # noqa: S608  (constants)
    connection.executemany(
        """DELETE FROM job_groups WHERE key = ? AND ended IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM job_group_members WHERE group_key = job_groups.key)""",
        [(group,) for group in groups],
    )
