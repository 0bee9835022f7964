"""What a worker answered → a value, or the fault to raise. Reading an answer never raises.

A worker is another program, maybe of another version, and its capability returns what it likes. An answer
that cannot be read is an answer all the same: the call failed, and no repeat would be read any better.
"""

import builtins
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from inspect import signature
from math import isfinite
from typing import Any, NamedTuple, cast, get_args

import failwell.fault.capability as tree
from failwell.adapters.classify import needed_mb
from failwell.fault.axes import ActionKind, Blame, Category
from failwell.fault.base import Fault
from failwell.fault.capability import (
    CapabilityError,
    CapabilityFatalError,
    CapabilityInputError,
    CapabilityResourceError,
    CapabilityTransientError,
)
from failwell.fault.facts import ResourceName, ResourceShortfall, UserAction
from failwell.jobs.worker.worker import FileHandle
from failwell.report.describe import describe
from failwell.report.fingerprint import fingerprint
from failwell.report.policy import TracebackPolicy
from failwell.report.record import ErrorReport, Internal, Scene
from failwell.report.redact import mask_known, redact_text
from failwell.report.scene import merge

_LONGEST_NAME = 200
_TRACEBACK_CAP = 16_000
_RESOURCES = get_args(ResourceName)
_RAM_KINDS = frozenset({"resource.system_memory"})


def report_of(
    told: Mapping[str, Any], scene: Scene, policy: TracebackPolicy, at: datetime | None = None
) -> ErrorReport:
    """The report of one failed call, from what the worker told of it. Never raises.

    A worker may have an older or a newer failwell, or words of its own; whoever waits for the call must
    be answered all the same.
    """
    try:
        return _report_of(told, scene, policy, at)
    except Exception as error:  # noqa: BLE001  (what a worker tells may be anything, and its call must end)
        unread = CapabilityFatalError(
            f"the worker told of a failure in words that cannot be read ({error!r})"
        )
        return describe(unread, scene=scene, at=at)


def _report_of(
    told: Mapping[str, Any], scene: Scene, policy: TracebackPolicy, at: datetime | None
) -> ErrorReport:
    if "refused" in told:
        refused = CapabilityInputError(_text(told["refused"]), fields_invalid=told.get("fields") or [])
        return describe(refused, scene=scene, at=at)
    if "unsendable" in told:
        return describe(CapabilityFatalError(_text(told["unsendable"])), scene=scene, at=at)
    if "report" in told:
        report = ErrorReport.read(_masked(told["report"]))
        report = replace(report, scene=merge(scene, report.scene))
        said = "" if report.internal is None else report.internal.repr
    else:
        facts = cast("Mapping[str, Any]", told["exception"])
        report = _judged(facts, scene, policy, at)
        said = str(facts.get("text") or "")
    return _with_measures(_blamed(report), told.get("measured") or {}, said)


def _blamed(report: ErrorReport) -> ErrorReport:
    """A program error in a job, put down to the capability that raised it: it is not a defect of ours."""
    name, job = report.scene.capability, report.scene.job
    if report.kind != "internal.bug" or name is None or job is None:
        return report
    return replace(
        report,
        blame=Blame.WORKER,
        user_action=UserAction(
            ActionKind.CONTACT_SUPPORT,
            f"see where with `failwell job show {job}`, and correct it, or tell whoever wrote `{name}`",
        ),
    )


def _masked(value: Any) -> Any:
    """What another process described, without the secrets that this one knows: the other may know none."""
    if isinstance(value, str):
        return mask_known(value, _TRACEBACK_CAP)
    if isinstance(value, dict):
        return {_masked(key): _masked(one) for key, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_masked(one) for one in cast("list[Any]", value)]
    return value


def _judged(
    facts: Mapping[str, Any], scene: Scene, policy: TracebackPolicy, at: datetime | None
) -> ErrorReport:
    error = _stand_in(facts)
    report = describe(error, policy=policy, scene=scene, at=at)
    site = facts.get("site")
    metadata = report.provider_metadata
    name = _last_name(facts)
    return replace(
        report,
        error_type=name,
        internal=_internal(facts, policy),
        fingerprint=fingerprint(
            report.kind,
            name,
            report.provider,
            metadata.status_code if metadata else None,
            metadata.code if metadata else None,
            ":".join(map(str, cast("list[Any]", site))) if site else "",
        ),
    )


