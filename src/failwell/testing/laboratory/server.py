"""The lab server: listens on loopback, fails as requested, and counts the requests.

A thread accepts, and every connection has a thread of its own, so a stalled reply blocks no other.
"""

import socket
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Any, Self

from failwell.testing.laboratory.http_wire import Connection, Gone, Head
from failwell.testing.laboratory.lab_reply import LabCall, LabTurn, Reply, as_json
from failwell.testing.laboratory.lab_routes import (
    NoSuchFailure,
    Route,
    check,
    find_route,
    parse,
    wants_stream,
)
from failwell.testing.laboratory.scenario import SCENARIOS, Truth

LONG = 3_600.0
"""Default duration of a stalled reply: longer than any client waits."""
_HOST = "127.0.0.1"
_BACKLOG = 512
_PATIENCE = 5.0
_PAUSE = 0.02
_MOST_NOTED = 1_000
_LARGEST_NOTED = 64 * 1024


@dataclass(frozen=True, slots=True)
class LabRequest:
    """One request that reached the lab."""

    dialect: str
    scenario: str
    form: str | None
    method: str
    path: str
    """What the SDK appended to its base URL."""
    headers: dict[str, str]
    """Names are in lower case. Empty if the request was left unread."""
    body: Any
    """The body as JSON; `None` if it is not JSON, was left unread, or is larger than 64 KiB."""
    stream: bool
    status: int | None
    """The status of the reply; `None` if there was none."""


