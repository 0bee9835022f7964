"""Reads the answer of a worker as a value or as the error to raise. Reading never raises.

A worker may run another version of failwell, and its capability may return anything. An answer that cannot be
read fails the call, and a retry would not help.
"""

import builtins
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from failwell.adapters.describe import describe
from failwell.errors.context import merge
from failwell.errors.fault import Fault
from failwell.errors.faults import (
    CapabilityError,
    CapabilityFatalError,
    CapabilityInputError,
    CapabilityResourceError,
    CapabilityTransientError,
)
from failwell.errors.kind_registry import KINDS
from failwell.errors.report import NOWHERE, ErrorReport, Scene, TracebackPolicy
from failwell.errors.wire import read_masked
from failwell.jobs.worker_process.values import DEEPEST
from failwell.jobs.workers.protocol import Answer, FileHandle

_OURS_ALONE = ("cancel.", "halt.", "limit.", "retry.", "session.", "subworkflow.")
"""Kinds about the run that made the call. A worker cannot raise one."""


def read_report(error: Mapping[str, Any], scene: Scene, policy: TracebackPolicy) -> ErrorReport:
    """The worker's report of a failure, with the secrets of the host masked and the scene added.

    Never raises. The environment of a capability may have another version of failwell, whose report cannot be
    read or could not be built.
    """
    try:
        if "report" in error:
            report = read_masked(error["report"])
            known = KINDS.get(report.kind)
            # A worker may say which item or tool it was at. Run, job and session are the host's to name.
            place = Scene(item=report.scene.item, tool=report.scene.tool)
            return replace(
                report,
                title=report.kind if known is None else known.title,
                scene=merge(scene, NOWHERE if place == NOWHERE else place),
            )
        report = describe(
            _builtin_error(error["exception"], policy), policy=policy, origin="input", scene=scene
        )
        free = cast("Mapping[str, Any]", error.get("memory") or {})
        memory = {name: round(float(megabytes), 1) for name, megabytes in free.items()}
        return replace(report, details={**report.details, **memory})
    except (
        Fault,
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as unread:
        fault = CapabilityFatalError("the worker's report of a failure cannot be read")
        fault.__cause__ = unread
        return describe(fault, policy=policy, scene=scene)


def _builtin_error(data: Mapping[str, Any], policy: TracebackPolicy) -> BaseException:
    """A failure that the worker could not describe, as the nearest built-in class with the same text."""
    text = str(data.get("text") or "")
    for module, name in cast("list[list[str]]", data["classes"]):
        cls = getattr(builtins, name, None) if module == "builtins" else None
        if isinstance(cls, type) and issubclass(cls, Exception) and not issubclass(cls, ExceptionGroup):
            error: Exception = cls.__new__(cls)
            error.args = (text,)
            return error
    return CapabilityFatalError(
        text if policy.keeps_message else "a failure that the worker could not describe"
    )


# ------------------------------------------------------------------ errors to raise


class RemoteError(Fault):
    """A failure in a worker, of the class that its category stands for. `describe` returns the worker's report."""

    report: ErrorReport

    @property
    def recorded_report(self) -> ErrorReport:
        """The worker's own report."""
        return self.report

    def own_fields(self) -> dict[str, Any]:
        return {}


class RemoteInputError(RemoteError, CapabilityInputError):
    """The worker refused its input."""


class RemoteTransientError(RemoteError, CapabilityTransientError):
    """A transient failure in the worker."""


class RemoteResourceError(RemoteError, CapabilityResourceError):
    """The worker ran out of a resource."""


class RemoteFatalError(RemoteError, CapabilityFatalError):
    """The worker failed, and a retry will not help."""


_CLASSES: dict[str, type[CapabilityError]] = {
    "user_input": RemoteInputError,
    "transient": RemoteTransientError,
    "resource": RemoteResourceError,
    "fatal": RemoteFatalError,
}


def raisable(report: ErrorReport) -> CapabilityError:
    """The error to raise for a worker's `report`."""
    cls = _CLASSES[report.category.job]
    fields: dict[str, Any] = {
        "report": report,
        "caller_facing": report.caller_facing,
        "certainty": report.certainty,
        "blame": report.blame,
        "user_action": report.user_action,
        "not_before": report.not_before,
        "details": report.details or None,
    }
    if not report.retryable:
        fields["retryable"] = False
    if cls is RemoteInputError:
        fields["fields_invalid"] = report.fields_invalid
    if cls is RemoteResourceError:
        fields["resource_shortfall"] = report.resource_shortfall
    fault = cls(message=report.message, **fields)
    # A newer worker may know kinds that are not registered here.
    fault.set_own_kind(report.kind)
    return fault


class Reader:
    """Reads the answers of one worker."""

    def __init__(self, scene: Scene, policy: TracebackPolicy, folder: str | None) -> None:
        self._name = scene.capability or ""
        self._scene = scene
        self._policy = policy
        self._folder = folder

    def read(self, job: str, frame: Mapping[str, Any]) -> Answer:
        """The answer to `job`."""
        try:
            if "error" not in frame:
                return Answer(with_file_handles(frame["value"], self._folder))
            return Answer(error=self._failure(job, frame["error"]))
        except Exception as error:  # noqa: BLE001  (the caller gets an answer, whatever the frame holds)
            return Answer(error=self._unreadable(frame, error))

    def item(self, frame: Mapping[str, Any]) -> Answer:
        """One item of a stream, or the value of an answer that no caller waits for."""
        return self.read("", {"value": frame["value"]} if "value" in frame else {})

    def _failure(self, job: str, error: Mapping[str, Any]) -> CapabilityError:
        scene = self._scene if job.startswith("#") else replace(self._scene, job=job)
        report = read_report(error, scene, self._policy)
        if report.kind.startswith(_OURS_ALONE):
            # A cancelled call is answered before this, so this call was not cancelled. Limits are the host's too.
            report = self._gave_up(report, scene)
        return raisable(report)

    def _gave_up(self, report: ErrorReport, scene: Scene) -> ErrorReport:
        claim = f"ended the call as `{report.kind}` ({report.error_type})"
        why = "it was not cancelled" if report.kind.startswith("cancel.") else "only the host can end it so"
        fault = CapabilityFatalError(f"capability {self._name!r} {claim}, but {why}")
        refused = describe(fault, scene=scene)
        return replace(refused, error_type=report.error_type, internal=report.internal)

    def _unreadable(self, frame: Mapping[str, Any], error: Exception) -> CapabilityError:
        if isinstance(error, TooDeep):
            reason = str(error)
        elif "error" in frame:
            reason = f"its report of the failure has an unknown form ({type(error).__name__})"
        else:
            reason = str(frame.get("unreadable") or "it has no value")
        fault = CapabilityFatalError(f"the answer of capability {self._name!r} cannot be read: {reason}")
        fault.__cause__ = error
        return fault


class TooDeep(ValueError):
    """A result has too many levels."""


def with_file_handles(value: Any, folder: str | None, depth: int = 0) -> Any:
    """A result with its files as handles. Only files in `folder` become handles, because callers delete them.

    Raises:
        TooDeep: it has more than `DEEPEST` levels.
    """
    if type(value) in _PLAIN:
        return value
    if depth >= DEEPEST:
        raise TooDeep(f"it is nested more than {DEEPEST} levels deep")
    below = depth + 1
    # What has plain values alone, as most, holds no file.
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if _PLAIN.issuperset(map(type, items)):
            return items
        return [with_file_handles(item, folder, below) for item in items]
    table = cast("dict[str, Any]", value)
    if _PLAIN.issuperset(map(type, table.values())):
        return table
    file = _file(table["$file"], folder) if len(table) == 1 and "$file" in table else None
    return file or {key: with_file_handles(item, folder, below) for key, item in table.items()}


_PLAIN = frozenset({str, int, float, bool, type(None)})
"""The types of JSON values beside lists and tables."""


def _file(data: Any, folder: str | None) -> FileHandle | None:
    if folder is None or not isinstance(data, dict):
        return None
    table = cast("dict[str, Any]", data)
    path, size = table.get("path"), table.get("size")
    if not isinstance(path, str) or not isinstance(size, int) or os.path.dirname(path) != folder:
        return None
    return FileHandle(path=path, size=size)
