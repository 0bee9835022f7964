"""Why a run does not start, or is not resumed. Nothing has happened when one of these is raised."""

from typing import Any

from failwell.fault.base import Fault
from failwell.files.mistakes import Mistake, to_json


class WorkflowInvalid(Fault, kind="validation.shape_invalid"):
    """A workflow file, or what it was given, has mistakes; nothing ran."""

    file: str
    mistakes: list[Mistake]

    def summary(self) -> str:
        """How many, where, and the first."""
        errors = [mistake for mistake in self.mistakes if mistake.is_error]
        if len(errors) == 1:
            return f"`{self.file}` has one mistake: {errors[0].message}"
        first = f", the first: {errors[0].message}" if errors else ""
        return f"`{self.file}` has {len(errors)} mistakes{first}"

    def own_fields(self) -> dict[str, Any]:
        """The mistakes as JSON, since a report travels."""
        return {"file": self.file, "mistakes": to_json(self.mistakes)}


class FileChanged(Fault, kind="session.resume_mismatch"):
    """The files of a run are not what they were when it began."""

    run: str
    changed: list[str]
    """One line for each difference that matters."""

    def summary(self) -> str:
        """Which run, and how much."""
        return f"the files of run `{self.run}` have changed: {'; '.join(self.changed)}"


class NothingToResume(Fault, kind="session.no_snapshot"):
    """The run has ended well, or never began."""

    run: str
    status: str

    def summary(self) -> str:
        """Why there is nothing to do."""
        return f"run `{self.run}` is {self.status}; there is nothing to resume"
