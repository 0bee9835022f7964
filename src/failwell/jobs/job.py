"""A job as values: its request, its state and its result. Requests are checked before they are stored, all mistakes at once."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from math import isfinite
from time import time
from typing import Any, Literal, NewType, TypedDict, cast

from failwell.errors.faults import CapabilityCancelledError, CapabilityInputError
from failwell.errors.frozen import frozen
from failwell.errors.report import ErrorReport
from failwell.jobs.faults import NotOver
from failwell.jobs.job_error import job_error
from failwell.jobs.manifest import Manifest
from failwell.jobs.worker_process.values import DEEPEST, is_too_deep
from failwell.processes.wire import LARGEST, encode_text, json_encoder

JobId = NewType("JobId", str)

NO_ARGUMENTS: Mapping[str, Any] = {}
DEFAULT_TIMEOUT = 3600.0
"""Seconds that one attempt may run if neither the job nor its manifest says."""
NO_TIMEOUT: Literal["none"] = "none"

FOREVER = "forever"
UNTIL_ENDED = "ended"
UNIQUE = (FOREVER, UNTIL_ENDED)
"""How long the key of a job is taken."""


class JobState(StrEnum):
    """The state of a job. The last three are final."""

    PENDING = "pending"
    """Accepted and stored; it waits until it may start."""
    RUNNING = "running"
    """A worker runs it."""
    WAITING = "waiting"
    """An attempt failed; the next one starts at `not_before`, or when memory is free."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether the job has ended."""
        return self in FINAL


FINAL = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED})

TRANSITIONS: Mapping[JobState, frozenset[JobState]] = {
    JobState.PENDING: frozenset({JobState.RUNNING, JobState.FAILED, JobState.CANCELLED}),
    JobState.RUNNING: frozenset(
        {JobState.WAITING, JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED, JobState.PENDING}
    ),
    JobState.WAITING: frozenset({JobState.RUNNING, JobState.FAILED, JobState.CANCELLED}),
    JobState.COMPLETED: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.CANCELLED: frozenset(),
}
"""The allowed changes of state. A job whose host died goes from running back to pending."""


class CancelPhase(StrEnum):
    """The progress of cancelling a running job."""

    COOPERATIVE = "cooperative"
    """The capability was asked to stop."""
    FORCE = "force"
    """It did not stop, and its worker is being killed."""
    RELOADING = "reloading"
    """A new worker is being started."""
    COMPLETED = "completed"


class NotAllowed(ValueError):
    """A change of state that is not in `TRANSITIONS`."""


class RequestOptions(TypedDict, total=False):
    """How a job is run, beside its instance and its arguments."""

    action: str
    """The method of the capability."""
    priority: int
    """Jobs with a higher priority start first."""
    timeout: float | Literal["none"] | None
    """Seconds that one attempt may run, or `"none"` for no limit. The default is the `timeout` of the manifest, else an
    hour."""
    deadline: datetime | None
    """When the job must have ended, waiting included."""
    key: str | None
    """Idempotency key: a second request with the same key is the same job."""
    unique: str
    """How long the key is taken: `forever`, as long as the job is stored, or until it has `ended`."""
    not_before: datetime | None
    """When the first attempt may start; at once by default."""
    run: str | None
    """The run that the job belongs to."""
    actor: str | None
    """The user or program that submits it."""
    control: Mapping[str, Any]
    """`max_attempts`: attempts in all; `idempotent`: whether the job may be repeated after an attempt with an unknown
    outcome."""


