"""What a loop costs: a call that succeeds, one that fails once, and a hand-over, without any waiting.

Beside a plain `for` loop and, where they are installed, stamina, tenacity and backoff. The figure is
the best of several rounds, because a shared machine only ever adds time.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import failwell
from failwell.calls import StreamTimeouts, limit_astream, limit_stream
from failwell.calls.backoff import Backoff
from failwell.calls.chain.chain import Chain, Entry
from failwell.calls.cost import Prices

ROUNDS = 15
CALLS = 400
AT_ONCE = Backoff(curve="fixed", first=0.0)

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


def flaky() -> Callable[[], int]:
    """A function that fails at every other call."""
    calls = 0

    def call() -> int:
        nonlocal calls
        calls += 1
        if calls % 2:
            raise ConnectionRefusedError(111, "Connection refused")
        return calls

    return call


def fails() -> None:
    raise ConnectionRefusedError(111, "Connection refused")


def works() -> int:
    return 1


async def works_on_loop() -> int:
    return 1


def plain(function: Callable[[], Any]) -> Callable[[], Any]:
    def repeated() -> Any:
        for attempt in range(3):
            try:
                return function()
            except Exception:
                if attempt == 2:
                    raise
        return None

    return repeated


def plain_on_loop(function: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
    async def repeated() -> Any:
        for attempt in range(3):
            try:
                return await function()
            except Exception:
                if attempt == 2:
                    raise
        return None

    return repeated


def ours(function: Any) -> Any:
    return failwell.retry(attempts=3, backoff=AT_ONCE)(function)


def others() -> dict[str, Wrap]:
    """How each library that is installed is told to repeat at once, up to three times."""
    found: dict[str, Wrap] = {}
    try:
        stamina: Any = import_module("stamina")
        stamina.instrumentation.set_on_retry_hooks([])
        found[f"stamina {version('stamina')}"] = stamina.retry(
            on=Exception, attempts=3, wait_initial=0.0, wait_jitter=0.0, wait_max=0.0
        )
        tenacity: Any = import_module("tenacity")
        found[f"tenacity {version('tenacity')}"] = tenacity.retry(
            stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_none()
        )
        backoff: Any = import_module("backoff")
        logging.getLogger("backoff").setLevel(logging.CRITICAL)
        found[f"backoff {version('backoff')}"] = backoff.on_exception(
            backoff.constant, Exception, max_tries=3, interval=0, jitter=None
        )
    except (ImportError, PackageNotFoundError):
        return found
    return found


def microseconds(call: Callable[[], Any]) -> float:
    """The best of several rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, time.perf_counter() - began)
    return best / CALLS * 1e6


def on_loop(call: Callable[[], Awaitable[Any]]) -> float:
    """The same for an async call, inside a running loop."""

    async def rounds() -> float:
        best = float("inf")
        for _ in range(ROUNDS):
            began = time.perf_counter()
            for _ in range(CALLS):
                await call()
            best = min(best, time.perf_counter() - began)
        return best / CALLS * 1e6

    return asyncio.run(rounds())


def flaky_on_loop() -> Callable[[], Awaitable[int]]:
    plain_call = flaky()

    async def call() -> int:
        return plain_call()

    return call


async def numbers_on_loop() -> AsyncIterator[int]:
    for number in range(CALLS):
        yield number


def chunks(stream: Callable[[], Iterator[int]]) -> float:
    """Microseconds a chunk of a stream that never waits."""
    return min(_timed(lambda: list(stream())) for _ in range(ROUNDS)) / CALLS * 1e6


def chunks_on_loop(stream: Callable[[], AsyncIterator[int]]) -> float:
    """The same for an async stream, inside a running loop."""

    async def read() -> float:
        best = float("inf")
        for _ in range(ROUNDS):
            began = time.perf_counter()
            async for _ in stream():
                pass
            best = min(best, time.perf_counter() - began)
        return best / CALLS * 1e6

    return asyncio.run(read())


def _timed(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def main() -> None:
    rows: dict[str, tuple[Any, Any]] = {"a plain loop": (plain, plain_on_loop), "failwell": (ours, ours)}
    rows.update({name: (wrap, wrap) for name, wrap in others().items()})
    print(f"{'retrying, µs a call':<28}{'success':>9}{'async':>9}{'1 failure':>11}{'async':>9}")
    for name, (wrap, wrap_on_loop) in rows.items():
        figures = (
            microseconds(wrap(works)),
            on_loop(wrap_on_loop(works_on_loop)),
            microseconds(wrap(flaky())),
            on_loop(wrap_on_loop(flaky_on_loop())),
        )
        print(f"  {name:<26}{figures[0]:>9.2f}{figures[1]:>9.2f}{figures[2]:>11.1f}{figures[3]:>9.1f}")

    def entry(name: str, call: Callable[[], Any]) -> Entry[Any]:
        return Entry(provider=name, model="m", call=call)

    answering = Chain(entry("A", works), prices=Prices(public=False))
    failing = Chain(entry("A", fails), entry("B", works), prices=Prices(public=False))
    print("\nchain, µs a call")
    print(f"  {'first entry answers':<26}{microseconds(answering.call):>9.2f}")
    print(f"  {'second entry answers':<26}{microseconds(failing.call):>9.2f}")

    print("\nstreams, µs a chunk")
    timeouts = StreamTimeouts(first=60, idle=60, total=600)
    print(f"  {'an async stream':<26}{chunks_on_loop(numbers_on_loop):>9.2f}")
    print(
        f"  {'  with deadlines':<26}{chunks_on_loop(lambda: limit_astream(numbers_on_loop(), timeouts)):>9.2f}"
    )
    print(f"  {'a plain stream':<26}{chunks(lambda: iter(range(CALLS))):>9.2f}")
    print(f"  {'  with deadlines':<26}{chunks(lambda: limit_stream(range(CALLS), timeouts)):>9.2f}")


if __name__ == "__main__":
    main()
