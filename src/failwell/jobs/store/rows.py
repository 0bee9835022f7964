"""Converts jobs to rows of the store and back; requests and results are JSON."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from json import loads
from pathlib import Path
from typing import Any, cast

from failwell.calls.suppress import suppress
from failwell.errors.report import ErrorReport
from failwell.jobs.job import FOREVER, NO_TIMEOUT, CancelPhase, Job, JobId, JobRequest, JobState, moment
from failwell.jobs.store.records import FREE, Values
from failwell.jobs.workers.protocol import FileHandle
from failwell.processes.wire import decode_text, json_encoder
from failwell.store.event import to_json

_encode = json_encoder(ascii_only=True)


def delete_files(value: Any) -> None:
    """Delete the files of a result that no caller received. Handles only point into the store's folder."""
    if isinstance(value, FileHandle):
        with suppress(OSError, reason="a file that cannot be deleted now is found when old jobs are deleted"):
            Path(value.path).unlink(missing_ok=True)
    elif isinstance(value, Mapping):
        for item in cast("Mapping[str, Any]", value).values():
            delete_files(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            delete_files(item)


def request_to_json(request: JobRequest) -> str:
    """The request as JSON, without default values.

    The idempotency key has its own column.

    Raises:
        NotRecordable: an argument is not JSON.
    """
    fields: dict[str, Any] = {"arguments": request.arguments}
    if request.action != "execute":
        fields["action"] = request.action
    if request.stream:
        fields["stream"] = True
    if request.timeout is not None and request.timeout != NO_TIMEOUT:
        fields["timeout"] = request.timeout
    if request.deadline is not None:
        fields["deadline"] = request.deadline.timestamp()
    if request.not_before is not None:
        fields["not_before"] = request.not_before.timestamp()
    if request.key is not None and request.unique != FOREVER:
        # The column of keys is emptied when the job ends; the record still says which key it had.
        fields["unique"], fields["key"] = request.unique, request.key
    if request.run is not None:
        fields["run"] = request.run
    if request.actor is not None:
        fields["actor"] = request.actor
    if request.control:
        fields["control"] = request.control
    return to_json(fields)


def job_values(job: Job, was: str | None, request: str | None = None, result: str | None = None) -> Values:
    """The row of a job; `was` is the state in which it was stored last, the others are what is known as JSON."""
    return (
        was,
        job.key,
        job.id,
        job.request.instance,
        job.state.value,
        job.request.priority,
        job.submitted,
        job.started,
        job.ended,
        job.attempt,
        job.charged,
        job.losses,
        job.due,
        job.block_reason,
        job.cancelled,
        None if job.cancel_phase is None else job.cancel_phase.value,
        request_to_json(job.request) if request is None else request,
        result_to_json(job.result) if result is None and job.result is not None else result,
        None if job.error is None else job.error.to_json(),
        stored_key(job.request, is_over=job.state.is_final),
        job.deadline,
    )


def stored_key(request: JobRequest, *, is_over: bool) -> str | None:
    """What the column of keys holds: the key, or `FREE` once it may be used again."""
    return FREE if is_over and request.unique != FOREVER and request.key is not None else request.key


def request_from(fields: Mapping[str, Any], instance: str, priority: int, key: str | None) -> JobRequest:
    """The request that `request_to_json` wrote; the last three have columns of their own."""
    return JobRequest(
        instance=instance,
        arguments=fields["arguments"],
        action=fields.get("action", "execute"),
        stream=fields.get("stream", False),
        priority=priority,
        timeout=fields.get("timeout"),
        deadline=_maybe(fields.get("deadline")),
        key=key if "unique" not in fields else fields.get("key"),
        unique=fields.get("unique", FOREVER),
        not_before=_maybe(fields.get("not_before")),
        run=fields.get("run"),
        actor=fields.get("actor"),
        control=fields.get("control", {}),
    )


def read_job(row: Sequence[Any]) -> Job:
    """The job of a row, whose values are in the order of `COLUMNS`."""
    (
        key, job, instance, state, priority, submitted, started, ended, attempt, charged, losses,
        due, reason, cancelled, phase, request, result, error, idempotency_key, _deadline,
    ) = row  # fmt: skip
    fields = cast("dict[str, Any]", loads(request))
    for at in (submitted, started, ended, due, cancelled):
        # Another program may have written an invalid time.
        _maybe(at)
    return Job(
        id=JobId(job),
        request=request_from(fields, instance, priority, idempotency_key),
        state=JobState(state),
        submitted=submitted,
        started=started,
        ended=ended,
        due=due,
        cancelled=cancelled,
        cancel_phase=None if phase is None else CancelPhase(phase),
        attempt=attempt,
        charged=charged,
        losses=losses,
        block_reason=reason,
        result=None if result is None else read_result(result),
        error=None if error is None else ErrorReport.read(error),
        key=key,
        progress=1.0 if state == JobState.COMPLETED else 0.0,
    )


def damaged_job(row: Sequence[Any], error: ErrorReport) -> Job:
    """The job of a row that cannot be read: failed, with the reason, so that listings show it beside the others."""
    key, job, instance, submitted = row[0], row[1], row[2], row[5]
    try:
        moment(submitted)
    except (OverflowError, OSError, ValueError):
        submitted = 0.0
    return Job(
        id=JobId(job),
        request=JobRequest(instance=instance, arguments={}),
        state=JobState.FAILED,
        submitted=submitted,
        error=error,
        key=key,
    )


def result_to_json(value: Any) -> str:
    """The result of a job as JSON, with files as handles."""
    try:
        text = _encode(value)
    except (TypeError, ValueError, RecursionError):
        # It has files, or is not JSON; that says what is wrong.
        return to_json(_encoded(value))
    # A key of it may look like one of ours.
    return text if '"$' not in text else to_json(_encoded(value))


def read_result(text: str) -> Any:
    """The result that `result_to_json` wrote."""
    value = decode_text(text)
    if '"$file"' not in text and '"$plain"' not in text:
        return value
    return _decoded(value)


_PLAIN = frozenset({str, int, float, bool, type(None)})
_WORDS = ("$file", "$plain")
"""Keys with a meaning if they are the only key of a table. A result that has such a table is wrapped in `$plain`:
what a capability returns must never be read as the handle of a file that it did not write.
"""


def _encoded(value: Any) -> Any:
    if isinstance(value, FileHandle):
        return {"$file": {"path": value.path, "size": value.size}}
    # Most items are plain values; the check here saves a call for each.
    if isinstance(value, dict | Mapping):
        fields = cast("Mapping[str, Any]", value)
        table = {key: item if type(item) in _PLAIN else _encoded(item) for key, item in fields.items()}
        return {"$plain": table} if len(table) == 1 and next(iter(table)) in _WORDS else table
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [item if type(item) in _PLAIN else _encoded(item) for item in items]
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        file = _file(table["$file"]) if len(table) == 1 and "$file" in table else None
        if file is not None:
            return file
        if len(table) == 1 and "$plain" in table:
            table = cast("dict[str, Any]", table["$plain"])
        return {key: _decoded(item) for key, item in table.items()}
    if isinstance(value, list):
        return [_decoded(item) for item in cast("list[Any]", value)]
    return value


def _file(fields: Any) -> FileHandle | None:
    """The stored handle; `None` if the row holds something else, as another program may have written it."""
    table = cast("dict[str, Any]", fields) if isinstance(fields, dict) else {}
    path, size = table.get("path"), table.get("size")
    return FileHandle(path=path, size=size) if isinstance(path, str) and isinstance(size, int) else None


def _maybe(at: float | None) -> datetime | None:
    return None if at is None else moment(at)
