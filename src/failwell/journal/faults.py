"""What can go wrong with a journal, each with the next step in its words."""

from failwell.fault.axes import ActionKind
from failwell.fault.base import Fault
from failwell.fault.classes import Session, Validation
from failwell.fault.facts import UserAction


class DraftBroken(Fault, kind="internal.bug"):
    """An event must belong to exactly one run or session."""

    type: str
    both: bool

    def summary(self) -> str:
        named = "both a run and a session" if self.both else "neither a run nor a session"
        return f"an event `{self.type}` was drafted for {named}"


class NotRecordable(Fault, kind="internal.bug"):
    """An event holds something that cannot be written down."""

    reason: str

    def summary(self) -> str:
        return f"an event cannot be recorded: {self.reason}"


class StreamEnded(Session, kind="session.illegal_transition"):
    """Nothing may follow the event that ended a run."""

    run: str
    ended_by: str
    refused: str

    def summary(self) -> str:
        return f"run `{self.run}` ended with `{self.ended_by}`, so `{self.refused}` cannot be added to it"


class UnknownRun(Session, kind="session.no_snapshot"):
    """No run of that name is recorded here."""

    run: str
    near: list[str] | None = None

    def summary(self) -> str:
        return f"no run `{self.run}` is recorded here"


class RunExists(Validation, kind="validation.input_invalid"):
    """A run of that name is recorded already."""

    run: str

    def summary(self) -> str:
        return f"a run `{self.run}` is recorded already"


class BadRunId(Validation, kind="validation.input_invalid"):
    """A run id has letters, digits, `_` and `-`, and is 1 to 64 characters long."""

    run: str

    def summary(self) -> str:
        return f"`{self.run[:80]}` is no run id: use 1 to 64 letters, digits, `_` and `-`"


class Locked(Session, kind="session.locked"):
    """Another process is writing to the run."""

    run: str
    pid: int | None = None
    host: str | None = None
    since: str | None = None

    def summary(self) -> str:
        who = "another process" if self.pid is None else f"process {self.pid}"
        where = "" if self.host is None else f" on {self.host}"
        when = "" if self.since is None else f" since {self.since}"
        return f"run `{self.run}` is in the hands of {who}{where}{when}"


class StoreUnavailable(Session, kind="session.store_unavailable"):
    """The journal could not be read or written."""


class StoreCorrupt(Session, kind="session.store_corrupt"):
    """The journal is damaged, or is no journal."""


class StoreFull(Fault, kind="resource.disk"):
    """There is no space left for the journal."""


class StoreNewer(Session, kind="session.resume_mismatch"):
    """The journal was written by a newer version of failwell."""

    path: str
    found: int
    known: int

    def summary(self) -> str:
        return (
            f"the journal `{self.path}` has version {self.found}, "
            f"and this failwell knows versions up to {self.known}"
        )


def already_taken(run: str, *, pid: int | None, host: str | None, since: str | None) -> Locked:
    """The fault for a run that somebody else is writing to."""
    advice = (
        f"wait until it ends, or watch it with `failwell runs tail {run}`"
        if pid is None
        else f"watch it with `failwell runs tail {run}`, or end process {pid} and repeat"
    )
    return Locked(
        run=run, pid=pid, host=host, since=since, user_action=UserAction(ActionKind.WAIT_AND_RETRY, advice)
    )
