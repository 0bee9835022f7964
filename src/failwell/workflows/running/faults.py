"""Faults of starting and resuming a run. Nothing has run when one of these is raised."""

from typing import Any

from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.errors.fault import Fault
from failwell.errors.report import Scene
from failwell.files.mistakes import Mistake, to_json
from failwell.store.faults import NotRecordable
from failwell.workflows.failure import Failure


class WorkflowInvalid(Fault, kind="validation.shape_invalid"):
    """A workflow file or its inputs have mistakes; nothing ran."""

    file: str
    mistakes: list[Mistake]

    def summary(self) -> str:
        """The file, the number of mistakes, and the first one."""
        errors = [mistake for mistake in self.mistakes if mistake.is_error]
        if len(errors) == 1:
            return f"`{self.file}` has one mistake: {errors[0].message}"
        example = f", the first: {errors[0].message}" if errors else ""
        return f"`{self.file}` has {len(errors)} mistakes{example}"

    def own_fields(self) -> dict[str, Any]:
        """The file, and the mistakes as JSON."""
        return {"file": self.file, "mistakes": to_json(self.mistakes)}


class FileChanged(Fault, kind="session.resume_mismatch"):
    """The files of a run have changed since it began."""

    run: str
    changed: list[str]
    """One line for each change."""

    def summary(self) -> str:
        """The run and the changes."""
        return f"the files of run `{self.run}` have changed: {'; '.join(self.changed)}"


class MachineDefect(Fault, kind="internal.bug"):
    """failwell failed to handle an event of a run. The run was ended, and can be resumed."""

    run: str
    event: str

    def summary(self) -> str:
        """The run, and what happened in it."""
        return f"failwell has a defect: it could not handle `{self.event}` in run `{self.run}`"


def defect_failure(error: Exception, event: str, *, run: str, node: str | None) -> Failure:
    """The failure for an exception that failwell does not expect. Faults, and what the system refuses, keep their kind."""
    scene = Scene(run=run, node=node)
    if isinstance(error, (Fault, OSError, MemoryError)) and not isinstance(error, NotRecordable):
        return Failure.from_exception(error, scene=scene)
    advice = UserAction(
        ActionKind.CONTACT_SUPPORT, "Report it with the run's `errors.jsonl`, then resume the run."
    )
    defect = MachineDefect(run=run, event=event, user_action=advice)
    defect.__cause__ = error
    return Failure.from_exception(defect, scene=scene)


class NothingToResume(Fault, kind="session.no_snapshot"):
    """The run has completed, or never began."""

    run: str
    status: str

    def summary(self) -> str:
        """The run and its status."""
        return f"run `{self.run}` is {self.status}; there is nothing to resume"