def _internal(facts: Mapping[str, Any], policy: TracebackPolicy) -> Internal | None:
    if policy is TracebackPolicy.STRICT:
        return None
    trace = facts.get("traceback") if policy is TracebackPolicy.FULL else None
    return Internal(
        repr=redact_text(_text(facts.get("repr"))),
        traceback=None if trace is None else redact_text(_text(trace), _TRACEBACK_CAP),
    )


def _with_measures(report: ErrorReport, measured: Mapping[str, Any], said: str) -> ErrorReport:
    """The report with what was free when memory ran out, where the error itself did not say."""
    if report.resource_shortfall is not None or not measured:
        return report
    if report.kind == "resource.gpu_memory":
        free, resource = measured.get("gpu_free_mb"), "gpu_vram_mb"
    elif report.kind in _RAM_KINDS:
        free, resource = measured.get("ram_available_mb"), "system_ram_mb"
    else:
        return report
    needed = report.details.get("needed_mb") or needed_mb(said)
    details = {**report.details, **{name: round(float(value), 1) for name, value in measured.items()}}
    if isinstance(free, int | float) and isinstance(needed, int | float):
        short = ResourceShortfall(resource, float(needed), round(float(free), 1))
        return replace(report, resource_shortfall=short, details=details)
    return replace(report, details=details)


# ------------------------------------------------------------------ stand-ins


def _stand_in(facts: Mapping[str, Any]) -> BaseException:
    typed = facts.get("typed")
    error = _fault(cast("Mapping[str, Any]", typed), facts) if typed else _foreign(facts)
    for note in cast("list[Any]", facts.get("notes") or []):
        error.add_note(_text(note))
    below = cast("Mapping[str, Any] | None", facts.get("below"))
    if below is not None:
        cause = _stand_in(below)
        if below.get("via") == "cause":
            error.__cause__ = cause
        else:
            error.__context__ = cause
    return error


def _fault(typed: Mapping[str, Any], facts: Mapping[str, Any]) -> Fault:
    """The real fault for one that was raised from the stand-in classes."""
    cls: type[CapabilityError] = getattr(tree, str(typed.get("class")), CapabilityError)
    fields = dict(cast("Mapping[str, Any]", typed.get("fields") or {}))
    message = _text(facts.get("text"))
    try:
        error = _called(cls, message, fields)
    except (TypeError, ValueError, KeyError):
        # Fields that no such fault can have. What it stands for is told all the same.
        error = CapabilityError(message, kind=cls.declared_kind)
    error.message = message or error.message
    if fields.get("default_retriable") is False:
        error.retryable = False
    return error


def _called(cls: type[CapabilityError], message: str, fields: Mapping[str, Any]) -> CapabilityError:
    """The class, called with those of the fields that it takes and that can be what they say."""
    takes = signature(cls).parameters
    is_open = any(one.kind is one.VAR_KEYWORD for one in takes.values())
    given = {name: value for name, value in _usable(fields).items() if name in takes or is_open}
    name = fields.get("capability_name")
    if cls is tree.CapabilityTimeoutError:
        return cls(str(name), _number(fields.get("timeout_seconds")) or 0.0, **given)
    return cls(message if name is None else str(name), **given)


