"""Real exceptions, raised by doing what raises them. Each one has the canary in its hands."""

import asyncio
import codecs
import concurrent.futures
import json
import pickle
import queue
import signal
import socket
import ssl
import subprocess
import sys
import threading
import weakref
import zoneinfo
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CANARY = "canary-5f1d-do-not-quote"

Action = Callable[[], object]


def caught(action: Action) -> BaseException:
    """What `action` raises, with its traceback."""
    try:
        action()
    except pytest.skip.Exception:
        # A library that is not installed.
        raise
    except BaseException as error:
        return error
    raise AssertionError(f"{action} raised nothing")


def throwing(error: BaseException) -> Action:
    """For what cannot be provoked: raise it by hand."""

    def throw() -> None:
        raise error

    return throw


def awaiting(work: Callable[[], Coroutine[Any, Any, object]]) -> Action:
    return lambda: asyncio.run(work())


@contextmanager
def listening(reply: bytes | None) -> Generator[int]:
    """A server on a local port that reads once, says `reply` and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            line, _ = server.accept()
            with line:
                line.recv(65_536)
                if reply is not None:
                    line.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join(10)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def run_python(code: str, **options: Any) -> None:
    """Run a child that holds the canary in its arguments and its output, and insist that it succeeds."""
    subprocess.run(
        [
            sys.executable,
            "-S",
            "-c",
            f"import os, signal, sys, time\nprint({CANARY!r}, flush=True)\n{code}",
            CANARY,
        ],
        check=True,
        capture_output=True,
        **options,
    )


def endless(depth: int = 0) -> int:
    return endless(depth + 1)


def change_while_walking() -> None:
    held = {CANARY: 1}
    for key in held:
        held[key + "x"] = 2


def outlive() -> object:
    class Short:
        name = CANARY

    return weakref.proxy(Short()).name


def grow_while_viewed() -> None:
    held = bytearray(CANARY.encode())
    with memoryview(held):
        held.extend(b"x")


def close_a_generator() -> None:
    seen: list[BaseException] = []

    def work() -> Generator[str]:
        try:
            yield CANARY
        except GeneratorExit as error:
            seen.append(error)
            raise

    running = work()
    next(running)
    running.close()
    raise seen[0]


def interrupt() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


async def run_out_of_items() -> None:
    async def nothing() -> AsyncIterator[str]:
        for item in ():
            yield item

    await anext(nothing())


async def take_too_long() -> None:
    async with asyncio.timeout(0):
        await asyncio.Event().wait()


async def be_cancelled() -> None:
    task = asyncio.create_task(asyncio.Event().wait(), name=CANARY)
    await asyncio.sleep(0)
    task.cancel(CANARY)
    await task


async def fill_a_queue() -> None:
    held: asyncio.Queue[str] = asyncio.Queue(maxsize=1)
    held.put_nowait(CANARY)
    held.put_nowait(CANARY)


async def empty_a_queue() -> None:
    asyncio.Queue[str]().get_nowait()


async def read_too_little() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(CANARY.encode())
    reader.feed_eof()
    await reader.readexactly(500)


async def read_too_much() -> None:
    reader = asyncio.StreamReader(limit=4)
    reader.feed_data(CANARY.encode() + b"\n")
    await reader.readuntil(b"\n")


async def ask_too_early() -> None:
    asyncio.get_running_loop().create_future().result()


def cancel_a_future() -> None:
    future: concurrent.futures.Future[str] = concurrent.futures.Future()
    future.cancel()
    future.result()


def answer_twice() -> None:
    future: concurrent.futures.Future[str] = concurrent.futures.Future()
    future.set_result(CANARY)
    future.set_result(CANARY)


def break_a_pool() -> None:
    with concurrent.futures.ThreadPoolExecutor(1, initializer=throwing(ValueError(CANARY))) as pool:
        pool.submit(str).result()


def fill_a_line() -> None:
    line: queue.Queue[str] = queue.Queue(maxsize=1)
    line.put_nowait(CANARY)
    line.put_nowait(CANARY)


def shake_hands_with(reply: bytes | None) -> None:
    """Begin a TLS handshake with something that answers `reply`, or hangs up."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    if reply is None:
        incoming.write_eof()
    else:
        incoming.write(reply)
    client.do_handshake()