@frozen
class JobRequest:
    """A request to call a capability, before it is stored as a job. Its options are those of `RequestOptions`."""

    instance: str
    """The instance to call; the default instance is named like its capability."""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Keyword arguments of the call, as JSON."""
    action: str = "execute"
    stream: bool = False
    """Whether the results are streamed, one item at a time."""
    priority: int = 0
    timeout: float | Literal["none"] | None = None
    """A stored job has the seconds that apply to it, or `None` for no limit."""
    deadline: datetime | None = None
    key: str | None = None
    run: str | None = None
    actor: str | None = None
    control: Mapping[str, Any] = field(default_factory=dict[str, Any])
    unique: str = FOREVER
    not_before: datetime | None = None


@dataclass(slots=True, kw_only=True)
class Job:
    """One stored call to a capability, as it was when it was read. Times are seconds since 1970."""

    id: JobId
    request: JobRequest
    state: JobState
    submitted: float
    started: float | None = None
    """When the current attempt started."""
    ended: float | None = None
    due: float | None = None
    """When the next attempt may start."""
    cancelled: float | None = None
    """When it was asked to stop."""
    cancel_phase: CancelPhase | None = None
    attempt: int = 0
    """How many attempts were started."""
    charged: int = 0
    """How many attempts count towards its limit."""
    losses: int = 0
    """How often the host died while it ran."""
    block_reason: str | None = None
    """Why the job does not start."""
    result: Any = None
    error: ErrorReport | None = None
    key: int | None = None
    """Its number in the store, which increases from job to job; `None` until it is stored."""
    progress: float = 0.0
    """From 0 to 1 within the current attempt, or -1 if the capability does not know."""
    message: str = ""

    @property
    def submitted_at(self) -> datetime:
        """When the job was submitted."""
        return moment(self.submitted)

    @property
    def started_at(self) -> datetime | None:
        """When the current attempt started."""
        return _maybe(self.started)

    @property
    def completed_at(self) -> datetime | None:
        """When the job ended."""
        return _maybe(self.ended)

    @property
    def not_before(self) -> datetime | None:
        """When the next attempt may start."""
        return _maybe(self.due)

    @property
    def cancel_requested_at(self) -> datetime | None:
        """When the job was asked to stop."""
        return _maybe(self.cancelled)

    @property
    def deadline(self) -> float | None:
        """When it must have ended."""
        return None if self.request.deadline is None else self.request.deadline.timestamp()

    @property
    def retry_count(self) -> int:
        """How many attempts followed the first one."""
        return max(0, self.attempt - 1)

    def resubmission(self) -> JobRequest:
        """The same request for a new job. The idempotency key and the times belong to this job only."""
        control = {**self.request.control, "resubmitted": self.id}
        # A stored job without a time limit has none; the new one must not get the default.
        timeout = self.request.timeout or NO_TIMEOUT
        return replace(
            self.request,
            key=None,
            unique=FOREVER,
            deadline=None,
            not_before=None,
            control=control,
            timeout=timeout,
        )

    def moved(self, state: JobState, **changes: Any) -> "Job":
        """A copy of the job in `state`.

        Raises:
            NotAllowed: the change of state is not allowed.
        """
        if state not in TRANSITIONS[self.state]:
            raise NotAllowed(f"job {self.id} cannot go from {self.state} to {state}")
        return replace(self, state=state, **changes)


def result_of(job: Job) -> Any:
    """The result of an ended job.

    Raises:
        Fault: the job failed or was cancelled; see `job_error`.
        NotOver: the job has not ended.
    """
    if not job.state.is_final:
        raise NotOver(job=job.id, stands=job.state.value)
    if job.state is JobState.COMPLETED:
        return job.result
    if job.error is not None:
        raise job_error(job.error)
    raise CapabilityCancelledError(job.request.instance)


def new_job(request: JobRequest, now: float, job: str | None = None) -> Job:
    """A job for `request`, as it is stored first, with a new id unless it has one; `now` is in seconds since 1970."""
    return Job(
        id=JobId(job or new_job_id()),
        request=request,
        state=JobState.PENDING,
        submitted=now,
        due=None if request.not_before is None else request.not_before.timestamp(),
    )


def new_job_id() -> str:
    """A unique id for a job; ids sort by time."""
    return f"{int(time() * 1000):011x}{os.urandom(5).hex()}"


def moment(at: float) -> datetime:
    """Seconds since 1970 as an aware time."""
    return datetime.fromtimestamp(at, UTC)


def _maybe(at: float | None) -> datetime | None:
    return None if at is None else moment(at)


_MOST = 10
"""How many mistakes are named."""
_SHOWN = 40
"""Characters of a key that are shown."""


TOO_DEEP = f"have more than {DEEPEST} levels, or contain themselves; pass them with fewer levels, or as text"


def unserializable(value: Any, place: str, *, has_text_keys: bool = False) -> dict[str, str]:
    """The places in a job's `value` that cannot be written as JSON, each with a message; at most `_MOST`.

    JSON writes numbers as keys too, but as text. With `has_text_keys` they are mistakes.
    """
    mistakes: dict[str, str] = {}
    waiting: list[tuple[Any, str, int]] = [(value, place, 0)]
    while waiting and len(mistakes) < _MOST:
        item, path, depth = waiting.pop()
        mistake = _mistake_in(item) or (_other_key_in(item) if has_text_keys else None)
        if mistake is not None:
            mistakes[path] = mistake
        elif depth < DEEPEST:
            # Reversed, because the list is a stack: places are named in the order of the value.
            waiting.extend(reversed([(*entry, depth + 1) for entry in _within(item, path)]))
    return mistakes


def _mistake_in(value: Any) -> str | None:
    if value is None or isinstance(value, bool | int):
        return None
    if isinstance(value, float):
        return None if isfinite(value) else f"is {value}, which is not a number in JSON"
    if isinstance(value, str):
        return "has a lone surrogate, which is not valid text" if has_lone_surrogate(value) else None
    if isinstance(value, list | tuple):
        return None
    if not isinstance(value, dict):
        return f"is of type {type(value).__name__}, which JSON does not have"
    for key in cast("dict[Any, Any]", value):
        if not isinstance(key, str | int | float | bool | None):
            return f"has a key of type {type(key).__name__}, which JSON does not have"
        if isinstance(key, float) and not isfinite(key):
            return f"has the key {key}, which is not a number in JSON"
        if isinstance(key, str) and has_lone_surrogate(key):
            return "has a key with a lone surrogate, which is not valid text"
    return None


def _other_key_in(value: Any) -> str | None:
    table = cast("dict[Any, Any]", value) if isinstance(value, dict) else {}
    key = next((key for key in table if not isinstance(key, str)), "")
    return None if isinstance(key, str) else f"has a key of type {type(key).__name__}; keys are text in JSON"


def _within(value: Any, place: str) -> Iterator[tuple[Any, str]]:
    if isinstance(value, dict):
        for key, item in cast("dict[Any, Any]", value).items():
            yield item, f"{place}.{str(key)[:_SHOWN]}"
    elif isinstance(value, list | tuple):
        for index, item in enumerate(cast("list[Any]", value)):
            yield item, f"{place}[{index}]"


def has_lone_surrogate(text: str) -> bool:
    """Whether a text of a job has half of a surrogate pair, which Python allows and UTF-8 does not."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


