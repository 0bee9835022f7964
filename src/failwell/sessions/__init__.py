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
    from failwell.sessions.open_sessions import open_session as open_session
    from failwell.sessions.open_sessions import resume_session as resume_session
    from failwell.sessions.recorded_sessions import RecordedSession as RecordedSession
    from failwell.sessions.recorded_sessions import delete_session as delete_session
    from failwell.sessions.recorded_sessions import list_sessions as list_sessions
    from failwell.sessions.recorded_sessions import session_events as session_events
    from failwell.sessions.session import Session as Session
    from failwell.sessions.session import TurnResult as TurnResult
    from failwell.sessions.session_faults import ForeignSession as ForeignSession
    from failwell.sessions.session_faults import ManifestDrift as ManifestDrift
    from failwell.sessions.session_faults import SessionLocked as SessionLocked
    from failwell.sessions.session_faults import UnknownSession as UnknownSession
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "ForeignSession": "failwell.sessions.session_faults",
            "ManifestDrift": "failwell.sessions.session_faults",
            "RecordedSession": "failwell.sessions.recorded_sessions",
            "Session": "failwell.sessions.session",
            "SessionLocked": "failwell.sessions.session_faults",
            "TurnResult": "failwell.sessions.session",
            "UnknownSession": "failwell.sessions.session_faults",
            "delete_session": "failwell.sessions.recorded_sessions",
            "list_sessions": "failwell.sessions.recorded_sessions",
            "open_session": "failwell.sessions.open_sessions",
            "resume_session": "failwell.sessions.open_sessions",
            "session_events": "failwell.sessions.recorded_sessions",
        },
    )
