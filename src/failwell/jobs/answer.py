"""What a worker answered → a value, or the fault to raise. Reading an answer never raises.

A worker is another program, maybe of another version, and its capability returns what it likes. An answer
that cannot be read is an answer all the same: the call failed, and no repeat would be read any better.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from failwell.fault.axes import Category
from failwell.fault.capability import CapabilityError, CapabilityFatalError
from failwell.jobs.arrived import raisable
from failwell.jobs.described import report_of
from failwell.jobs.worker import FileHandle
from failwell.report.describe import describe
from failwell.report.policy import TracebackPolicy
from failwell.report.record import ErrorReport, Scene

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