MOST_PRIORITY = 1_000_000
MOST_BYTES = LARGEST - 4096
"""The largest arguments and action as JSON: one frame to the worker, minus what surrounds them."""
_encode = json_encoder(ascii_only=True)
_SURROGATE = "\\ud"
_LONGEST_KEY = 500
_LONGEST_DURATION = 1_000_000_000
_KNOWN = ("idempotent", "max_attempts", "resubmitted")
_CONTROLS = "`idempotent` and `max_attempts`"


def check_request(request: JobRequest, *, has_consumer: bool = False) -> None:
    """Check a request. A stream needs a consumer of its items: `has_consumer`.

    Raises:
        CapabilityInputError: it is not valid; every invalid field is named.
    """
    mistakes = _option_mistakes(request, has_consumer=has_consumer)
    if not _is_table(request.arguments):
        mistakes["arguments"] = "must be a mapping of names to values"
    elif not mistakes:
        mistakes = _argument_mistakes(request)
    if mistakes:
        problems = "; ".join(f"`{name}` {text}" for name, text in mistakes.items())
        raise CapabilityInputError(f"the job is not valid: {problems}", fields_invalid=sorted(mistakes))


def _option_mistakes(request: JobRequest, *, has_consumer: bool) -> dict[str, str]:
    mistakes = _text_mistakes(request)
    if request.timeout is not None or request.deadline is not None or request.not_before is not None:
        mistakes |= _time_mistakes(request)
    if request.control != NO_ARGUMENTS:
        mistakes |= _control_mistakes(request.control)
    if not is_priority(request.priority):
        mistakes["priority"] = f"must be a whole number between -{MOST_PRIORITY:,} and {MOST_PRIORITY:,}"
    if request.stream and not has_consumer:
        mistakes["stream"] = "is set by `Runtime.stream` only, which consumes the items"
    if request.stream and request.key is not None:
        mistakes["key"] = "cannot be given for a stream, whose items are not stored"
    return mistakes


def with_timeout(request: JobRequest, manifest: Manifest) -> JobRequest:
    """The request with the time-out that is stored: its own, else that of the manifest, else an hour; `None` for no limit."""
    chosen = request.timeout or manifest.timeout or DEFAULT_TIMEOUT
    return replace(request, timeout=None if chosen == NO_TIMEOUT else chosen)


