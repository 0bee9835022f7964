"""What crosses the border between a run's workflow and its activities: arguments, results, failures, events.

Temporal refuses a payload of more than 2 MB, and a workflow whose payload is refused, or that takes two seconds to read
one, does not go on. So what is large is compressed, and what is too large becomes a failure of its step.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from temporalio.exceptions import ActivityError, ApplicationError, ApplicationErrorCategory
from temporalio.exceptions import TimeoutError as ActivityTimeout

from failwell.calls.suppress import catch
from failwell.errors.axes import Category, Certainty
from failwell.errors.report import Scene
from failwell.store.event import from_json, to_json
from failwell.temporal.queues import LARGEST
from failwell.temporal.runs.plan_json import LONGEST, pack, unpack
from failwell.workflows.failure import Failure, derived_id, moment
from failwell.workflows.machine.messages import Begin, Resume
from failwell.workflows.template.names import MISSING

PAGE = 1_000_000
"""Characters of events or output in one reply to a query."""
HEARTBEAT = 10.0
"""Seconds without a sign of life after which a worker counts as dead, and its steps start again."""
_PLAIN = 256_000
"""Bytes up to which a payload stays readable in Temporal's pages."""
_TEXT = "json"
_PACKED = "packed"


def fit(data: dict[str, Any]) -> dict[str, str] | None:
    """`data` as a payload, compressed if it is large; `None` if it is too large.

    It is a text, because Temporal sorts the keys of mappings, and templates see their order.
    """
    text = to_json(data)
    if len(text) <= _PLAIN:
        return {_TEXT: text}
    packed = pack(data) if len(text) <= LONGEST else ""
    return {_PACKED: packed} if 0 < len(packed) <= LARGEST else None


def unfit(payload: Mapping[str, str]) -> dict[str, Any]:
    """The inverse of `fit`."""
    return unpack(payload[_PACKED]) if _PACKED in payload else from_json(payload[_TEXT])


def is_fit(payload: object) -> bool:
    """Whether `fit` made this payload."""
    return isinstance(payload, dict) and (_TEXT in payload or _PACKED in payload)


def too_large(what: str, path: str, *, at: float, run: str) -> Failure:
    """The failure of a step whose input or output does not fit into a payload."""
    return Failure.of(
        "validation.input_invalid",
        f"{what} of `{path}` is too large for Temporal: more than {LONGEST:,} characters, or {LARGEST:,} compressed. "
        "Write it to a file or to storage, and pass its name",
        scene=Scene(run=run, node=path),
        at=moment(at),
        error_id=derived_id(at, run, path, "too large"),
    )


def failure_payload(failure: Failure, lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The failure of a step, with its output up to then and what it has logged."""
    data: dict[str, Any] = {"failure": failure.to_dict()}
    if lines:
        data["lines"] = lines
    if failure.output is not MISSING:
        data["output"] = failure.output
    if failure.usage is not None:
        data["usage"] = dict(failure.usage)
    return data


def step_error(failure: Failure, payload: dict[str, Any]) -> ApplicationError:
    """The error that an activity raises. The machine decides about repeats, so Temporal makes none and logs nothing."""
    return _error(failure, payload, is_benign=True)


def run_error(failure: Failure) -> ApplicationError:
    """The error that a failed run ends with: its report, as `failwell.temporal.plugin` reads it."""
    is_benign = failure.report.category in (Category.CANCELLED, Category.DENIED)
    return _error(failure, failure.report.to_dict(), is_benign=is_benign)


def _error(failure: Failure, detail: dict[str, Any], *, is_benign: bool) -> ApplicationError:
    report = failure.report
    return ApplicationError(
        report.message,
        detail,
        type=report.kind,
        non_retryable=True,
        category=ApplicationErrorCategory.BENIGN if is_benign else ApplicationErrorCategory.UNSPECIFIED,
    )


def activity_failure(
    error: ActivityError, *, at: float, run: str, path: str
) -> tuple[Failure, list[dict[str, Any]]]:
    """The failure of a step whose activity failed, and what the step has logged."""
    cause = error.cause
    scene = Scene(run=run, node=path)
    error_id = derived_id(at, run, path, "activity", error.scheduled_event_id)
    if isinstance(cause, ApplicationError) and cause.details and is_fit(cause.details[0]):
        result, problem = catch(_step_failure, cause.details[0])
        # Whatever a worker sends, the step ends.
        return result if problem is None else (unreadable(path, at=at, run=run), [])
    if isinstance(cause, ActivityTimeout):
        message = f"every worker that started `{path}` died before its end"
        return Failure.of("worker.crashed", message, scene=scene, at=moment(at), error_id=error_id), []
    failure = Failure.from_exception(error if cause is None else cause, scene=scene)
    return replace(failure, report=replace(failure.report, id=error_id, occurred_at=moment(at))), []


def _step_failure(payload: Mapping[str, str]) -> tuple[Failure, list[dict[str, Any]]]:
    """The inverse of `failure_payload`, and of `fit`."""
    data = unfit(payload)
    failure = Failure.from_dict(data["failure"])
    return replace(failure, output=data.get("output", MISSING), usage=data.get("usage")), read_lines(data)


def read_lines(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a step has logged."""
    lines = data.get("lines")
    return (
        [entry for entry in cast("list[Any]", lines) if _is_printed(entry)] if isinstance(lines, list) else []
    )


def _is_printed(entry: Any) -> bool:
    match entry:
        case {"at": int() | float(), "text": str()}:
            return True
        case _:
            return False


def unreadable(path: str, *, at: float, run: str) -> Failure:
    """The failure of a step whose worker has sent what this version does not understand. The step may have run."""
    failure = Failure.of(
        "validation.contract_version_mismatch",
        f"the worker of `{path}` has sent a result that this version of failwell cannot read. "
        "Run the same version on every worker of the task queue",
        scene=Scene(run=run, node=path),
        at=moment(at),
        error_id=derived_id(at, run, path, "unreadable"),
    )
    return replace(failure, report=replace(failure.report, certainty=Certainty.UNKNOWN))


def event_to_json(event: Begin | Resume) -> str:
    """The first event of a run, as text."""
    if isinstance(event, Begin):
        data: dict[str, Any] = {
            "type": "begin", "run": event.run, "file": event.file, "inputs": dict(event.inputs), "metadata": dict(event.metadata),
        }  # fmt: skip
        if event.continues is not None:
            data |= {"continues": dict(event.continues), "state": pack(event.state)}
        return to_json(data)
    return to_json(
        {
            "type": "resume",
            "by": event.by,
            "accepted_changes": event.accepted_changes,
            "limits": dict(event.limits),
        }
    )


def event_from_json(text: str, *, at: float, jitter: float) -> Begin | Resume:
    """The inverse of `event_to_json`, at the time when the workflow begins."""
    data = from_json(text)
    if data["type"] == "begin":
        return Begin(
            at=at,
            jitter=jitter,
            run=data["run"],
            file=data["file"],
            inputs=data["inputs"],
            metadata=data["metadata"],
            continues=data.get("continues"),
            state=unpack(data["state"]) if "state" in data else None,
        )
    return Resume(
        at=at,
        jitter=jitter,
        by=data["by"],
        accepted_changes=data["accepted_changes"],
        limits=data["limits"],
    )
