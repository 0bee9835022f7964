"""Faults of the journal. Each carries the next step."""

from failwell.errors.fault import Fault
from failwell.errors.faults import Session, Validation


class NotRecordable(Fault, kind="internal.bug"):
    """An event holds something that cannot be stored."""

    reason: str

    def summary(self) -> str:
        return f"an event cannot be recorded: {self.reason}"


class StreamEnded(Session, kind="session.illegal_transition"):
    """An event was appended after the one that ended the run."""

    run: str
    ended_by: str
    refused: str

    def summary(self) -> str:
        return f"run `{self.run}` ended with `{self.ended_by}`, so `{self.refused}` cannot be added to it"


class UnknownRun(Session, kind="session.no_snapshot"):
    """No run with this id is recorded here."""

    run: str
    near: list[str] | None = None

    def summary(self) -> str:
        return f"no run `{self.run}` is recorded here"


class RunExists(Validation, kind="validation.input_invalid"):
    """A run with this id is already recorded."""

    run: str

    def summary(self) -> str:
        return f"a run `{self.run}` is recorded already"


class BadRunId(Validation, kind="validation.input_invalid"):
    """A run id has 1 to 64 letters, digits, `_` and `-`."""

    run: str
    reason: str = "use 1 to 64 letters, digits, `_` and `-`"

    def summary(self) -> str:
        return f"`{self.run[:80]}` is not a run id: {self.reason}"


class UnknownStatus(Validation, kind="validation.input_invalid"):
    """A run cannot have this status."""

    status: str
    valid: list[str]

    def summary(self) -> str:
        return f"`{self.status[:80]}` is not a status of a run: use {', '.join(self.valid)}"


class Locked(Session, kind="session.locked"):
    """Another process is writing to the run."""

    run: str
    pid: int | None = None
    host: str | None = None
    since: str | None = None

    def summary(self) -> str:
        process = "another process" if self.pid is None else f"process {self.pid}"
        where = "" if self.host is None else f" on {self.host}"
        when = "" if self.since is None else f" since {self.since}"
        return f"run `{self.run}` is locked by {process}{where}{when}"


class Interrupted(Fault, kind="internal.unknown"):
    """The process of a run died before the run ended."""

    run: str

    def summary(self) -> str:
        return f"the process of run `{self.run}` died before the run ended"


class StoreUnavailable(Session, kind="session.store_unavailable"):
    """The journal could not be read or written."""


class StoreCorrupt(Session, kind="session.store_corrupt"):
    """The file is damaged, or is not a journal."""


class StoreFull(Fault, kind="resource.disk"):
    """There is no space left for the journal."""


class NoFileHandle(StoreFull, kind="resource.file_handles"):
    """This process, or the machine, has as many files open as it may."""


class StoreNewer(Session, kind="session.resume_mismatch"):
    """The journal was written by a newer version of failwell."""

    path: str
    found: int
    known: int

    def summary(self) -> str:
        return (
            f"the journal `{self.path}` has version {self.found}, "
            f"and this failwell supports versions up to {self.known}"
        )