def _text_mistakes(request: JobRequest) -> dict[str, str]:
    mistakes: dict[str, str] = {}
    for name, word in (("instance", request.instance), ("action", request.action)):
        if not _is_text(word):
            mistakes[name] = "must be a text that is not empty"
    for name, word in (("run", request.run), ("actor", request.actor)):
        if word is not None and not _is_text(word):
            mistakes[name] = "must be a text that is not empty, or left out"
    if request.key is not None and not (_is_text(request.key) and len(request.key) <= _LONGEST_KEY):
        mistakes["key"] = f"must be a text of 1 to {_LONGEST_KEY} characters"
    if request.unique not in UNIQUE:
        mistakes["unique"] = f"must be {' or '.join(f'`{word}`' for word in UNIQUE)}"
    elif request.unique != FOREVER and request.key is None:
        mistakes["unique"] = "says how long a key is taken, and there is no `key`"
    return mistakes


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != "" and (value.isascii() or not has_lone_surrogate(value))


def _time_mistakes(request: JobRequest) -> dict[str, str]:
    mistakes: dict[str, str] = {}
    if request.timeout not in (None, NO_TIMEOUT) and not is_duration(request.timeout):
        mistakes["timeout"] = (
            f'must be a number of seconds above 0 and at most {_LONGEST_DURATION:,}, or "none"'
        )
    for name, when in (("deadline", request.deadline), ("not_before", request.not_before)):
        if when is not None and not _is_moment(when):
            mistakes[name] = "must be a `datetime` with a time zone, in the years 1 to 9999 of UTC"
    deadline, start = request.deadline, request.not_before
    if not mistakes and deadline is not None and start is not None and deadline <= start:
        mistakes["deadline"] = "must be later than `not_before`, or the job could never run"
    return mistakes


def is_duration(value: object) -> bool:
    """Whether a time-out may have this value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= _LONGEST_DURATION


def _is_moment(value: object) -> bool:
    """Whether a job may have this time: one that is read back as it was stored, in UTC."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        return False
    try:
        datetime.fromtimestamp(value.timestamp(), UTC)
    except (OverflowError, ValueError, OSError):
        return False
    return True


def _control_mistakes(control: object) -> dict[str, str]:
    if not _is_table(control):
        return {"control": f"must be a mapping; it may have {_CONTROLS}"}
    flags = cast("Mapping[str, object]", control)
    mistakes = {
        f"control.{name}": f"is not known; the keys are {_CONTROLS}" for name in flags if name not in _KNOWN
    }
    attempts, idempotent = flags.get("max_attempts", 1), flags.get("idempotent")
    if not isinstance(attempts, int) or isinstance(attempts, bool) or attempts < 1:
        mistakes["control.max_attempts"] = "must be a whole number of at least 1"
    if idempotent is not None and not isinstance(idempotent, bool):
        mistakes["control.idempotent"] = "must be true or false"
    return mistakes


def _is_table(value: object) -> bool:
    if not isinstance(value, dict | Mapping):
        return False
    return all(isinstance(name, str) for name in cast("Mapping[object, object]", value))


def _argument_mistakes(request: JobRequest) -> dict[str, str]:
    """Why the arguments cannot be sent to a worker, by place."""
    try:
        text = _encode(request.arguments)
        size = len(text) + len(request.action)
        if size > MOST_BYTES or _SURROGATE in text:
            # In a frame to the worker characters are not escaped, and half of a surrogate pair is no character.
            size = len(encode_text([request.action, request.arguments]).encode())
    except RecursionError:
        return {"arguments": TOO_DEEP}
    except (TypeError, ValueError):
        return unserializable(request.arguments, "arguments") or {"arguments": "cannot be written as JSON"}
    if size > MOST_BYTES:
        return {
            "arguments": f"are {size:,} bytes as JSON, and a job takes at most {MOST_BYTES:,};"
            " pass the path of a file"
        }
    if is_too_deep(request.arguments, text.count("[") + text.count("{")):
        return {"arguments": f"have more than {DEEPEST} levels; pass them with fewer levels, or as text"}
    return {}


def is_priority(value: object) -> bool:
    """Whether a job may have this priority."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST_PRIORITY