class Lab:
    """A running lab server. Use it in a `with` block, or call `start` and `stop`."""

    def __init__(
        self,
        *,
        port: int = 0,
        stall: float = LONG,
        on_request: Callable[[LabRequest], None] | None = None,
        strict: bool = False,
        delay: float | None = None,
        drop_stalled: bool = False,
    ) -> None:
        self.stall = stall
        """Seconds that the slow scenarios stall; may be changed at any time."""
        self.strict = strict
        """Whether conversations that a provider does not accept are refused; may be changed at any time."""
        self.delay = delay
        """Seconds that a rate limit asks for, instead of those of its form; may be changed at any time."""
        self.drop_stalled = drop_stalled
        """Whether the slow scenarios end in a reset instead of the answer; may be changed at any time."""
        self._scripts: defaultdict[str, deque[LabTurn]] = defaultdict(deque)
        self._turns = 0
        self._wanted = port
        self._on_request = on_request
        self._listener: socket.socket | None = None
        self._closed: socket.socket | None = None
        self._accepting: Thread | None = None
        self._lock = Lock()
        self._open: dict[Connection, Thread] = {}
        self._counts: defaultdict[tuple[str, str, str | None], int] = defaultdict(int)
        self._requests: defaultdict[tuple[str, str], deque[LabRequest]] = defaultdict(
            lambda: deque(maxlen=_MOST_NOTED)
        )
        self._stopping = Event()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, cls: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> Self:
        """Start to listen. Does nothing if it listens already.

        Raises:
            OSError: the port is in use, or this user may not use it.
        """
        if self._listener is not None:
            return self
        self._listener = _bound(self._wanted, again=True)
        self._listener.listen(_BACKLOG)
        # Bound and never listening: the port is closed, and no other process can open it meanwhile.
        self._closed = _bound(0, again=False)
        self._stopping.clear()
        self._accepting = Thread(
            target=self._accept, args=(self._listener,), name="failwell-lab", daemon=True
        )
        self._accepting.start()
        return self

    def stop(self) -> None:
        """Close every connection and end every thread; may be called more than once."""
        if self._listener is None or self._accepting is None or self._closed is None:
            return
        self._stopping.set()
        _knock(self.port)
        self._accepting.join(_PATIENCE)
        self._listener.close()
        self._closed.close()
        with self._lock:
            connections = dict(self._open)
        for connection in connections:
            connection.close()
        for thread in connections.values():
            thread.join(_PATIENCE)
        self._listener = self._closed = self._accepting = None

    @property
    def port(self) -> int:
        """The port it listens on."""
        return _port(self._listener)

    @property
    def address(self) -> str:
        """The address of the server."""
        return f"http://{_HOST}:{self.port}"

    def url(self, dialect: str, scenario: str, form: str | None = None) -> str:
        """The base URL to give to an SDK; the form of a wait may also be written as `scenario@form`.

        Raises:
            NoSuchFailure: there is no such dialect, scenario or form, or the dialect declines it.
        """
        route = _route(dialect, scenario, form)
        port = _port(self._closed) if route.scenario == "refused" else self.port
        suffix = "" if route.form is None else f"@{route.form}"
        return f"http://{_HOST}:{port}/{route.dialect.name}/{route.scenario}{suffix}"

    def truth(self, dialect: str, scenario: str, form: str | None = None, *, stream: bool = False) -> Truth:
        """The correct classification of that failure, for a call without declarations.

        Raises:
            NoSuchFailure: there is no such dialect, scenario or form, or the dialect declines it.
        """
        route = _route(dialect, scenario, form)
        return route.dialect.truth(route.scenario, route.form, stream=stream)

    def calls(self, dialect: str | None = None, scenario: str | None = None) -> int:
        """The number of requests for this dialect and scenario, or for any.

        Raises:
            NoSuchFailure: there is no such dialect, scenario or form.
        """
        name, form = _checked_scenario(dialect, scenario)
        with self._lock:
            return sum(
                count
                for (vendor, label, suffix), count in self._counts.items()
                if dialect in (None, vendor) and name in (None, label) and form in (None, suffix)
            )

    def requests(self, dialect: str, scenario: str) -> tuple[LabRequest, ...]:
        """The latest requests of this dialect and scenario, oldest first.

        Raises:
            NoSuchFailure: there is no such dialect, scenario or form.
        """
        name, form = _checked_scenario(dialect, scenario)
        with self._lock:
            requests = tuple(self._requests.get((dialect, name or ""), ()))
        return tuple(request for request in requests if form in (None, request.form))

    def script(self, dialect: str, *turns: LabTurn) -> None:
        """Let the next replies of this dialect's `ok` say these turns, one a call.

        Raises:
            NoSuchFailure: there is no such dialect, or the lab has no scripts for it.
        """
        if check(dialect, "ok").dialect.scripted is None:
            raise NoSuchFailure(f"the lab has no scripted replies of `{dialect}`")
        with self._lock:
            self._scripts[dialect].extend(turns)

    def reset(self) -> None:
        """Reset the counts."""
        with self._lock:
            self._counts.clear()
            self._requests.clear()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                # A client that left before it was let in, or no more file descriptors.
                if self._stopping.wait(_PAUSE):
                    return
                continue
            if self._stopping.is_set():
                sock.close()
                return
            self._begin(Connection(sock))

    def _begin(self, connection: Connection) -> None:
        thread = Thread(target=self._serve, args=(connection,), name="failwell-lab-call", daemon=True)
        with self._lock:
            self._open[connection] = thread
        try:
            thread.start()
        except RuntimeError:
            # The system gives no more threads; this client is turned away; a later one may get a thread.
            with self._lock:
                del self._open[connection]
            connection.close()

    def _serve(self, connection: Connection) -> None:
        try:
            connection.hurry()
            while self._answer(connection):
                pass
        except (Gone, OSError):
            # Clients time out, reset and leave; that is what this place is for.
            pass
        finally:
            connection.close()
            with self._lock:
                self._open.pop(connection, None)

    def _answer(self, connection: Connection) -> bool:
        target = connection.peek_target()
        if target is not None and self._left_unread(target):
            connection.await_unread()
            connection.reset()
            return False
        head = connection.read_head()
        content = connection.read_body(head)
        body = parse(content)
        try:
            route = find_route(head.target)
            stream = wants_stream(route, body)
        except NoSuchFailure as error:
            return connection.write(_mistake(error), head, self.stall)
        base = f"http://{head.headers.get('host', f'{_HOST}:{self.port}')}{_base_path(route)}"
        call = LabCall(head.method, route.rest, body, stream, base=base)
        reply = self._reply(route, call)
        self._note(route, head, body if len(content) <= _LARGEST_NOTED else None, reply, stream=stream)
        return connection.write(reply, head, self.stall)

    def _reply(self, route: Route, call: LabCall) -> Reply:
        reply = route.dialect.reply(route.scenario, call, route.form, self.delay)
        assert reply is not None, "routes lead only to scenarios that the dialect answers"
        # A provider that rejects the call for another reason does not get as far as the conversation.
        if self.strict and reply.status == HTTPStatus.OK and route.dialect.refuse is not None:
            refusal = route.dialect.refuse(call)
            if refusal is not None:
                return refusal
        if self.drop_stalled and reply.stall != "never":
            return _dropped(reply)
        if route.scenario != "ok" or route.dialect.scripted is None:
            return reply
        with self._lock:
            turns = self._scripts[route.dialect.name]
            turn = turns.popleft() if turns else None
            self._turns += turn is not None
            number = self._turns
        return reply if turn is None else route.dialect.scripted(call, turn, number)

    def _left_unread(self, target: str) -> bool:
        try:
            route = find_route(target)
        except NoSuchFailure:
            return False
        if route.scenario != "reset_before_read":
            return False
        self._note(route, Head("", target, "", {}), None, Reply(None, unread=True))
        return True

    def _note(self, route: Route, head: Head, body: Any, reply: Reply, *, stream: bool = False) -> None:
        request = LabRequest(
            route.dialect.name,
            route.scenario,
            route.form,
            head.method,
            route.rest,
            head.headers,
            body,
            stream,
            reply.status,
        )
        with self._lock:
            self._counts[request.dialect, request.scenario, request.form] += 1
            self._requests[request.dialect, request.scenario].append(request)
        if self._on_request is not None:
            self._on_request(request)


