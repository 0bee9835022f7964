"""One thing that happened: a number, a type, a time and plain JSON.

Numbers start at 0 and have no gaps; the store gives them, nobody else. A producer hands in facts,
or drafts where it also says whose they are, and gets events back.
"""

import json
from collections.abc import Callable, Mapping
from json import encoder
from typing import Any, NamedTuple, cast

from failwell.fault.frozen import frozen
from failwell.journal.faults import DraftBroken, NotRecordable

TERMINAL: frozenset[str] = frozenset({"run:completed", "run:failed", "run:cancelled", "session:cancelled"})
"""What ends a run or a session. Each has one of them, and it is the last."""

Fact = tuple[str, float, Mapping[str, Any]]
"""A type, a time in seconds since 1970, and data: an event that has no number yet."""


class Event(NamedTuple):
    """One entry of the journal. `data` is plain JSON and is not to be changed."""

    seq: int
    type: str
    at: float
    """Seconds since 1970."""
    data: Mapping[str, Any]

    @property
    def is_terminal(self) -> bool:
        """Whether nothing may follow."""
        return self.type in TERMINAL

    def to_dict(self) -> dict[str, Any]:
        """The event as an object of JSON."""
        return {"seq": self.seq, "type": self.type, "at": self.at, "data": self.data}

    def to_line(self) -> str:
        """The event as one line of JSON, without the line's end."""
        return encoded(self.to_dict())

    @classmethod
    def from_line(cls, line: str) -> "Event":
        """Read back what `to_line` wrote; keys of newer versions are passed over.

        Raises:
            ValueError: the line is not an event.
        """
        read: object = json.loads(line)
        match read:
            case {"seq": int(seq), "type": str(type_), "at": int() | float() as at, "data": dict()}:
                return cls(seq, type_, float(at), cast("dict[str, dict[str, Any]]", read)["data"])
            case _:
                raise ValueError("an event is an object with `seq`, `type`, `at` and `data`")


@frozen
class Draft:
    """A fact and whose it is: a run's or a session's, never both and never neither.

    Raises:
        DraftBroken: it names both, or none. This cannot be switched off.
    """

    type: str
    at: float
    data: Mapping[str, Any]
    run: str | None = None
    session: str | None = None

    def __post_init__(self) -> None:
        if (self.run is None) == (self.session is None):
            raise DraftBroken(type=self.type, both=self.run is not None)

    @property
    def stream(self) -> str:
        """The id that the event is numbered under."""
        return cast("str", self.run if self.session is None else self.session)

    @property
    def fact(self) -> Fact:
        """What a store takes."""
        return (self.type, self.at, self.data)


def _refuse(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is not JSON")


def _encoder() -> Callable[[object], str]:
    made = getattr(encoder, "c_make_encoder", None)
    if made is None:
        return json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode
    # `JSONEncoder.encode` makes this object anew for every call, which costs more than small data does.
    sort_keys = skip_keys = allow_nan = False
    ascii_text = encoder.encode_basestring_ascii
    chunks = made(None, _refuse, ascii_text, None, ":", ",", sort_keys, skip_keys, allow_nan)
    join = "".join
    return lambda value: join(chunks(value, 0))


_encode = _encoder()


def encoded(value: object) -> str:
    """`value` as compact JSON in ASCII, so that no text can break the store it goes to.

    Raises:
        NotRecordable: it holds something that JSON cannot say.
    """
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotRecordable(reason=_reason(error)) from error


def decoded(text: str) -> Any:
    """What `encoded` wrote.

    Raises:
        ValueError: the text is not JSON.
    """
    return json.loads(text)


def _reason(error: Exception) -> str:
    # The standard words for these two may quote the value.
    if isinstance(error, RecursionError):
        return "it is nested too deeply, or holds itself"
    if isinstance(error, ValueError):
        return "it holds a number that JSON has no word for"
    return str(error)
