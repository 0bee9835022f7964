"""The laboratory as a server: real sockets, exact counts, quick ends, nothing left behind."""

import socket
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from time import monotonic
from urllib.parse import urlsplit

import pytest

from failwell.testing.laboratory.lab_routes import NoSuchFailure
from failwell.testing.laboratory.server import Lab, lab
from tests.testing.laboratory.asking import PATIENCE, ask, ask_again

QUICK = 3.0
"""Seconds in which a laboratory must be closed, however busy it is."""


@pytest.fixture
def fake() -> Iterator[Lab]:
    with lab() as opened:
        yield opened


def dialled(url: str) -> socket.socket:
    where = urlsplit(url)
    return socket.create_connection((where.hostname or "", where.port or 0), timeout=PATIENCE)


def request_text(url: str, body: bytes = b"{}", *more: str) -> bytes:
    lines = [f"POST {urlsplit(url).path}/v1/x HTTP/1.1", "Host: lab", f"Content-Length: {len(body)}", *more]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def to_the_end(sock: socket.socket) -> bytes:
    said = b""
    while block := sock.recv(65_536):
        said += block
    return said


def threads() -> set[threading.Thread]:
    found = (thread for thread in threading.enumerate() if thread.name.startswith("failwell-lab"))
    return {thread for thread in found if thread.is_alive()}


@pytest.mark.parametrize("scenario", ["reset_before_read", "reset_after_read"])
def test_a_reset_is_a_reset_and_not_a_farewell(fake: Lab, scenario: str) -> None:
    url = fake.url("openai", scenario)

    with dialled(url) as sock:
        sock.sendall(request_text(url))

        with pytest.raises(ConnectionResetError):
            sock.recv(1)

    assert fake.calls("openai", scenario) == 1


def test_a_request_that_is_reset_unread_is_counted_and_not_kept(fake: Lab) -> None:
    url = fake.url("openai", "reset_before_read")
    with dialled(url) as sock:
        sock.sendall(request_text(url, b'{"secret": true}'))
        with pytest.raises(ConnectionResetError):
            sock.recv(1)

    heard = fake.requests("openai", "reset_before_read")

    assert [(one.method, one.headers, one.body, one.status) for one in heard] == [("", {}, None, None)]


def test_a_reset_in_a_stream_comes_after_its_first_words(fake: Lab) -> None:
    url = fake.url("openai", "broken_stream")

    said = b""
    with dialled(url) as sock:
        sock.sendall(request_text(url, b'{"stream": true}'))
        with pytest.raises(ConnectionResetError):
            while True:
                said += sock.recv(65_536)

    assert b"Hello" in said
    assert b"[DONE]" not in said


def test_the_address_of_a_refusal_is_a_port_where_nobody_listens(fake: Lab) -> None:
    with pytest.raises(ConnectionRefusedError):
        dialled(fake.url("openai", "refused"))

    assert fake.calls() == 0


def test_the_closed_port_is_kept_closed_while_the_laboratory_is_open(fake: Lab) -> None:
    port = urlsplit(fake.url("plain", "refused")).port

    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))


def test_only_this_machine_is_served(fake: Lab) -> None:
    assert fake.address.startswith("http://127.0.0.1:")
    assert fake.port != 0


def test_every_one_of_many_calls_at_once_is_answered_and_counted(fake: Lab) -> None:
    urls = [fake.url("openai", "rate_limited"), fake.url("anthropic", "overloaded")]

    with ThreadPoolExecutor(50) as pool:
        got = [one.status for one in pool.map(ask, urls * 100)]

    assert (got.count(429), got.count(529)) == (100, 100)
    assert (fake.calls("openai", "rate_limited"), fake.calls("anthropic", "overloaded")) == (100, 100)
    assert (fake.calls(), fake.calls("openai")) == (200, 100)


def test_one_connection_serves_one_request_after_another(fake: Lab) -> None:
    connection = HTTPConnection("127.0.0.1", fake.port, timeout=PATIENCE)
    connection.connect()
    first = connection.sock

    statuses = [
        ask_again(connection, f"/openai/{scenario}/v1/x", stream=stream).status
        for scenario, stream in (("ok", False), ("bad_key", False), ("ok", True), ("server_error", False))
    ]

    assert statuses == [200, 401, 200, 500]
    assert connection.sock is first
    connection.close()


