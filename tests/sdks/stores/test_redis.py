"""redis-py against a real Redis: what it raises is read by the code that the server's reply begins with."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from failwell import ErrorReport, describe
from tests.adapters.raisers import CANARY, caught
from tests.sdks.stores.servers import free_port, redis_server

pytestmark = pytest.mark.slow

redis: Any = pytest.importorskip("redis")
redis_asyncio: Any = pytest.importorskip("redis.asyncio")


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with redis_server() as started:
        yield started


def client(port: int, **options: Any) -> Any:
    # One attempt: a repeat would only make the tests wait.
    return redis.Redis(host="127.0.0.1", port=port, retry=None, socket_connect_timeout=5, **options)


def report_of(run: Callable[[], object]) -> ErrorReport:
    report = describe(caught(run))
    assert CANARY not in report.to_json()
    return report


def test_a_command_that_is_refused_is_the_callers(port: int) -> None:
    link = client(port)
    link.set(CANARY, "text")

    reports = [
        report_of(lambda: link.incr(CANARY)),
        report_of(lambda: link.lpush(CANARY, "x")),
        report_of(lambda: link.execute_command("GET")),
        report_of(lambda: link.evalsha("0" * 40, 0)),
        report_of(lambda: link.set(CANARY, {"a": 1})),
    ]

    assert {report.category for report in reports} == {"user_input"}
    assert report_of(lambda: link.execute_command("NOSUCHCOMMAND", CANARY)).kind == "provider.rejected"


def test_memory_that_is_used_up(port: int) -> None:
    with redis_server("--maxmemory", "1mb", "--maxmemory-policy", "noeviction") as small:
        link = client(small)

        def fill() -> None:
            for number in range(1000):
                link.set(f"{CANARY}{number}", "x" * 100_000)

        report = report_of(fill)

    assert (report.kind, report.blame, report.certainty) == ("resource.system_memory", "provider", "rejected")
    assert report.evidence[0].rule == "redis.OOM"


def test_who_may_not_come_in(port: int) -> None:
    with redis_server("--requirepass", "right") as closed:
        missing = report_of(lambda: client(closed).get(CANARY))
        wrong = report_of(lambda: client(closed, password="wrong").get(CANARY))
        known = client(closed, password="right")
        known.execute_command("ACL", "SETUSER", "guest", "on", ">right", "~*", "+ping")
        denied = report_of(lambda: client(closed, username="guest", password="right").get(CANARY))

    assert [missing.kind, wrong.kind, denied.kind] == [
        "provider.auth",
        "provider.auth",
        "provider.permission",
    ]
    assert not any(report.retryable for report in (missing, wrong, denied))


def test_a_replica_does_not_write(port: int) -> None:
    with redis_server("--replicaof", "127.0.0.1", str(port)) as replica:
        report = report_of(lambda: client(replica).set("a", "b"))

    assert (report.kind, report.retryable, report.evidence[0].rule) == (
        "provider.rejected",
        False,
        "redis.READONLY",
    )


def test_too_many_clients_are_an_overload() -> None:
    with redis_server("--maxclients", "2") as small:
        links = [client(small) for _ in range(2)]
        held = [link.connection_pool.get_connection() for link in links]

        report = report_of(lambda: client(small).get("a"))

        for link, connection in zip(links, held, strict=True):
            link.connection_pool.release(connection)
    assert (report.kind, report.retryable) == ("provider.overloaded", True)


def test_a_script_that_runs_keeps_others_out() -> None:
    with redis_server("--busy-reply-threshold", "50") as busy:
        slow = threading.Thread(target=_loop, args=(busy,))
        slow.start()
        link = client(busy, socket_timeout=10)
        reports: list[ErrorReport] = []
        while not reports or reports[-1].evidence[0].rule != "redis.BUSY":
            with suppress(AssertionError):
                reports.append(report_of(lambda: link.get("a")))
        link.execute_command("SCRIPT", "KILL")
        slow.join(20)

    assert (reports[-1].kind, reports[-1].retryable) == ("provider.unavailable", True)


def _loop(port: int) -> None:
    with suppress(redis.RedisError):
        client(port).eval("while true do end", 0)


def test_another_client_changed_what_was_watched(port: int) -> None:
    link = client(port)
    with link.pipeline() as pipe:
        pipe.watch("seen")
        link.set("seen", CANARY)
        pipe.multi()
        pipe.get("seen")
        report = report_of(pipe.execute)

    assert (report.kind, report.retryable) == ("tool.busy", True)


def test_nobody_listens_and_nobody_answers() -> None:
    refused = report_of(lambda: client(free_port()).get(CANARY))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        late = report_of(lambda: client(silent.getsockname()[1], socket_timeout=0.1, protocol=2).get(CANARY))

    assert (refused.kind, refused.certainty) == ("provider.connection", "not_sent")
    assert (late.kind, late.certainty) == ("provider.outcome_unknown", "unknown")


def test_a_server_that_hangs_up_leaves_the_outcome_open() -> None:
    def hang_up(server: socket.socket) -> None:
        line, _ = server.accept()
        line.recv(65_536)
        line.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=hang_up, args=(server,))
        thread.start()
        report = report_of(lambda: client(server.getsockname()[1], protocol=2).get(CANARY))
        thread.join()

    assert (report.kind, report.certainty) == ("provider.outcome_unknown", "unknown")


def test_a_pool_without_a_free_connection_sends_nothing(port: int) -> None:
    link = client(port, max_connections=1)
    held = link.connection_pool.get_connection()

    report = report_of(lambda: link.get(CANARY))

    link.connection_pool.release(held)
    assert (report.kind, report.certainty) == ("provider.connection", "not_sent")


def test_the_asynchronous_client_says_the_same(port: int) -> None:
    async def run(at: int, command: str) -> None:
        async with redis_asyncio.Redis(host="127.0.0.1", port=at, retry=None) as link:
            await link.execute_command(command)

    assert report_of(lambda: asyncio.run(run(port, "GET"))).kind == "provider.bad_request"
    assert report_of(lambda: asyncio.run(run(free_port(), "PING"))).kind == "provider.connection"