def _route(dialect: str, scenario: str, form: str | None) -> Route:
    name, _, suffix = scenario.partition("@")
    return check(dialect, name, form or suffix or None)


def _checked_scenario(dialect: str | None, scenario: str | None) -> tuple[str | None, str | None]:
    """The name and the form of a scenario, checked, so that a misspelt one is not counted as zero."""
    name, _, form = (scenario or "").partition("@")
    if dialect is not None and scenario is not None:
        check(dialect, name, form or None)
    elif dialect is not None:
        check(dialect, "ok")
    elif scenario is not None and name not in SCENARIOS:
        raise NoSuchFailure(f"no scenario `{name}`; `failwell lab list` shows them")
    return name or None, form or None


def _base_path(route: Route) -> str:
    suffix = "" if route.form is None else f"@{route.form}"
    return f"/{route.dialect.name}/{route.scenario}{suffix}"


def _dropped(reply: Reply) -> Reply:
    """The same slow reply, which is reset where the answer would come."""
    if reply.stall == "head":
        return Reply(None, stall="head", ending="reset")
    return replace(reply, pieces=reply.pieces and reply.pieces[:1], ending="reset")


def _mistake(error: NoSuchFailure) -> Reply:
    return as_json(404, {"lab": str(error)}, ("x-failwell-lab", "mistake"))


def _bound(port: int, *, again: bool) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, again)
        listener.bind((_HOST, port))
    except OSError:
        listener.close()
        raise
    return listener


def _port(sock: socket.socket | None) -> int:
    assert sock is not None, "the lab is closed; use it inside its `with` block"
    return int(sock.getsockname()[1])


def _knock(port: int) -> None:
    """Wake the thread that accepts the lab's connections. A thread that is busy sees the flag by itself."""
    try:
        socket.create_connection((_HOST, port), timeout=1).close()
    except OSError:
        return


def lab(*, stall: float = LONG, strict: bool = False, delay: float | None = None) -> Lab:
    """A laboratory on a free port of this machine, open while its `with` block runs.

    `stall` is how many seconds the slow scenarios take before they answer; the default is longer
    than any client waits. With `strict` it refuses conversations that the provider would refuse, such as
    a tool call without its result. `delay` is how many seconds a rate limit asks for; without it each form has its own.
    """
    return Lab(stall=stall, strict=strict, delay=delay)
