"""`open_session` and `resume_session`: from a file or an id to an open session."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from failwell.agents.message_repair import INTERRUPTED
from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.sessions.agent import SessionAgent, load_agent
from failwell.sessions.faults import (
    SessionLocked,
    foreign_session,
    manifest_corrupt,
    manifest_drift,
    newer_session,
    unknown_session,
)
from failwell.sessions.history import SessionState
from failwell.sessions.log import OnEvent, SessionLog
from failwell.sessions.manifest import Manifest, NewerManifest, changes_between, manifest_of
from failwell.sessions.recorded import check_recorded
from failwell.store.faults import StoreCorrupt
from failwell.store.folder import check_new_run_id, new_run_id, run_folder, state_folder
from failwell.store.locks import Holder, ProcessLock
from failwell.store.sqlite.run_store import SqliteStore

if TYPE_CHECKING:
    from failwell.agents.people.queue import InteractionQueue
    from failwell.sessions.session import AgentSession
    from failwell.store.sqlite.database import Durability


class SessionOptions(TypedDict, total=False):
    """What opening and resuming a session have in common."""

    store: str | Path | None
    """The state folder that records the session (default: `FAILWELL_STORE`, else the user's own)."""
    questions: "InteractionQueue | None"
    """Where people are asked. Without it nobody is, and a turn that needs a person halts."""
    on_event: OnEvent | None
    """Called with each event after it was recorded."""
    on_text: Callable[[str], object] | None
    """Called with each piece of an answer while it comes in."""
    allow_outside: bool
    """Whether the file may include files outside its project."""
    durability: "Durability"
    """`full` writes every record to the disk before anything follows from it."""
    clock: Clock
    """Tells the time, and waits between two writes of the journal."""
    environ: Mapping[str, str] | None
    """The variables that the file may use."""


async def open_session(
    agent: str | Path,
    *,
    name: str | None = None,
    session_id: str | None = None,
    model: str | None = None,
    **options: Unpack[SessionOptions],
) -> "AgentSession":
    """Begin a session with an agent.

    Args:
        agent: An agent file, or a workflow file with agents.
        name: Which agent, for a file with several.
        session_id: An id for it (default: a new one).
        model: A model that is called instead of the agent's own, such as `scripted:replies.yaml`.
        **options: See `SessionOptions`.

    Raises:
        WorkflowInvalid: the file has errors.
        Validation: the file cannot be read, or has no such agent.
    """
    loaded = _loaded(agent, name, options)
    folder, clock = _folder(options), options.get("clock", SYSTEM_CLOCK)
    now = clock.now().timestamp()
    session = check_new_run_id(session_id) if session_id else new_run_id(now, {})
    with ExitStack() as undo:
        lock = _lock(folder, session)
        lock.acquire()
        undo.callback(lock.release)
        journal = SqliteStore(folder, options.get("durability", "normal"))
        undo.callback(journal.close)
        manifest = manifest_of(loaded, store=journal.identity(), model=model)
        log = _log(journal, session, SessionState(), options)
        journal.audit.append(
            "session:started", {"agent": loaded.node.name, "file": loaded.plan.file}, run=session
        )
        log.accept(
            journal.create(
                session,
                at=now,
                workflow=loaded.node.name,
                file=loaded.plan.file,
                digest=loaded.plan.digest,
                sources=loaded.texts,
                subject="session",
                facts=[("session:started", now, {"manifest": manifest.to_dict()})],
            )
        )
        undo.pop_all()
    return _session(log, loaded, journal, lock, run_folder(folder, session), options)


async def resume_session(
    session: str,
    *,
    model: str | None = None,
    accept_changes: bool = False,
    **options: Unpack[SessionOptions],
) -> "AgentSession":
    """Open a recorded session again. Tool calls that were open get a result that says that they were interrupted.

    Args:
        session: The id.
        model: A model that is called instead of the recorded one. This is a change that must be accepted.
        accept_changes: Whether to go on although the agent has changed.
        **options: See `SessionOptions`.

    Raises:
        UnknownSession: there is none with this id.
        SessionLocked: another process has it open.
        ForeignSession: it was recorded in another store.
        ManifestDrift: the agent has changed, and `accept_changes` is not set.
        StoreCorrupt: its record is damaged.
        StoreUnavailable: the journal may not be read.
    """
    folder = _folder(options)
    with ExitStack() as undo:
        journal, lock, state, manifest = _recorded(folder, session, options.get("durability", "normal"), undo)
        loaded = _loaded(manifest.file, manifest.agent, options)
        current = manifest_of(
            loaded, store=manifest.store, approvals=manifest.approvals, model=model or manifest.model
        )
        changes = changes_between(manifest, current)
        if changes and not accept_changes:
            raise manifest_drift(session, changes)
        log = _log(journal, session, state, options)
        await log.close_calls(INTERRUPTED)
        await log.write(("session:resumed", {"manifest": current.to_dict(), "changes": changes}))
        undo.pop_all()
    return _session(log, loaded, journal, lock, run_folder(folder, session), options)


def _folder(options: SessionOptions) -> Path:
    store = options.get("store")
    return state_folder(None if store is None else str(store))


def _loaded(file: str | Path, agent: str | None, options: SessionOptions) -> SessionAgent:
    return load_agent(
        file,
        agent=agent,
        environ=options.get("environ"),
        allow_outside=options.get("allow_outside", False),
    )


def _log(journal: SqliteStore, session: str, state: SessionState, options: SessionOptions) -> SessionLog:
    on_event = options.get("on_event")
    return SessionLog(
        journal,
        session,
        state,
        clock=options.get("clock", SYSTEM_CLOCK),
        watchers=() if on_event is None else (on_event,),
    )


def _recorded(
    folder: Path, session: str, durability: "Durability", undo: ExitStack
) -> tuple[SqliteStore, ProcessLock, SessionState, Manifest]:
    """The journal, the lock, the state and the manifest of a session. Nothing of its agent is loaded before this."""
    from failwell.store.folder import JOURNAL

    if not (folder / JOURNAL).exists():
        raise unknown_session(session)
    journal = SqliteStore(folder, durability)
    undo.callback(journal.close)
    check_recorded(journal, session)
    lock = _lock(folder, session)
    lock.acquire()
    undo.callback(lock.release)
    state = read_state(journal, session)
    manifest = state.manifest
    if manifest is None:
        raise manifest_corrupt(session, "its manifest is missing")
    if manifest.store != journal.identity():
        raise foreign_session(session, manifest.store)
    return journal, lock, state, manifest


def read_state(journal: SqliteStore, session: str) -> SessionState:
    """What the events of a session add up to.

    Raises:
        StoreCorrupt: one of them cannot be read.
        NewerSession: a newer version recorded it.
    """
    state = SessionState()
    try:
        state.fold(journal.read(session))
    except StoreCorrupt as error:
        raise manifest_corrupt(session, "an event cannot be decoded") from error
    except NewerManifest as error:
        raise newer_session(session, str(error)) from None
    except ValueError as error:
        raise manifest_corrupt(session, str(error)) from error
    return state


def _session(
    log: SessionLog,
    agent: SessionAgent,
    journal: SqliteStore,
    lock: ProcessLock,
    folder: Path,
    options: SessionOptions,
) -> "AgentSession":
    from failwell.agents.audit import record_event
    from failwell.agents.people.queue import InteractionQueue
    from failwell.sessions.session import AgentSession

    questions = options.get("questions") or InteractionQueue()
    if questions.observe is None:
        questions.observe = partial(record_event, lambda: journal.audit)
    return AgentSession(log, agent, journal, lock, questions, folder=folder, on_text=options.get("on_text"))


def _lock(folder: Path, session: str) -> ProcessLock:
    def refusal(holder: Holder) -> SessionLocked:
        from failwell.errors.axes import ActionKind
        from failwell.errors.facts import UserAction

        return SessionLocked(
            session=session,
            pid=holder.pid,
            host=holder.host,
            user_action=UserAction(
                ActionKind.WAIT_AND_RETRY, "leave it there first, or begin another with `failwell chat`"
            ),
        )

    return ProcessLock(run_folder(folder, session), refusal)
