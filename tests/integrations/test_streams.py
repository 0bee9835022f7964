"""Streams that fail after they began: classified by their cause, reported once, ended in their protocol's way."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from flask import Flask
from flask import Response as FlaskResponse
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from failwell.http import FailwellMiddleware, FailwellWSGIMiddleware, ResponseInterrupted
from failwell.integrations import flask, starlette
from tests.delivery.builders import make_fault
from tests.servers import Records, asgi_server, recorded, wsgi_server

WORDS = "the patient is called Ada"


class OwnError(Exception):
    """For which the application has a handler of its own."""


FAILURES: dict[str, tuple[Callable[[], BaseException], str]] = {
    "fault": (lambda: make_fault("provider.overloaded"), "provider.overloaded"),
    "bug": (lambda: KeyError(WORDS), "internal.bug"),
    "refusal": (lambda: HTTPException(409, "taken"), "http.rejected"),
    "handled": (lambda: OwnError(WORDS), "internal.unknown"),
    "os": (lambda: ConnectionResetError(104, WORDS), "provider.outcome_unknown"),
    "group": (lambda: ExceptionGroup(WORDS, [make_fault("provider.overloaded")]), "provider.overloaded"),
}


async def pieces(error: BaseException, first: bytes) -> AsyncIterator[bytes]:
    yield first
    await asyncio.sleep(0)
    raise error


def an_app(arrange: Callable[[FastAPI], None] = starlette.install) -> FastAPI:
    app = FastAPI()
    arrange(app)

    @app.exception_handler(OwnError)
    async def own(request: Any, error: Any) -> Any:
        return PlainTextResponse("own", 418)

    @app.get("/events/{name}")
    async def events(name: str) -> Any:
        return StreamingResponse(pieces(FAILURES[name][0](), b"data: 1\n\n"), media_type="text/event-stream")

    @app.get("/half/{name}")
    async def half(name: str) -> Any:
        return StreamingResponse(pieces(FAILURES[name][0](), b"data: 1"), media_type="text/event-stream")

    @app.get("/text/{name}")
    async def text(name: str) -> Any:
        return StreamingResponse(pieces(FAILURES[name][0](), b"first\n"), media_type="text/plain")

    return app


def with_decorator(app: FastAPI) -> None:
    starlette.install(app)

    @app.middleware("http")
    async def outside(request: Any, call_next: Any) -> Any:
        return await call_next(request)


def with_middleware_on_both_sides(app: FastAPI) -> None:
    async def pass_on(request: Any, call_next: Any) -> Any:
        return await call_next(request)

    app.add_middleware(BaseHTTPMiddleware, dispatch=pass_on)
    starlette.install(app)
    app.add_middleware(BaseHTTPMiddleware, dispatch=pass_on)


def with_newer_protocol(app: FastAPI) -> None:
    """As servers do that speak version 2.4 of the specification, under which Starlette hides an `OSError`."""
    starlette.install(app)
    build = app.build_middleware_stack

    def newer() -> Any:
        inside = build()

        async def outside(scope: Any, receive: Any, send: Any) -> None:
            await inside({**scope, "asgi": {"version": "3.0", "spec_version": "2.4"}}, receive, send)

        return outside

    app.build_middleware_stack = newer


APPS = {
    "plain": an_app(),
    "decorated": an_app(with_decorator),
    "surrounded": an_app(with_middleware_on_both_sides),
    "newer": an_app(with_newer_protocol),
}


async def dispatch(scope: Any, receive: Any, send: Any) -> None:
    """All applications behind one server; the first part of the path chooses."""
    _, name, rest = scope["path"].split("/", 2)
    await APPS[name]({**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}, receive, send)


@pytest.fixture(scope="module")
def address() -> Generator[str]:
    with asgi_server(dispatch) as url:
        yield url


@pytest.fixture
def log() -> Generator[Records]:
    with recorded() as records:
        yield records


def problem_in(body: bytes) -> dict[str, Any]:
    head, _, data = body.partition(b"event: error\ndata: ")
    assert data.endswith(b"\n\n")
    assert b"\n" not in data[:-2]
    return json.loads(data) | {"before": head}


@pytest.mark.parametrize("app", APPS)
def test_an_event_stream_ends_with_the_problem_and_one_record(app: str, address: str, log: Records) -> None:
    for name, (_, kind) in FAILURES.items():
        reply = httpx.get(f"{address}/{app}/events/{name}")

        problem = problem_in(reply.content)
        (line,) = log.take()
        assert reply.status_code == 200
        assert problem["before"] == b"data: 1\n\n"
        assert problem["id"] in line.splitlines()[0]
        assert line.startswith("failwell.http ")
        assert f" {kind}: " in line.splitlines()[0], name
        assert problem["request_id"] == reply.headers["x-request-id"]
        assert problem["instance"] == f"/events/{name}"
        assert WORDS not in line + reply.text


@pytest.mark.parametrize("app", APPS)
def test_any_other_stream_is_cut_off_with_one_record(app: str, address: str, log: Records) -> None:
    for name, (_, kind) in FAILURES.items():
        with (
            pytest.raises(httpx.RemoteProtocolError, match="incomplete"),
            httpx.stream("GET", f"{address}/{app}/text/{name}") as reply,
        ):
            received = b"".join(reply.iter_raw())
            pytest.fail(f"{name} was taken for whole: {received!r}")

        (line,) = log.take()
        assert line.startswith("failwell.http ")
        assert f" {kind}: " in line.splitlines()[0], name
        assert WORDS not in line


def test_half_an_event_is_closed_before_the_problem_begins(address: str, log: Records) -> None:
    problem = problem_in(httpx.get(f"{address}/plain/half/bug").content)

    assert problem["before"] == b"data: 1\n\n"
    assert len(log.take()) == 1


def test_a_stream_that_is_compressed_is_cut_off(log: Records) -> None:
    app = FastAPI()
    app.add_middleware(GZipMiddleware, minimum_size=1)
    inside = FailwellMiddleware(app)

    async def compressed(scope: Any, receive: Any, send: Any) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"text/event-stream"), (b"content-encoding", b"gzip")],
            }
        )
        raise KeyError(WORDS)

    inside.app = compressed
    with pytest.raises(ResponseInterrupted) as caught:
        asyncio.run(inside({"type": "http", "path": "/", "headers": []}, nothing, accept))

    (line,) = log.take()
    assert WORDS not in line + str(caught.value)
    assert str(caught.value).split("[")[1].rstrip("]") in line


async def nothing() -> Any:
    return {"type": "http.request", "body": b"", "more_body": False}


async def accept(message: Any) -> None: ...


def test_the_exception_for_the_server_carries_the_report_that_was_made(log: Records) -> None:
    from failwell import describe

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise make_fault("provider.overloaded")

    with pytest.raises(ResponseInterrupted) as caught:
        asyncio.run(FailwellMiddleware(broken)({"type": "http", "path": "/", "headers": []}, nothing, accept))

    report = describe(caught.value)
    assert (report.kind, report.id in log.take()[0]) == ("provider.overloaded", True)
    assert caught.value.__context__ is None


class ServerGone(OSError):
    """What a server raises for a send after the client has left."""


@pytest.mark.parametrize("version", ["2.3", "2.4"])
def test_a_client_that_leaves_is_no_failure(version: str, log: Records) -> None:
    app = an_app()

    @app.get("/endless")
    async def endless() -> Any:
        async def count() -> AsyncIterator[bytes]:
            while True:
                yield b"data: 1\n\n"
                await asyncio.sleep(0)

        return StreamingResponse(count(), media_type="text/event-stream")

    @app.post("/upload")
    async def upload(request: Request) -> None:
        async for _ in request.stream():
            pass

    sent: list[Any] = []
    left = asyncio.Event()

    async def send(message: Any) -> None:
        if len(sent) >= 3:
            raise ServerGone
        sent.append(message)
        if len(sent) == 3:
            left.set()

    async def receive() -> Any:
        await left.wait()
        return {"type": "http.disconnect"}

    async def leave_at_once() -> Any:
        return {"type": "http.disconnect"}

    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": "/endless",
        "query_string": b"",
        "headers": [],
        "asgi": {"version": "3.0", "spec_version": version},
    }
    asyncio.run(app(scope, receive, send))
    asyncio.run(app({**scope, "method": "POST", "path": "/upload"}, leave_at_once, accept))

    assert log.take() == []
    assert len(sent) == 3


def test_a_disconnect_that_hides_an_error_of_the_stream_is_that_error(log: Records) -> None:
    async def hidden(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            raise ConnectionRefusedError(111, WORDS)
        except OSError:
            raise ClientDisconnect

    with pytest.raises(ResponseInterrupted):
        asyncio.run(FailwellMiddleware(hidden)({"type": "http", "path": "/", "headers": []}, nothing, accept))

    assert " provider.connection: " in log.take()[0]


def test_a_background_task_that_fails_leaves_its_answer_whole(log: Records) -> None:
    def fail() -> None:
        raise ConnectionRefusedError(111, WORDS)

    async def one(request: Any) -> Any:
        return PlainTextResponse("done", background=BackgroundTask(fail))

    async def streamed(request: Any) -> Any:
        async def whole() -> AsyncIterator[bytes]:
            yield b"do"
            yield b"ne"

        return StreamingResponse(whole(), background=BackgroundTask(fail))

    app = Starlette(routes=[Route("/one", one), Route("/streamed", streamed)])
    starlette.install(app)
    with asgi_server(app) as url:
        assert httpx.get(f"{url}/one").text == httpx.get(f"{url}/streamed").text == "done"

    lines = log.take()
    assert [line.split(":")[0] for line in lines] == ["failwell.http ERROR provider.connection"] * 2
    assert WORDS not in str(lines)


def test_a_middleware_that_fails_on_a_refusal_is_reported_as_well(log: Records) -> None:
    app = an_app()

    @app.middleware("http")
    async def broken(request: Any, call_next: Any) -> Any:
        reply = await call_next(request)
        raise KeyError(WORDS, reply)

    with asgi_server(app) as url:
        reply = httpx.get(f"{url}/nowhere")

    assert (reply.status_code, reply.json()["kind"]) == (500, "internal.bug")
    assert [line.split(":")[0] for line in log.take()] == [
        "failwell.http WARNING http.not_found",
        "failwell.http CRITICAL internal.bug",
    ]


def test_a_failure_of_a_middleware_is_answered_and_recorded_once(log: Records) -> None:
    app = an_app()

    @app.middleware("http")
    async def broken(request: Any, call_next: Any) -> Any:
        raise KeyError(WORDS)

    with asgi_server(app) as url:
        reply = httpx.get(f"{url}/events/bug")

    assert (reply.status_code, reply.json()["kind"]) == (500, "internal.bug")
    (line,) = log.take()
    assert line.startswith("failwell.http ")
    assert WORDS not in line + reply.text


def flask_app() -> Flask:
    app = Flask("streams")
    flask.install(app)

    def stream(name: str, first: bytes) -> Iterator[bytes]:
        yield first
        error = FAILURES[name][0]()
        raise error

    @app.get("/events/<name>")
    def events(name: str) -> Any:
        return FlaskResponse(stream(name, b"data: 1\n\n"), mimetype="text/event-stream")

    @app.get("/text/<name>")
    def text(name: str) -> Any:
        return FlaskResponse(stream(name, b"first\n"), mimetype="text/plain")

    @app.get("/early/<name>")
    def early(name: str) -> Any:
        def stream() -> Iterator[bytes]:
            error = FAILURES[name][0]()
            raise error
            yield b""

        return FlaskResponse(stream(), mimetype="text/plain")

    return app


@pytest.fixture(scope="module")
def wsgi_address() -> Generator[str]:
    with wsgi_server(flask_app()) as url:
        yield url


WSGI = {name: made for name, made in FAILURES.items() if name != "handled"}


def test_a_wsgi_event_stream_ends_with_the_problem_and_one_record(wsgi_address: str, log: Records) -> None:
    for name, (_, kind) in WSGI.items():
        reply = httpx.get(f"{wsgi_address}/events/{name}")

        problem = problem_in(reply.content)
        (line,) = log.take()
        assert problem["before"] == b"data: 1\n\n"
        assert problem["id"] in line.splitlines()[0]
        assert f" {kind}: " in line.splitlines()[0], name
        assert problem["request_id"] == reply.headers["x-request-id"]
        assert WORDS not in line + reply.text


def test_any_other_wsgi_stream_is_cut_off_with_one_record(wsgi_address: str, log: Records) -> None:
    for name, (_, kind) in WSGI.items():
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
            httpx.get(f"{wsgi_address}/text/{name}")

        (line,) = log.take()
        assert f" {kind}: " in line.splitlines()[0], name
        assert WORDS not in line


def test_a_wsgi_stream_that_fails_before_its_first_piece_is_answered(wsgi_address: str, log: Records) -> None:
    reply = httpx.get(f"{wsgi_address}/early/fault")

    assert (reply.status_code, reply.json()["kind"]) == (503, "http.unavailable")
    assert reply.headers["content-type"] == "application/problem+json"
    assert len(log.take()) == 1


def test_a_wsgi_stream_is_closed_when_its_reader_leaves(log: Records) -> None:
    closed: list[bool] = []

    class Body:
        def __iter__(self) -> Iterator[bytes]:
            yield b"1"
            yield b"2"

        def close(self) -> None:
            closed.append(True)

    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", [])
        return Body()

    body: Any = FailwellWSGIMiddleware(app)({"PATH_INFO": "/"}, lambda *_: lambda _: None)
    assert next(iter(body)) == b"1"
    body.close()

    assert closed == [True]
    assert log.take() == []
