"""The event record, and the JSON it is stored as.

Runs, sessions and jobs use the same record. A producer supplies facts; the store numbers them, without
gaps, and returns events.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from failwell.processes.wire import json_encoder
from failwell.store.faults import NotRecordable

TERMINAL: frozenset[str] = frozenset({"run:completed", "run:failed", "run:cancelled", "session:cancelled"})
"""Types that end a run or a session. Each stream has exactly one of them, as its last event."""
JOB_TERMINAL: frozenset[str] = frozenset({"completed", "failed", "cancelled"})
"""Types that end a job."""

Fact = tuple[str, float, Mapping[str, Any]]
"""Type, time in seconds since 1970, and data: an event without a number."""


class Event(NamedTuple):
    """One entry of the log. `data` is plain JSON; do not change it."""

    seq: int
    """Counts from 0 in a run or a session, and from 1 over all jobs of a store. 0 marks a job event
    that is delivered but not stored, such as progress."""
    type: str
    at: float
    """Seconds since 1970."""
    data: Mapping[str, Any]
    job: str = ""
    """The job's id, for an event of the job queue."""

    @property
    def is_terminal(self) -> bool:
        """Whether nothing may follow in this run or session."""
        return self.type in TERMINAL

    @property
    def is_final(self) -> bool:
        """Whether this event ended a job."""
        return self.type in JOB_TERMINAL

    def to_dict(self) -> dict[str, Any]:
        """The event as a JSON object."""
        return {"seq": self.seq, "type": self.type, "at": self.at, "data": self.data}

    def to_line(self) -> str:
        """The event as one line of JSON, without a line ending."""
        return to_json(self.to_dict())


_encode = json_encoder(ascii_only=True)


def to_json(value: object) -> str:
    """`value` as compact ASCII JSON, which every store accepts.

    Raises:
        NotRecordable: it holds something that JSON cannot represent.
    """
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotRecordable(reason=_reason(error)) from error


def from_json(text: str) -> Any:
    """The data of an event that `to_json` wrote.

    Raises:
        ValueError: the text is not JSON.
    """
    return json.loads(text)


def _reason(error: Exception) -> str:
    # The standard messages of these two may quote the value.
    if isinstance(error, RecursionError):
        return "it is nested too deeply, or contains itself"
    if isinstance(error, ValueError):
        return "it contains a number that JSON cannot represent"
    return str(error)