BUILTINS: dict[str, tuple[Action, str]] = {
    "ValueError": (lambda: int(CANARY), "validation.input_invalid"),
    "TypeError": (lambda: sorted([CANARY, 5]), "validation.input_invalid"),
    "KeyError": (lambda: dict[str, str]()[CANARY], "validation.input_invalid"),
    "AssertionError": (throwing(AssertionError(CANARY)), "internal.bug"),
    "AttributeError": (lambda: getattr(object(), CANARY), "internal.bug"),
    "NameError": (lambda: eval("no_such_name", {}), "internal.bug"),
    "ImportError": (lambda: exec("from os import no_such_name"), "internal.bug"),
    "NotImplementedError": (throwing(NotImplementedError(CANARY)), "internal.bug"),
    "IndexError": (lambda: list(CANARY)[900], "internal.bug"),
    "LookupError": (lambda: codecs.lookup(CANARY), "internal.bug"),
    "ArithmeticError": (lambda: 1 // 0, "internal.bug"),
    "StopIteration": (lambda: next(iter(())), "internal.bug"),
    "StopAsyncIteration": (awaiting(run_out_of_items), "internal.bug"),
    "RecursionError": (endless, "internal.bug"),
    "SystemError": (throwing(SystemError(CANARY)), "internal.bug"),
    "EOFError": (lambda: pickle.loads(b""), "internal.bug"),
    "BufferError": (grow_while_viewed, "internal.bug"),
    "ReferenceError": (outlive, "internal.bug"),
    "SyntaxError": (lambda: compile(f"({CANARY!r}", CANARY, "exec"), "internal.bug"),
    "GeneratorExit": (close_a_generator, "internal.bug"),
    "MemoryError": (lambda: bytes(2**60), "resource.system_memory"),
    "TimeoutError": (awaiting(take_too_long), "provider.outcome_unknown"),
    "KeyboardInterrupt": (interrupt, "cancel.run"),
    "RuntimeError": (change_while_walking, "internal.bug"),
    "UnicodeDecodeError": ((b"\xff" + CANARY.encode()).decode, "validation.input_invalid"),
    "ModuleNotFoundError": (lambda: exec("import no_such_module_9"), "extension.dependency_missing"),
    "SystemExit": (lambda: sys.exit(CANARY), "internal.script_error"),
    "OSError": (Path(f"/no/such/{CANARY}").read_bytes, "validation.path_not_found"),
}

PLUMBING: dict[tuple[str, str], tuple[Action, str]] = {
    ("asyncio", "CancelledError"): (awaiting(be_cancelled), "cancel.run"),
    ("asyncio", "QueueFull"): (awaiting(fill_a_queue), "tool.busy"),
    ("asyncio", "QueueEmpty"): (awaiting(empty_a_queue), "internal.unknown"),
    ("asyncio", "IncompleteReadError"): (awaiting(read_too_little), "provider.stream_interrupted"),
    ("asyncio", "LimitOverrunError"): (awaiting(read_too_much), "provider.stream_interrupted"),
    ("asyncio", "InvalidStateError"): (awaiting(ask_too_early), "internal.bug"),
    ("concurrent", "CancelledError"): (cancel_a_future, "cancel.run"),
    ("concurrent", "BrokenExecutor"): (break_a_pool, "worker.crashed"),
    ("concurrent", "InvalidStateError"): (answer_twice, "internal.bug"),
    ("queue", "Full"): (fill_a_line, "tool.busy"),
    ("_queue", "Empty"): (queue.SimpleQueue[str]().get_nowait, "internal.unknown"),
    ("json", "JSONDecodeError"): (lambda: json.loads(f'{{"{CANARY}": oops}}'), "validation.shape_invalid"),
    ("socket", "gaierror"): (
        lambda: socket.getaddrinfo("127.0.0.1", "no-such-service"),
        "provider.connection",
    ),
    ("socket", "herror"): (throwing(socket.herror(1, CANARY)), "provider.connection"),
    ("ssl", "SSLError"): (lambda: shake_hands_with(f"HTTP/1.1 400 {CANARY}".encode()), "provider.connection"),
    ("ssl", "SSLEOFError"): (lambda: shake_hands_with(None), "provider.outcome_unknown"),
    ("ssl", "SSLZeroReturnError"): (
        throwing(ssl.SSLZeroReturnError(6, CANARY)),
        "provider.outcome_unknown",
    ),
    ("ssl", "SSLSyscallError"): (throwing(ssl.SSLSyscallError(5, CANARY)), "provider.outcome_unknown"),
    ("ssl", "SSLCertVerificationError"): (
        throwing(ssl.SSLCertVerificationError(1, CANARY)),
        "provider.tls_failed",
    ),
    ("zoneinfo", "ZoneInfoNotFoundError"): (
        lambda: zoneinfo.ZoneInfo("No/Such_Zone"),
        "validation.input_invalid",
    ),
}
