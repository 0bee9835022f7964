"""`Failure`: how an execution failed, from the leaf to the end of the run.

The report is created once, where the failure happened. Each boundary that the failure crosses adds a frame and
changes nothing else, so a failure has the same id in every event, in `errors.jsonl` and on the terminal.
Templates see the envelope, a projection of the report, and with it the end of a failed script's stderr: that is
output, as the rest of what the script printed, and so it is not in the report unless the policy keeps foreign text.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from failwell.adapters.describe import describe, report_of_kind
from failwell.errors.axes import Category
from failwell.errors.facts import Evidence, NotBefore
from failwell.errors.frozen import frozen
from failwell.errors.report import ErrorReport, Frame, Scene
from failwell.errors.wire import read, to_dict
from failwell.workflows.template.names import MISSING

_NODE = "node"


@frozen
class Failure:
    """One failure of a node, a job or a call."""

    report: ErrorReport
    """With a frame for each node that the failure has passed, the leaf first."""
    typed: bool = False
    """Whether an author raised it, or declared that the node may fail."""
    output: Any = MISSING
    """The output of the leaf up to the failure."""
    usage: Mapping[str, Any] | None = None
    """The usage of the leaf up to the failure."""
    others: tuple["Failure", ...] = ()
    """The further failures of a group."""
    stderr_tail: str = ""
    """The end of a failed script's stderr, where the report does not hold it."""

    @classmethod
    def of(
        cls,
        kind: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        typed: bool = False,
        category: Category | None = None,
        not_before: NotBefore | None = None,
        scene: Scene | None = None,
        at: datetime | None = None,
        error_id: str | None = None,
        evidence: Evidence | None = None,
    ) -> "Failure":
        """A node's failure of `kind`; `category` is for an author's kind that the registry does not know."""
        report = report_of_kind(
            kind,
            message,
            details=details,
            category=category,
            not_before=not_before,
            scene=scene,
            at=at,
            error_id=error_id,
            evidence=evidence,
        )
        return cls(report=report, typed=typed)

    @classmethod
    def from_exception(
        cls, error: BaseException, *, scene: Scene | None = None, typed: bool = False
    ) -> "Failure":
        """The failure of a node that raised an exception, described where it was caught."""
        return cls(report=describe(error, scene=scene), typed=typed)

    @property
    def kind(self) -> str:
        """The kind of the report."""
        return self.report.kind

    @property
    def envelope(self) -> dict[str, Any]:
        """The report as `kind`, `message` and `details`."""
        report = self.report
        return {"kind": report.kind, "message": report.message, "details": dict(report.details)}

    @property
    def template_error(self) -> dict[str, Any]:
        """What templates see: the envelope, of a failed script with the end of its stderr."""
        return _with_stderr(self.envelope, self.stderr_tail)

    @property
    def node_frames(self) -> list[dict[str, Any]]:
        """The nodes that the failure has passed, the leaf first, as JSON for the journal."""
        return [_frame_to_dict(frame) for frame in self.report.frames if frame.boundary == _NODE]

    def with_frames(self, *frames: Frame) -> "Failure":
        """The same failure after it has crossed more boundaries, and with it the further failures of its group."""
        report = replace(self.report, frames=(*self.report.frames, *frames))
        others = tuple(other.with_frames(*frames) for other in self.others)
        return replace(self, report=report, others=others)

    def to_dict(self, reports: dict[str, dict[str, Any]] | None = None) -> dict[str, Any]:
        """The failure as JSON for the journal; `reports` caches the JSON of reports by id."""
        report = self.report
        report_json = None if reports is None else reports.get(report.id)
        if report_json is None:
            report_json = to_dict(report)
            frames = [frame for frame in report_json.pop("frames", ()) if frame["boundary"] != _NODE]
            if frames:
                report_json["frames"] = frames
            if reports is not None:
                reports[report.id] = report_json
        stored: dict[str, Any] = {
            "envelope": self.envelope,
            "report": report_json,
            "typed": self.typed,
            "frames": self.node_frames,
        }
        if self.stderr_tail:
            stored["stderr_tail"] = self.stderr_tail
        if self.others:
            stored["others"] = [other.to_dict(reports) for other in self.others]
        return stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Failure":
        """The failure from its JSON in a journal."""
        report = read(stored["report"])
        frames = tuple(_frame_from_dict(frame) for frame in stored["frames"])
        if frames:
            report = replace(report, frames=(*report.frames, *frames))
        others = tuple(cls.from_dict(other) for other in stored.get("others", ()))
        tail = str(stored.get("stderr_tail", ""))
        return cls(report=report, typed=stored["typed"], others=others, stderr_tail=tail)


def stored_template_error(stored: Mapping[str, Any]) -> dict[str, Any]:
    """What templates see of a failure in the journal."""
    return _with_stderr(stored["envelope"], str(stored.get("stderr_tail", "")))


def last_line(text: str) -> str:
    """The last line of `text` that is not blank."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _with_stderr(envelope: Mapping[str, Any], tail: str) -> dict[str, Any]:
    if not tail:
        return dict(envelope)
    details = {**envelope["details"], "stderr_tail": tail}
    return {**envelope, "message": stderr_message(envelope["message"], details), "details": details}


def stderr_message(message: str, details: Mapping[str, Any]) -> str:
    """The last line of a failed script's stderr, behind the signal that ended it; `message` if there is none."""
    last = last_line(details["stderr_tail"])
    return message if not last else f"{message}: {last}" if "signal" in details else last


def node_frame(*, workflow: str, node: str, type: str, kind: str, visit: int, item: str | None) -> Frame:  # noqa: A002  (the name that frames have for it)
    """The frame of one node."""
    return Frame(
        boundary=_NODE, name=node, workflow=workflow, type=type, kind=kind, iteration=visit, item=item
    )


def moment(at: float) -> datetime:
    """Seconds since 1970 as an aware time."""
    return datetime.fromtimestamp(at, UTC)


def derived_id(at: float, *parts: object) -> str:
    """The id of a failure that the machine detected. The same facts give the same id."""
    seed = "\0".join(str(part) for part in parts).encode("utf-8", "surrogatepass")
    return f"err_{int(at * 1000):011x}{blake2b(seed, digest_size=8).hexdigest()}"


def _frame_to_dict(frame: Frame) -> dict[str, Any]:
    data: dict[str, Any] = {
        "workflow": frame.workflow,
        "node": frame.name,
        "type": frame.type,
        "kind": frame.kind,
        "iteration": frame.iteration,
    }
    if frame.item is not None:
        data["item"] = frame.item
    return data


def _frame_from_dict(data: Mapping[str, Any]) -> Frame:
    return Frame(
        boundary=_NODE,
        name=str(data["node"]),
        workflow=data.get("workflow"),
        type=data.get("type"),
        kind=data.get("kind"),
        iteration=data.get("iteration"),
        item=data.get("item"),
    )
