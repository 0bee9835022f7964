"""Why a session cannot be opened or resumed. Each says what to do next."""

from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.errors.faults import Session, Validation


class UnknownSession(Session, kind="session.no_snapshot"):
    """No session with this id is recorded here."""

    session: str
    near: list[str] | None = None

    def summary(self) -> str:
        return f"no session `{self.session}` is recorded here"


class SessionLocked(Session, kind="session.locked"):
    """Another process has the session open."""

    session: str
    pid: int | None = None
    host: str | None = None

    def summary(self) -> str:
        process = "another process" if self.pid is None else f"process {self.pid}"
        where = "" if self.host is None else f" on {self.host}"
        return f"session `{self.session}` is open in {process}{where}"


class ManifestDrift(Session, kind="session.manifest_drift"):
    """The agent is not the one that the session was held with."""

    session: str
    changes: list[str]
    """One line for each change."""

    def summary(self) -> str:
        return f"the agent of session `{self.session}` has changed: {'; '.join(self.changes)}"


class ForeignSession(Session, kind="session.resume_mismatch"):
    """The session was recorded in another store."""

    session: str
    store: str
    """The id of the store that it belongs to."""

    def summary(self) -> str:
        return f"session `{self.session}` belongs to another store ({self.store[:8]}…)"


class NewerSession(Session, kind="session.resume_mismatch"):
    """A newer version of failwell recorded the session."""

    session: str
    problem: str

    def summary(self) -> str:
        return f"session `{self.session}` cannot be resumed: {self.problem}"


class ManifestCorrupt(Session, kind="session.store_corrupt"):
    """The record of the session is damaged."""

    session: str
    problem: str

    def summary(self) -> str:
        return f"the record of session `{self.session}` is damaged: {self.problem}; other sessions are not affected"


class SessionClosed(Session, kind="session.illegal_transition"):
    """The session was closed, or ended with an error, and takes no input."""

    session: str

    def summary(self) -> str:
        return f"session `{self.session}` is closed; resume it to send more"


class NothingToRetry(Validation, kind="validation.input_invalid"):
    """The latest turn has an answer, or there is none."""

    session: str

    def summary(self) -> str:
        return f"the latest turn of session `{self.session}` did not fail, so there is nothing to repeat"


def unknown_session(session: str, near: list[str] | None = None) -> UnknownSession:
    """The fault for an id that no session has."""
    return UnknownSession(
        session=session,
        near=near,
        user_action=UserAction(ActionKind.CHANGE_INPUT, "list them with `failwell sessions list`"),
    )


def foreign_session(session: str, store: str) -> ForeignSession:
    """The fault for a session of another store."""
    return ForeignSession(
        session=session,
        store=store,
        user_action=UserAction(
            ActionKind.FIX_CONFIGURATION, "resume it in the state folder that recorded it, with `--store DIR`"
        ),
    )


def manifest_drift(session: str, changes: list[str]) -> ManifestDrift:
    """The fault for an agent that has changed, with the option that accepts the changes."""
    return ManifestDrift(
        session=session,
        changes=changes,
        user_action=UserAction(
            ActionKind.FIX_CONFIGURATION,
            f"undo the changes, or accept them with `failwell chat --resume {session} --accept-changes`",
        ),
    )


def newer_session(session: str, problem: str) -> NewerSession:
    """The fault for a session that a newer version recorded."""
    return NewerSession(
        session=session,
        problem=problem,
        user_action=UserAction(ActionKind.FIX_CONFIGURATION, "update failwell: `pip install -U failwell`"),
    )


def manifest_corrupt(session: str, problem: str) -> ManifestCorrupt:
    """The fault for a session whose record cannot be read."""
    return ManifestCorrupt(
        session=session,
        problem=problem,
        user_action=UserAction(
            ActionKind.CONTACT_SUPPORT,
            f"restore a copy of the journal, or delete it with `failwell sessions delete {session}`",
        ),
    )
