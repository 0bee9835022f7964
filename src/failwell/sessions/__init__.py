"""Sessions: conversations with one agent that outlive their process.

Every input, answer, tool call and result is in the journal before anything follows from it. A session that was interrupted is
resumed where it stopped; tool calls that were open get a result that says so.

Example:
    >>> from failwell.sessions import list_sessions
    >>> list_sessions(store="/nowhere/at/all")
    []
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    from failwell.sessions.faults import ForeignSession as ForeignSession
    from failwell.sessions.faults import ManifestDrift as ManifestDrift
    from failwell.sessions.faults import SessionLocked as SessionLocked
    from failwell.sessions.faults import UnknownSession as UnknownSession
    from failwell.sessions.opening import SessionOptions as SessionOptions
    from failwell.sessions.opening import open_session as open_session
    from failwell.sessions.opening import resume_session as resume_session
    from failwell.sessions.recorded import RecordedSession as RecordedSession
    from failwell.sessions.recorded import delete_session as delete_session
    from failwell.sessions.recorded import list_sessions as list_sessions
    from failwell.sessions.recorded import session_events as session_events
    from failwell.sessions.session import AgentSession as AgentSession
    from failwell.sessions.session import TurnResult as TurnResult
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "failwell.sessions.faults": "ForeignSession ManifestDrift SessionLocked UnknownSession",
            "failwell.sessions.opening": "SessionOptions open_session resume_session",
            "failwell.sessions.recorded": "RecordedSession delete_session list_sessions session_events",
            "failwell.sessions.session": "AgentSession TurnResult",
        },
    )