@pytest.mark.parametrize(
    ("version", "header", "kept"),
    [
        ("HTTP/1.1", "X-Nothing: 1", "keep-alive"),
        ("HTTP/1.1", "Connection: close", "close"),
        ("HTTP/1.0", "X-Nothing: 1", "close"),
        ("HTTP/1.0", "Connection: keep-alive", "keep-alive"),
    ],
)
def test_a_connection_is_kept_when_the_client_keeps_it(
    fake: Lab, version: str, header: str, kept: str
) -> None:
    with dialled(fake.address) as sock:
        sock.sendall(f"GET /plain/ok/x {version}\r\n{header}\r\n\r\n".encode())
        sock.shutdown(socket.SHUT_WR)
        said = to_the_end(sock)

    assert f"connection: {kept}\r\n".encode() in said


def test_a_body_in_chunks_is_read_as_one(fake: Lab) -> None:
    url = fake.url("openai", "ok")
    head = (
        f"POST {urlsplit(url).path}/v1/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )

    with dialled(url) as sock:
        sock.sendall(head.encode() + b'9;x=1\r\n{"model":\r\n7\r\n"mine"}\r\n0\r\nX-Later: 1\r\n\r\n')
        said = to_the_end(sock)

    assert b'"model": "mine"' in said
    assert fake.requests("openai", "ok")[0].body == {"model": "mine"}


def test_a_client_that_asks_before_it_sends_is_told_to_go_on(fake: Lab) -> None:
    url = fake.url("openai", "ok")
    head, _, body = request_text(url, b"{}", "Expect: 100-continue", "Connection: close").partition(
        b"\r\n\r\n"
    )

    with dialled(url) as sock:
        sock.sendall(head + b"\r\n\r\n")
        allowed = sock.recv(65_536)
        sock.sendall(body)
        said = to_the_end(sock)

    assert allowed == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert said.startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_head_is_answered_without_a_body(fake: Lab) -> None:
    got = ask(fake.url("plain", "overloaded"), method="HEAD")

    assert (got.status, got.body) == (503, b"")
    assert int(got.headers["content-length"]) > 0


@pytest.mark.parametrize(
    "said", [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1", b""]
)
def test_whoever_speaks_no_http_is_hung_up_on_and_nobody_else_notices(fake: Lab, said: bytes) -> None:
    with dialled(fake.address) as sock:
        sock.sendall(said)
        sock.shutdown(socket.SHUT_WR)
        answered = to_the_end(sock)

    assert answered == b""
    assert ask(fake.url("plain", "ok")).status == 200


@pytest.mark.parametrize("size", ["-1", "z", "", "99999999999"])
def test_a_chunk_whose_size_is_none_is_not_waited_for(fake: Lab, size: str) -> None:
    with dialled(fake.address) as sock:
        sock.sendall(f"POST /plain/ok/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{size}\r\n".encode())

        assert to_the_end(sock) == b""


@pytest.mark.parametrize("length", ["-1", "many", "99999999999"])
def test_a_length_that_is_none_is_not_waited_for(fake: Lab, length: str) -> None:
    with dialled(fake.address) as sock:
        sock.sendall(f"POST /plain/ok/x HTTP/1.1\r\nContent-Length: {length}\r\n\r\n".encode())

        assert to_the_end(sock) == b""


@pytest.mark.parametrize("scenario", ["slow_headers", "slow_body"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_slow_reply_outlasts_the_clients_patience(fake: Lab, scenario: str, stream: bool) -> None:
    with pytest.raises(TimeoutError):
        ask(fake.url("openai", scenario), stream=stream, timeout=0.2)

    assert fake.calls("openai", scenario) == 1


@pytest.mark.parametrize("scenario", ["slow_headers", "slow_body"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_slow_reply_is_whole_once_the_time_has_passed(scenario: str, stream: bool) -> None:
    with lab(stall=0.05) as fake:
        slow = ask(fake.url("openai", scenario), stream=stream)
        fine = ask(fake.url("openai", "ok"), stream=stream)

    assert (slow.status, slow.body) == (200, fine.body)


def test_a_slow_body_starts_at_once(fake: Lab) -> None:
    url = fake.url("openai", "slow_body")

    with dialled(url) as sock:
        sock.sendall(request_text(url))
        head = sock.recv(65_536)

    assert head.startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_client_that_gives_up_takes_its_thread_along(fake: Lab) -> None:
    before = threads()
    url = fake.url("openai", "slow_headers")

    sock = dialled(url)
    sock.sendall(request_text(url))
    calling = next_thread(before)
    sock.close()
    calling.join(PATIENCE)

    assert not calling.is_alive()


def next_thread(before: set[threading.Thread]) -> threading.Thread:
    until = monotonic() + PATIENCE
    while monotonic() < until:
        if new := threads() - before:
            return new.pop()
    raise AssertionError("nobody took the call")


def test_an_early_request_is_not_lost_while_a_reply_is_slow() -> None:
    with lab(stall=0.2) as fake:
        url = fake.url("plain", "slow_headers")
        with dialled(url) as sock:
            sock.sendall(
                request_text(url) + request_text(fake.url("plain", "ok"), b"{}", "Connection: close")
            )
            said = to_the_end(sock)

    assert said.count(b"HTTP/1.1 200 OK\r\n") == 2


def test_a_closed_laboratory_leaves_no_thread_and_no_socket() -> None:
    before = threads()
    begun = monotonic()
    with lab() as fake:
        idle = [dialled(fake.address) for _ in range(5)]
        stalled = [dialled(fake.address) for _ in range(5)]
        for sock in stalled:
            sock.sendall(request_text(fake.url("openai", "slow_body")))
            sock.recv(1)
        address = fake.address

    assert threads() == before
    assert monotonic() - begun < QUICK
    assert all(ends(sock) for sock in (*idle, *stalled))
    with pytest.raises(ConnectionRefusedError):
        dialled(address)


def ends(sock: socket.socket) -> bool:
    with sock:
        to_the_end(sock)
        return True


def test_a_laboratory_can_be_closed_twice_and_opened_again() -> None:
    opened = Lab()
    with opened:
        ask(opened.url("plain", "ok"))
    opened.stop()

    with opened:
        assert ask(opened.url("plain", "ok")).status == 200

    assert opened.calls("plain", "ok") == 2


def test_a_port_that_is_taken_is_refused_and_nothing_is_left_open(fake: Lab) -> None:
    before = threads()

    with pytest.raises(OSError, match="in use"):
        Lab(port=fake.port).start()

    assert threads() == before


def test_a_closed_laboratory_has_no_address() -> None:
    with pytest.raises(AssertionError, match="closed"):
        _ = lab().address


def test_what_was_asked_can_be_read_back(fake: Lab) -> None:
    url = fake.url("openai", "rate_limited@ms")
    ask(url, "/v1/chat/completions?api-version=1", stream=True)

    (heard,) = fake.requests("openai", "rate_limited")

    assert (heard.method, heard.path, heard.form, heard.status, heard.stream) == (
        "POST",
        "/v1/chat/completions",
        "ms",
        429,
        True,
    )
    assert heard.headers["authorization"] == "Bearer lab"
    assert heard.body == {"model": "lab-model", "stream": True}


def test_forms_of_a_wait_can_be_counted_apart(fake: Lab) -> None:
    for form in ("ms", "date", "ms"):
        ask(fake.url("openai", "rate_limited", form))

    counted = [
        fake.calls("openai", name) for name in ("rate_limited", "rate_limited@ms", "rate_limited@float")
    ]

    assert counted == [3, 2, 0]
    assert [one.form for one in fake.requests("openai", "rate_limited@date")] == ["date"]


def test_a_misspelt_name_is_refused_instead_of_counting_nothing(fake: Lab) -> None:
    with pytest.raises(NoSuchFailure):
        fake.calls("openai", "rate_limitd")
    with pytest.raises(NoSuchFailure):
        fake.calls("opnai")
    with pytest.raises(NoSuchFailure):
        fake.calls(scenario="rate_limitd")
    with pytest.raises(NoSuchFailure):
        fake.requests("linkup", "in_stream_error")


def test_a_request_of_many_megabytes_is_read_and_understood_and_not_kept(fake: Lab) -> None:
    picture = "A" * (8 * 1024 * 1024)

    got = ask(fake.url("openai", "in_stream_error"), stream=True, body={"messages": [picture]})

    assert (got.status, got.headers["content-type"]) == (200, "text/event-stream")
    assert [(one.stream, one.body) for one in fake.requests("openai", "in_stream_error")] == [(True, None)]


def test_resetting_forgets_what_was_counted(fake: Lab) -> None:
    ask(fake.url("plain", "ok"))

    fake.reset()

    assert (fake.calls(), fake.requests("plain", "ok")) == (0, ())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("opnai", "ok"), "no dialect `opnai`; there are `openai`"),
        (("openai", "okay"), "no scenario `okay`; there are `ok`"),
        (("linkup", "in_stream_error"), "`linkup` does not show `in_stream_error`: it does not stream"),
        (("openai", "rate_limited@soon"), "`openai` does not send a delay as `soon`; it sends it as `date`"),
        (("openai", "rate_limited", "retryinfo"), "`openai` does not send a delay as `retryinfo`"),
        (("openai", "bad_key@ms"), "`bad_key` has no delay; `@ms` belongs to `rate_limited`"),
    ],
)
def test_an_address_that_leads_nowhere_is_refused_with_what_there_is(
    fake: Lab, arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(NoSuchFailure) as raised:
        fake.url(*arguments)

    assert str(raised.value).startswith(message)
    with pytest.raises(NoSuchFailure):
        fake.truth(*arguments)


@pytest.mark.parametrize(
    "path", ["/", "/openai", "/openai/nothing/v1", "/nobody/ok", "/openai/refused/v1", "/openai/ok@ms/v1"]
)
def test_a_request_that_leads_nowhere_is_told_so_and_not_counted(fake: Lab, path: str) -> None:
    got = ask(fake.address, path)

    assert (got.status, got.headers["x-failwell-lab"]) == (404, "mistake")
    assert len(got.json["lab"].split()) > 3
    assert fake.calls() == 0


def test_a_scenario_of_streams_is_not_shown_to_a_call_that_asked_for_none(fake: Lab) -> None:
    got = ask(fake.url("openai", "broken_stream"), stream=False)

    assert (got.status, got.headers["x-failwell-lab"]) == (404, "mistake")
    assert "asks for a stream" in got.json["lab"]


@pytest.mark.parametrize(
    ("dialect", "path", "body"),
    [
        ("openai", "/v1/chat/completions", {"stream": True}),
        ("google-genai", "/v1beta/models/gemini-lab:streamGenerateContent", {"stream": None}),
        ("bedrock", "/model/lab/converse-stream", {"stream": None}),
        ("ollama", "/api/chat", {"stream": None}),
        ("replicate", "/v1/streams/lab1", {"stream": None}),
        ("fal", "/lab/painter/stream", {"stream": None}),
    ],
)
def test_a_stream_is_recognised_however_it_is_asked_for(
    fake: Lab, dialect: str, path: str, body: dict[str, bool | None]
) -> None:
    got = ask(fake.url(dialect, "ok"), path, body=body)

    assert got.headers["transfer-encoding"] == "chunked"
    assert fake.requests(dialect, "ok")[0].stream


def test_an_address_survives_the_ways_in_which_clients_spell_it(fake: Lab) -> None:
    got = ask(fake.address, "//openai//rate_limited%40float//v1/x?key=1#2")

    assert (got.status, got.headers["retry-after"]) == (429, "7.5")


def test_a_reset_needs_no_whole_request(fake: Lab) -> None:
    url = fake.url("openai", "reset_before_read")

    with dialled(url) as sock:
        sock.sendall(request_text(url, b"{}")[:-1])

        with pytest.raises(ConnectionResetError):
            sock.recv(1)


def test_a_client_that_vanishes_harms_nobody(fake: Lab) -> None:
    for _ in range(20):
        with dialled(fake.address) as sock:
            sock.sendall(request_text(fake.url("openai", "ok")))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    assert ask(fake.url("openai", "ok")).status == 200
