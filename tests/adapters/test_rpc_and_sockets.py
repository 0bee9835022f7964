"""Calls that are no plain HTTP: gRPC in both flavours and WebSockets, each against a real server here."""

import asyncio
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.errors.axes import Certainty
from failwell.errors.report import ErrorReport
from tests.specimens import each

WORDS = {
    "INVALID_ARGUMENT": "provider.bad_request",
    "FAILED_PRECONDITION": "provider.bad_request",
    "OUT_OF_RANGE": "provider.bad_request",
    "ALREADY_EXISTS": "provider.bad_request",
    "UNAUTHENTICATED": "provider.auth",
    "PERMISSION_DENIED": "provider.permission",
    "RESOURCE_EXHAUSTED": "provider.rate_limited",
    "DEADLINE_EXCEEDED": "provider.outcome_unknown",
    "UNAVAILABLE": "provider.overloaded",
    "ABORTED": "provider.unavailable",
    "INTERNAL": "provider.unavailable",
    "DATA_LOSS": "provider.unknown",
    "UNIMPLEMENTED": "provider.rejected",
    "CANCELLED": "provider.outcome_unknown",
    "UNKNOWN": "provider.unknown",
}


@contextmanager
def serving(word: str, said: str = "no", trailers: tuple[tuple[str, Any], ...] = ()) -> Generator[str]:
    """A gRPC server whose every call is aborted with `word`; with `OK` it never answers."""
    grpc: Any = pytest.importorskip("grpc")

    done = Event()

    def abort(_: bytes, context: Any) -> bytes:
        if word == "OK":
            done.wait()
        context.set_trailing_metadata(trailers)
        context.abort(grpc.StatusCode[word], said)
        raise AssertionError

    methods = {"Call": grpc.unary_unary_rpc_method_handler(abort)}
    server = grpc.server(ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("lab.Lab", methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        done.set()
        server.stop(None).wait()


def called(address: str, timeout: float = 20.0) -> BaseException:
    grpc: Any = pytest.importorskip("grpc")
    with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/lab.Lab/Call")(b"", timeout=timeout)
    return caught.value


async def acalled(address: str) -> BaseException:
    grpc: Any = pytest.importorskip("grpc")
    aio: Any = pytest.importorskip("grpc.aio")
    async with aio.insecure_channel(address) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            await channel.unary_unary("/lab.Lab/Call")(b"", timeout=20.0)
    return caught.value


@each("word", WORDS)
@each("flavour", ["sync", "async"])
def test_each_status_word_of_grpc_is_known(word: str, flavour: str) -> None:
    with serving(word) as address:
        error = called(address) if flavour == "sync" else asyncio.run(acalled(address))

    report = describe(error)

    assert report.kind == WORDS[word]


def test_only_the_client_knows_that_this_program_cancelled_the_call() -> None:
    grpc: Any = pytest.importorskip("grpc")
    with serving("OK") as address, grpc.insecure_channel(address) as channel:
        call = channel.unary_unary("/lab.Lab/Call").future(b"", timeout=20.0)
        call.cancel()
        ours = describe(call)
    with serving("CANCELLED", "Locally cancelled by application!") as address:
        theirs = describe(called(address))

    assert ours.kind == "cancel.run"
    assert theirs.kind == "provider.outcome_unknown"


def test_a_missing_thing_is_no_missing_model_unless_the_server_says_so() -> None:
    with serving("NOT_FOUND", "operation 7 is gone") as address:
        thing = describe(called(address))
    with serving("NOT_FOUND", "models/lab-9 is not found") as address:
        model = describe(called(address))

    assert (thing.kind, model.kind) == ("provider.rejected", "provider.model_not_found")


@pytest.mark.parametrize("flavour", ["sync", "async"])
def test_a_server_that_is_not_there_was_sent_nothing(flavour: str) -> None:
    with serving("OK") as address:
        pass

    report = describe(called(address) if flavour == "sync" else asyncio.run(acalled(address)))

    assert (report.kind, report.certainty, report.retryable) == (
        "provider.connection",
        Certainty.NOT_SENT,
        True,
    )


def test_a_deadline_of_ones_own_leaves_the_outcome_open() -> None:
    with serving("OK") as address:
        report = describe(called(address, timeout=0.2))

    assert report.kind == "provider.outcome_unknown"
    assert report.evidence[0].saw == "deadline_exceeded"


def packed(*details: Any) -> tuple[tuple[str, bytes], ...]:
    """`details` as Google's services attach them."""
    status_pb2: Any = pytest.importorskip("google.rpc.status_pb2")
    status = status_pb2.Status(code=8, message="quota")
    for detail in details:
        status.details.add().Pack(detail)
    return (("grpc-status-details-bin", status.SerializeToString()),)


def test_a_wait_in_the_details_of_google_is_kept() -> None:
    details: Any = pytest.importorskip("google.rpc.error_details_pb2")
    wait = details.RetryInfo()
    wait.retry_delay.seconds, wait.retry_delay.nanos = 28, 500_000_000
    window = details.QuotaFailure()
    window.violations.add(subject="GenerateRequestsPerMinutePerProject", description="per minute")

    with serving("RESOURCE_EXHAUSTED", "Quota exceeded", packed(window, wait)) as address:
        report = describe(called(address))

    assert report.kind == "provider.rate_limited"
    assert report.not_before is not None
    assert report.not_before.after == 28.5


def test_a_window_of_a_day_in_the_details_of_google_is_a_quota() -> None:
    details: Any = pytest.importorskip("google.rpc.error_details_pb2")
    window = details.QuotaFailure()
    window.violations.add(subject="project:1", description="Quota exceeded: 50 requests per day")

    with serving("RESOURCE_EXHAUSTED", "50 requests per day are used up", packed(window)) as address:
        report = describe(called(address))

    assert report.kind == "provider.quota_exhausted"


def test_a_wrong_key_is_found_behind_a_bad_request() -> None:
    details: Any = pytest.importorskip("google.rpc.error_details_pb2")

    with serving("INVALID_ARGUMENT", "no", packed(details.ErrorInfo(reason="API_KEY_INVALID"))) as address:
        report = describe(called(address))

    assert report.kind == "provider.auth"


def test_details_that_are_no_details_are_passed_over() -> None:
    junk = (("grpc-status-details-bin", b"\x1a\xff\xff\xff\xff\x0f junk"), ("grpc-retry-pushback-ms", "1500"))

    with serving("UNAVAILABLE", "busy", junk) as address:
        report = describe(called(address))

    assert report.kind == "provider.overloaded"
    assert report.not_before is not None
    assert report.not_before.after == 1.5


def test_a_message_that_is_too_large_is_no_rate_limit() -> None:
    with serving("RESOURCE_EXHAUSTED", "Received message larger than max (5 vs. 4)") as address:
        report = describe(called(address))

    assert report.kind == "provider.context_too_long"


def talked(code: int, reason: str = "") -> ErrorReport:
    """What is made of a conversation that the server closes with `code`."""
    return describe(asyncio.run(_talk(code, reason)))


async def _talk(code: int, reason: str) -> BaseException:
    client: Any = pytest.importorskip("websockets.asyncio.client")
    server: Any = pytest.importorskip("websockets.asyncio.server")

    async def close(socket: Any) -> None:
        if code == 1006:
            socket.transport.abort()
        else:
            await socket.close(code, reason)

    async with server.serve(close, "127.0.0.1", 0) as served:
        port = served.sockets[0].getsockname()[1]
        with pytest.raises(Exception) as caught:
            async with client.connect(f"ws://127.0.0.1:{port}") as socket:
                await socket.recv()
                await socket.recv()
    return caught.value


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (1000, "", "provider.stream_interrupted"),
        (1001, "", "provider.stream_interrupted"),
        (1006, "", "provider.stream_interrupted"),
        (1008, "", "provider.rejected"),
        (1008, "Incorrect API key provided", "provider.auth"),
        (1008, "insufficient_quota", "provider.quota_exhausted"),
        (1009, "", "provider.context_too_long"),
        (1011, "", "provider.unavailable"),
        (1012, "", "provider.unavailable"),
        (1014, "", "provider.unavailable"),
        (1013, "", "provider.overloaded"),
        (3000, "", "provider.auth"),
        (3003, "", "provider.permission"),
        (4429, "", "provider.rate_limited"),
        (4000, "", "provider.stream_interrupted"),
    ],
)
def test_the_code_of_a_close_says_why(code: int, reason: str, kind: str) -> None:
    report = talked(code, reason)

    assert report.kind == kind
    assert report.certainty is Certainty.PARTIAL
    assert report.details.get("close_code") == (None if code == 1006 else code)


