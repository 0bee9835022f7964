"""Requests to a dialect, its replies, and what a scripted model says: values only, no sockets."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from failwell.testing.laboratory.delay_forms import Wait

Headers = tuple[tuple[str, str], ...]
Ending = Literal["whole", "cut", "reset"]
"""How a reply ends: complete, closed early, or reset early."""
Stall = Literal["never", "head", "body"]


@dataclass(frozen=True, slots=True)
class LabCall:
    """The parts of a request that a dialect uses."""

    method: str = "POST"
    path: str = "/"
    """What the SDK appended to its base URL, without the query."""
    body: Any = None
    """The body as JSON; `None` if it is not JSON."""
    stream: bool = False
    wait: Wait = field(default_factory=lambda: Wait("none"))
    base: str = "http://127.0.0.1"
    """The SDK's base URL, for replies that point back to the server."""

    def member(self, name: str) -> Any:
        """One member of the body; `None` if it is missing or the body is no object."""
        body: object = self.body
        return cast("dict[str, Any]", body).get(name) if isinstance(body, dict) else None

    @property
    def model(self) -> str:
        """The requested model, if the body names one."""
        name = self.member("model")
        return name if isinstance(name, str) else "lab-model"


@dataclass(frozen=True, slots=True)
class Reply:
    """What the lab sends over the wire, and how it ends."""

    status: int | None = 200
    """`None` if nothing is sent."""
    headers: Headers = ()
    body: bytes = b""
    pieces: tuple[bytes, ...] | None = None
    """A stream, piece by piece, instead of a body."""
    ending: Ending = "whole"
    stall: Stall = "never"
    unread: bool = False
    """The request is left unread."""

    def header(self, name: str) -> str | None:
        """The value of one header."""
        return next((value for key, value in self.headers if key.lower() == name), None)


Answer = Callable[[LabCall], Reply]


def as_json(status: int, body: object, *headers: tuple[str, str], kind: str = "application/json") -> Reply:
    """A JSON reply."""
    return Reply(status, (("content-type", kind), *headers), json.dumps(body).encode())


def as_events(*pieces: bytes, headers: Headers = (), kind: str = "text/event-stream") -> Reply:
    """A stream that was answered with 200."""
    return Reply(200, (("content-type", kind), ("cache-control", "no-cache"), *headers), pieces=pieces)


def event(body: object, name: str | None = None, *, id: str | None = None) -> bytes:  # noqa: A002  (its name there)
    """One server-sent event."""
    data = body if isinstance(body, str) else json.dumps(body)
    fields = (("event", name), ("id", id), ("data", data))
    return "".join(f"{field}: {value}\n" for field, value in fields if value is not None).encode() + b"\n"


def as_page(status: int, title: str, *headers: tuple[str, str]) -> Reply:
    """A gateway's own page."""
    page = (
        f"<!DOCTYPE html>\n<html>\n<head><title>{status} {title}</title></head>\n"
        f"<body>\n<center><h1>{status} {title}</h1></center>\n<hr><center>nginx</center>\n</body>\n</html>\n"
    )
    return Reply(status, (("content-type", "text/html; charset=utf-8"), *headers), page.encode())


def always(reply: Reply) -> Answer:
    """An answer that does not depend on the request."""
    return lambda _: reply


def cut(reply: Reply, ending: Ending, *, without: int = 1) -> Reply:
    """A stream without its last `without` pieces."""
    assert reply.pieces is not None
    return replace(reply, pieces=reply.pieces[:-without], ending=ending)


def broken_streams(
    fine: Answer, error: bytes, *, after: Callable[[LabCall], int] | int = 1
) -> dict[str, Answer]:
    """The streams that end early: with `error` as an event, cleanly, or reset; `after` events come after the content."""

    def begun(call: LabCall, ending: Ending = "whole") -> Reply:
        return cut(fine(call), ending, without=after if isinstance(after, int) else after(call))

    def failing(call: LabCall) -> Reply:
        stream = begun(call)
        return replace(stream, pieces=(*(stream.pieces or ()), error))

    return {
        "in_stream_error": failing,
        "truncated_stream": begun,
        "broken_stream": lambda call: begun(call, "reset"),
    }


Declined = Mapping[str, str]
"""Scenario → why this dialect does not have it."""

HOSTED: Declined = {
    "model_loading": "its models are always loaded",
    "out_of_memory": "it does not show its hosts",
}
"""What a provider declines that hosts models for others."""


@dataclass(frozen=True, slots=True)
class LabTurn:
    """One reply of a scripted model: what it thinks, says and calls. Any part may be left out."""

    text: str = ""
    calls: tuple[tuple[str, Mapping[str, Any] | str], ...] = ()
    """Tool calls, each a name and its arguments; as a string, they may be JSON that is broken."""
    thinking: str = ""
    """What a reasoning model thinks first. Chat completions do not show it."""

    def arguments(self) -> list[tuple[str, str]]:
        """The names of the calls, and their arguments as JSON."""
        return [
            (name, arguments if isinstance(arguments, str) else json.dumps(dict(arguments)))
            for name, arguments in self.calls
        ]


@dataclass(slots=True)
class Pieces:
    """A text in the pieces in which a stream sends it."""

    text: str
    size: int = field(default=12)

    def __iter__(self) -> Iterator[str]:
        return (self.text[start : start + self.size] for start in range(0, len(self.text), self.size))


NOTHING = LabTurn()
HELLO = LabTurn("Hello from the lab.")
BROKEN_CALL = LabTurn(calls=(("find_city", '{"city": "Par'),))