def _usable(fields: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    invalid = fields.get("fields_invalid")
    if invalid and isinstance(invalid, list):
        made["fields_invalid"] = [str(one) for one in cast("list[Any]", invalid)]
    wait = _number(fields.get("retry_after_seconds"))
    if wait is not None and wait >= 0:
        made["retry_after_seconds"] = wait
    if isinstance(fields.get("config_class_name"), str):
        made["config_class_name"] = fields["config_class_name"]
    if isinstance(fields.get("process_returncode"), int):
        made["process_returncode"] = fields["process_returncode"]
    short = fields.get("resource_shortfall")
    if isinstance(short, Mapping):
        told = cast("Mapping[str, Any]", short)
        needed, available = _number(told.get("needed")), _number(told.get("available"))
        if needed is not None and available is not None and told.get("resource") in _RESOURCES:
            made["resource_shortfall"] = ResourceShortfall(told["resource"], needed, available)
    return made


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and isfinite(value) else None


def _foreign(facts: Mapping[str, Any]) -> BaseException:
    cls = _class_of(cast("list[list[str]]", facts.get("classes") or [["builtins", "Exception"]]))
    attributes = dict(cast("Mapping[str, Any]", facts.get("attributes") or {}))
    text = _text(facts.get("text"))
    members = [_stand_in(one) for one in cast("list[Mapping[str, Any]]", facts.get("members") or [])]
    new: Any = cls.__new__
    error: BaseException
    if issubclass(cls, BaseExceptionGroup):
        error = new(cls, text, members or [Exception("its members were not told")])
    elif issubclass(cls, OSError) and isinstance(attributes.get("errno"), int):
        error = new(cls, attributes["errno"], attributes.get("strerror") or text)
    else:
        if issubclass(cls, _COMPOSED) and cls.__dict__.get("__str__") is not _said:
            cls = type(cls.__name__, (cls,), {"__module__": cls.__module__, "__str__": _said})
        error = new(cls)
        error.args = (text,)
    response = attributes.pop("response", None)
    if response is not None:
        attributes["response"] = _Reply(cast("Mapping[str, Any]", response))
    for name, value in attributes.items():
        try:
            setattr(error, name, value)
        except (AttributeError, TypeError):
            # A slot of the built-in class that refuses; the rest is enough to judge by.
            continue
    return error


_COMPOSED = (SyntaxError, UnicodeError, KeyError)
"""Built-in classes that make their words of their parts, which are not known here; the words are."""


class _Reply:
    """What a worker told of an HTTP reply that hung on an exception."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.status_code = told.get("status_code")
        self.headers: Mapping[str, str] = told.get("headers") or {}


def _class_of(classes: list[list[str]]) -> type[BaseException]:
    """A class with this ancestry: real where it is built in, a stand-in of the same name elsewhere."""
    made: Any = Exception
    if classes and classes[-1] == ["builtins", "BaseException"] and ["builtins", "Exception"] not in classes:
        made = BaseException
    for module, name in reversed(classes):
        if module == "builtins":
            real = getattr(builtins, name, None)
            if isinstance(real, type) and issubclass(real, BaseException) and issubclass(real, made):
                made = real
            continue
        body = {"__module__": module, "__str__": _said, "__init__": _take_anything}
        made = type(name.rpartition(".")[2], (made,), body)
    return made


def _said(self: BaseException) -> str:
    return str(self.args[0]) if self.args else ""


def _take_anything(_self: BaseException, *_args: object, **_fields: object) -> None:
    return None


def _last_name(facts: Mapping[str, Any]) -> str:
    classes = cast("list[list[str]]", facts.get("classes") or [["builtins", "Exception"]])
    return redact_text(classes[0][1].rpartition(".")[2], _LONGEST_NAME)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


class _Arrived(Fault):
    recorded: Mapping[str, Any]
    """The report as it was written on the wire."""

    @property
    def recorded_report(self) -> ErrorReport:
        """The report that this fault stands for."""
        return ErrorReport.read(self.recorded)

    def own_fields(self) -> dict[str, Any]:
        return {}


class RemoteInputError(_Arrived, CapabilityInputError):
    """The worker refused what it was given."""


class RemoteTransientError(_Arrived, CapabilityTransientError):
    """Something passing went wrong in the worker."""


class RemoteResourceError(_Arrived, CapabilityResourceError):
    """Something was used up in the worker."""


class RemoteFatalError(_Arrived, CapabilityFatalError):
    """The worker failed, and no repeat will help."""


_CLASSES: dict[str, type[CapabilityError]] = {
    "user_input": RemoteInputError,
    "transient": RemoteTransientError,
    "resource": RemoteResourceError,
    "fatal": RemoteFatalError,
}


def raisable(report: ErrorReport) -> CapabilityError:
    """A fault to raise for a worker's `report`."""
    cls = _CLASSES[report.category.job]
    given: dict[str, Any] = {
        "kind": report.kind,
        "recorded": report.to_dict(),
        "caller_facing": report.caller_facing,
        "certainty": report.certainty,
        "blame": report.blame,
        "user_action": report.user_action,
        "not_before": report.not_before,
        "details": report.details or None,
    }
    if not report.retryable:
        given["retryable"] = False
    if cls is RemoteInputError:
        given["fields_invalid"] = report.fields_invalid
    if cls is RemoteResourceError:
        given["resource_shortfall"] = report.resource_shortfall
    return cls(message=report.message, **given)


DEEPEST = 200
"""Levels of lists and tables in one result. Whatever handles it later may go one step deeper for each."""


class Answer(NamedTuple):
    """How a call ended."""

    value: Any = None
    error: CapabilityError | None = None


class Reader:
    """Reads the answers of one worker."""

    def __init__(self, scene: Scene, policy: TracebackPolicy, folder: str | None) -> None:
        self._name = scene.capability or ""
        self._scene = scene
        self._policy = policy
        self._folder = folder

    def read(self, job: str, frame: Mapping[str, Any]) -> Answer:
        """What the answer to `job` says."""
        try:
            if "error" not in frame:
                return Answer(opened(frame["value"], self._folder))
            return Answer(error=self._told(job, frame["error"]))
        except Exception as error:  # noqa: BLE001  (whatever is in a frame, whoever waits for the call is answered)
            return Answer(error=self._unreadable(frame, error))

    def item(self, frame: Mapping[str, Any]) -> Answer:
        """One item of a stream."""
        try:
            return Answer(opened(frame["value"], self._folder))
        except Exception as error:  # noqa: BLE001  (an item is answered with something too, whatever is in it)
            return Answer(error=self._unreadable(frame, error))

    def _told(self, job: str, error: Mapping[str, Any]) -> CapabilityError:
        scene = self._scene if job.startswith("#") else replace(self._scene, job=job)
        report = report_of(error, scene, self._policy)
        if report.category is Category.CANCELLED:
            # Whoever wished this call to stop has been answered already; nobody did.
            report = self._gave_up(report, scene)
        return raisable(report)

    def _gave_up(self, report: ErrorReport, scene: Scene) -> ErrorReport:
        fault = CapabilityFatalError(
            f"capability {self._name!r} ended the call as cancelled ({report.error_type}), and nobody had asked it to"
        )
        made = describe(fault, scene=scene)
        return replace(made, error_type=report.error_type, internal=report.internal)

    def _unreadable(self, frame: Mapping[str, Any], error: Exception) -> CapabilityError:
        if isinstance(error, TooDeep):
            why = str(error)
        elif "error" in frame:
            why = f"what it tells of its failure is not ours ({type(error).__name__})"
        else:
            why = str(frame.get("unreadable") or "there is no value in it")
        fault = CapabilityFatalError(f"the answer of capability {self._name!r} cannot be read: {why}")
        fault.__cause__ = error
        return fault


class TooDeep(ValueError):
    """A result is nested deeper than anybody reads."""


def opened(value: Any, folder: str | None, depth: int = 0) -> Any:
    """A result with its files as handles. Only files of the run's own folder are: a handle invites deleting.

    Raises:
        TooDeep: there are more levels in it than `DEEPEST`.
    """
    if type(value) in _PLAIN:
        return value
    if depth >= DEEPEST:
        raise TooDeep(f"it is nested more than {DEEPEST} levels deep")
    below = depth + 1
    # Most of what is in it holds nothing, and is not worth a call.
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [one if type(one) in _PLAIN else opened(one, folder, below) for one in items]
    held = cast("dict[str, Any]", value)
    file = _file(held["$file"], folder) if len(held) == 1 and "$file" in held else None
    return file or {
        key: one if type(one) in _PLAIN else opened(one, folder, below) for key, one in held.items()
    }


_PLAIN = frozenset({str, int, float, bool, type(None)})
"""What JSON is made of, beside lists and tables."""


def _file(told: Any, folder: str | None) -> FileHandle | None:
    if folder is None or not isinstance(told, dict):
        return None
    held = cast("dict[str, Any]", told)
    path, size = held.get("path"), held.get("size")
    if not isinstance(path, str) or not isinstance(size, int) or os.path.dirname(path) != folder:
        return None
    return FileHandle(path=path, size=size)