@pytest.mark.parametrize(
    ("status", "kind"), [(401, "provider.auth"), (429, "provider.rate_limited"), (503, "provider.overloaded")]
)
def test_a_refused_handshake_is_a_reply_like_any_other(status: int, kind: str) -> None:
    report = describe(asyncio.run(_refused(status)))

    assert report.kind == kind
    assert report.provider_metadata is not None
    assert report.provider_metadata.status_code == status
    assert report.not_before is not None
    assert report.not_before.after == 7.0


async def _refused(status: int) -> BaseException:
    client: Any = pytest.importorskip("websockets.asyncio.client")
    server: Any = pytest.importorskip("websockets.asyncio.server")

    def refuse(connection: Any, _: Any) -> Any:
        reply = connection.respond(status, "no")
        reply.headers["Retry-After"] = "7"
        return reply

    async def never(_: Any) -> None:
        raise AssertionError

    async with server.serve(never, "127.0.0.1", 0, process_request=refuse) as served:
        port = served.sockets[0].getsockname()[1]
        with pytest.raises(Exception) as caught:
            async with client.connect(f"ws://127.0.0.1:{port}"):
                pass
    return caught.value


def test_a_handshake_that_nobody_answers_was_sent_nothing() -> None:
    report = describe(asyncio.run(_silent()))

    assert (report.kind, report.certainty) == ("provider.connection", Certainty.NOT_SENT)


async def _silent() -> BaseException:
    client: Any = pytest.importorskip("websockets.asyncio.client")
    done = asyncio.Event()

    async def hold(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await done.wait()
        writer.close()

    async with await asyncio.start_server(hold, "127.0.0.1", 0) as served:
        port = served.sockets[0].getsockname()[1]
        with pytest.raises(TimeoutError) as caught:
            async with client.connect(f"ws://127.0.0.1:{port}", open_timeout=0.05):
                pass
        done.set()
    return caught.value


def test_an_address_that_is_none_is_the_callers() -> None:
    client: Any = pytest.importorskip("websockets.sync.client")

    with pytest.raises(Exception) as caught:
        client.connect("http://127.0.0.1:1")

    assert describe(caught.value).kind == "validation.input_invalid"
