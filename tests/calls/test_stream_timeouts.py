"""Streams with deadlines: one that stalls ends on time, is repeated only before its first chunk, and is closed."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from typing import Any

import pytest

import failwell
from failwell import Chain, ChainPolicy, Entry
from failwell.calls import RetryOptions, StreamTimedOut, StreamTimeouts, limit_astream, limit_stream
from failwell.calls.backoff import Backoff
from failwell.calls.retry import retry, retrying
from failwell.errors.axes import Certainty
from failwell.testing.clock import FakeClock
from tests.calls.acting import caught, ledger, overloaded

AT_ONCE = Backoff(curve="fixed", first=0.0)
PATIENCE = 10.0
"""Seconds after which a test that hangs fails."""


class Source:
    """A stream whose chunks come after the seconds of `pauses`, on the clock of the test."""

    def __init__(self, clock: FakeClock, *pauses: float) -> None:
        self.clock = clock
        self.pauses = pauses
        self.opened = self.closed = 0

    def plain(self) -> Generator[int]:
        self.opened += 1
        try:
            for number, pause in enumerate(self.pauses):
                self.clock.sleep(pause)
                yield number
        finally:
            self.closed += 1

    async def on_loop(self) -> AsyncGenerator[int]:
        self.opened += 1
        try:
            for number, pause in enumerate(self.pauses):
                await self.clock.asleep(pause)
                yield number
        finally:
            self.closed += 1


def _read_plain(source: Source, timeouts: StreamTimeouts, work: float = 0.0) -> tuple[list[int], Any]:
    chunks: list[int] = []

    def read() -> None:
        for chunk in limit_stream(source.plain(), timeouts, clock=source.clock):
            chunks.append(chunk)
            source.clock.advance(work)

    try:
        read()
    except StreamTimedOut as error:
        return chunks, error
    return chunks, None


def _read_on_loop(source: Source, timeouts: StreamTimeouts, work: float = 0.0) -> tuple[list[int], Any]:
    chunks: list[int] = []

    async def read() -> None:
        async for chunk in limit_astream(source.on_loop(), timeouts, clock=source.clock):
            chunks.append(chunk)
            source.clock.advance(work)

    try:
        asyncio.run(read())
    except StreamTimedOut as error:
        return chunks, error
    return chunks, None


READERS = [_read_plain, _read_on_loop]
Reader = Callable[..., tuple[list[int], Any]]


@pytest.mark.parametrize("read", READERS)
def test_each_limit_ends_a_stream_and_the_report_names_it(read: Reader) -> None:
    cases: list[tuple[tuple[float, ...], StreamTimeouts, int, tuple[str, str, float]]] = [
        ((11, 1), StreamTimeouts(first=10, idle=20), 0, ("provider.timeout", "first", 10)),
        ((9, 21), StreamTimeouts(first=10, idle=20), 1, ("provider.stream_interrupted", "idle", 20)),
        ((1, 1, 30), StreamTimeouts(idle=20), 2, ("provider.stream_interrupted", "idle", 20)),
        ((4, 4, 4), StreamTimeouts(idle=20, total=10), 2, ("provider.stream_interrupted", "total", 10)),
        ((11,), StreamTimeouts(first=20, total=10), 0, ("provider.timeout", "total", 10)),
    ]
    for pauses, timeouts, arrived, expected in cases:
        source = Source(FakeClock(), *pauses)

        chunks, error = read(source, timeouts)

        report = failwell.describe(error)
        assert (report.kind, report.details["phase"], report.details["seconds"]) == expected
        assert report.details["chunks"] == len(chunks) == arrived
        assert report.certainty == (Certainty.PARTIAL if arrived else Certainty.UNKNOWN)
        assert report.retryable is (arrived == 0)
        assert source.closed == 1


@pytest.mark.parametrize("read", READERS)
def test_a_stream_that_keeps_its_times_is_passed_through(read: Reader) -> None:
    source = Source(FakeClock(), 9, 19, 19, 0)

    assert read(source, StreamTimeouts(first=10, idle=20, total=60)) == ([0, 1, 2, 3], None)
    assert source.closed == 1


@pytest.mark.parametrize("read", READERS)
def test_the_time_of_the_reader_counts_for_the_whole_and_not_for_a_pause(read: Reader) -> None:
    slow = Source(FakeClock(), 1, 1, 1)
    over = Source(FakeClock(), 0, 0, 0)

    assert read(slow, StreamTimeouts(idle=5), work=30) == ([0, 1, 2], None)
    chunks, error = read(over, StreamTimeouts(total=50), work=30)

    assert (chunks, error.phase, over.closed) == ([0, 1], "total", 1)


def test_a_deadline_interrupts_at_its_time() -> None:
    clock = FakeClock()

    _read_on_loop(Source(clock, 1_000), StreamTimeouts(first=10))

    assert clock.monotonic() == 10


def test_a_stalled_stream_is_repeated_before_its_first_chunk_and_not_after_it() -> None:
    clock = FakeClock()
    pauses = [(30.0,), (1.0, 1.0, 30.0)]
    sources: list[Source] = []

    def opened() -> Source:
        sources.append(Source(clock, *pauses[len(sources)]))
        return sources[-1]

    timeouts = StreamTimeouts(first=10, idle=20)

    @retry(stream=timeouts, clock=clock, backoff=AT_ONCE)
    async def generator() -> AsyncGenerator[int]:
        async for chunk in opened().on_loop():
            yield chunk

    @retry(stream=timeouts, clock=clock, backoff=AT_ONCE)
    async def coroutine() -> AsyncIterator[int]:
        return opened().on_loop()

    @retry(stream=timeouts, clock=clock, backoff=AT_ONCE)
    def plain_generator() -> Generator[int]:
        yield from opened().plain()

    @retry(stream=timeouts, clock=clock, backoff=AT_ONCE)
    def function() -> Iterator[int]:
        return opened().plain()

    async def by_loop(chunks: list[int]) -> None:
        async for attempt in retrying(stream=timeouts, clock=clock, backoff=AT_ONCE):
            async with attempt:
                async for chunk in attempt.astream(opened().on_loop()):
                    chunks += [chunk]

    def by_plain_loop(chunks: list[int]) -> None:
        for attempt in retrying(stream=timeouts, clock=clock, backoff=AT_ONCE):
            with attempt:
                for chunk in attempt.stream(opened().plain()):
                    chunks += [chunk]

    async def by_generator(chunks: list[int]) -> None:
        async for chunk in generator():
            chunks += [chunk]

    async def by_coroutine(chunks: list[int]) -> None:
        async for chunk in await coroutine():
            chunks += [chunk]

    by: list[Callable[[list[int]], Any]] = [
        lambda chunks: asyncio.run(by_generator(chunks)),
        lambda chunks: asyncio.run(by_coroutine(chunks)),
        lambda chunks: asyncio.run(by_loop(chunks)),
        lambda chunks: chunks.extend(plain_generator()),
        lambda chunks: chunks.extend(function()),
        by_plain_loop,
    ]
    for read in by:
        sources.clear()
        chunks: list[int] = []

        error = caught(lambda: read(chunks))  # noqa: B023  (called at once)

        assert isinstance(error, StreamTimedOut)
        assert chunks == [0, 1]
        assert [(row.kind, row.wait) for row in ledger(error).attempts] == [
            ("provider.timeout", 0.0),
            ("provider.stream_interrupted", None),
        ]
        assert ledger(error).delivered
        assert [source.closed for source in sources] == [1, 1]


def test_a_chain_goes_on_to_the_next_entry_when_a_stream_stalls() -> None:
    clock = FakeClock()
    stalled, fine = Source(clock, 100), Source(clock, 5, 5)

    def chain(method: str) -> Chain[Any]:
        return Chain(
            Entry(
                provider="a", model="m", call=getattr(stalled, method), stream=StreamTimeouts(first=3),
            ),
            Entry(provider="b", model="m", call=getattr(fine, method)),
            policy=ChainPolicy(stream=StreamTimeouts(first=10, idle=10)),
            clock=clock,
        )  # fmt: skip

    async def read() -> tuple[list[int], Any]:
        target = chain("on_loop")
        return [chunk async for chunk in target.astream()], target.ledger

    async def open_later(*_: Any) -> AsyncIterator[int]:
        await clock.asleep(100)
        return fine.on_loop()

    plain = chain("plain")
    results = [(list(plain.stream()), plain.ledger), asyncio.run(read())]

    for chunks, account in results:
        assert chunks == [0, 1]
        assert [(row.provider, row.kind) for row in account.attempts] == [
            ("a", "provider.timeout"),
            ("b", None),
        ]
    assert (stalled.closed, fine.closed) == (2, 2)

    late = Chain(Entry(provider="a", model="m", call=open_later, stream=StreamTimeouts(first=3)), clock=clock)

    async def open_and_read() -> None:
        async for _ in late.astream():
            pass

    error = caught(lambda: asyncio.run(open_and_read()))
    assert isinstance(error, StreamTimedOut)
    assert error.phase == "first"


def test_a_chain_keeps_to_its_entry_after_the_first_chunk() -> None:
    clock = FakeClock()
    stalled, fine = Source(clock, 1, 100), Source(clock, 1)
    chain = Chain(
        Entry(provider="a", model="m", call=stalled.plain, attempts=3),
        Entry(provider="b", model="m", call=fine.plain),
        policy=ChainPolicy(stream=StreamTimeouts(idle=10), idempotent=True),
        clock=clock,
    )
    chunks: list[int] = []

    error = caught(lambda: chunks.extend(chain.stream()))

    assert (chunks, stalled.opened, fine.opened) == ([0], 1, 0)
    assert failwell.describe(error).kind == "provider.stream_interrupted"


def test_a_stream_that_is_no_longer_read_is_closed_and_leaves_nothing() -> None:
    clock = FakeClock()
    plain, on_loop = Source(clock, 0, 0), Source(clock, 0, 0)

    reader = limit_stream(plain.plain(), StreamTimeouts(idle=5), clock=clock)
    assert next(reader) == 0
    reader.close()

    async def read() -> set[Any]:
        stream = limit_astream(on_loop.on_loop(), StreamTimeouts(idle=5))
        assert await anext(stream) == 0
        await stream.aclose()
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(read()) == set()
    assert (plain.closed, on_loop.closed) == (1, 1)
    assert _reading_threads() == []


def test_a_cancel_from_outside_stays_a_cancel() -> None:
    async def stall() -> AsyncIterator[int]:
        await asyncio.Event().wait()
        yield 1

    async def read() -> None:
        async for _ in limit_astream(stall(), StreamTimeouts(first=PATIENCE)):
            pass

    async def cancel() -> tuple[bool, int]:
        task = asyncio.create_task(read())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled(), len(asyncio.all_tasks())

    assert asyncio.run(cancel()) == (True, 1)


def test_a_source_that_makes_another_error_of_the_cancel_has_timed_out_all_the_same() -> None:
    clock = FakeClock()

    async def translate() -> AsyncIterator[int]:
        yield 0
        try:
            await clock.asleep(100)
        except asyncio.CancelledError:
            raise ConnectionError("the stream was closed") from None

    async def end_quietly() -> AsyncIterator[int]:
        yield 0
        try:
            await clock.asleep(100)
        except asyncio.CancelledError:
            return

    async def read(stream: AsyncIterator[int]) -> tuple[Any, int]:
        try:
            async for _ in limit_astream(stream, StreamTimeouts(idle=5), clock=clock):
                pass
        except StreamTimedOut as error:
            task = asyncio.current_task()
            assert task is not None
            return error, task.cancelling()
        return None, 0

    for stream in (translate(), end_quietly()):
        error, cancels = asyncio.run(read(stream))
        assert (error.phase, cancels) == ("idle", 0)


def test_the_real_clock_ends_a_plain_stream_whose_read_blocks() -> None:
    release = threading.Event()
    closed = threading.Event()

    def block() -> Generator[int]:
        try:
            release.wait(PATIENCE)
            yield 1
        finally:
            closed.set()

    error = caught(lambda: list(limit_stream(block(), StreamTimeouts(first=0.02))))

    assert isinstance(error, StreamTimedOut)
    assert not closed.is_set()
    release.set()
    # The generator could not be closed while it waited; its thread closes it when the read returns.
    assert closed.wait(PATIENCE)
    for thread in _reading_threads():
        thread.join(PATIENCE)
    assert _reading_threads() == []


def test_the_real_clock_ends_an_async_stream_and_closes_the_stream_of_an_sdk() -> None:
    class SdkStream:
        """A stream of an SDK, which has a method to close it."""

        is_closed = False

        def __aiter__(self) -> "SdkStream":
            return self

        async def __anext__(self) -> int:
            await asyncio.Event().wait()
            return 1

        async def close(self) -> None:
            self.is_closed = True

    stream = SdkStream()

    async def read() -> None:
        async for _ in limit_astream(stream, StreamTimeouts(first=0.02)):
            pass

    error = caught(lambda: asyncio.run(asyncio.wait_for(read(), PATIENCE)))

    assert isinstance(error, StreamTimedOut)
    assert stream.is_closed


def test_a_generator_with_deadlines_is_sent_to_and_thrown_into() -> None:
    clock = FakeClock()

    def talk() -> Generator[str, str | None, str]:
        sent = yield "ready"
        while sent is not None:
            try:
                sent = yield f"got {sent}"
            except KeyError:
                sent = yield "mended"
        return "over"

    limited = retry(stream=StreamTimeouts(idle=5), clock=clock)(talk)()
    answers = [next(limited), limited.send("a"), limited.throw(KeyError()), limited.send("b")]

    with pytest.raises(StopIteration) as end:
        next(limited)
    assert answers == ["ready", "got a", "mended", "got b"]
    assert end.value.value == "over"


def test_what_the_source_raises_is_raised_as_it_is() -> None:
    error = overloaded()

    def fail() -> Generator[int]:
        yield 1
        raise error

    chunks: list[int] = []
    assert caught(lambda: chunks.extend(limit_stream(fail(), StreamTimeouts(idle=PATIENCE)))) is error
    assert chunks == [1]


def test_an_interrupt_or_an_exit_in_the_source_reaches_the_caller() -> None:
    def leave(interrupt: type[BaseException]) -> Generator[int]:
        yield 1
        raise interrupt

    for interrupt in (KeyboardInterrupt, SystemExit, GeneratorExit):
        with pytest.raises(interrupt):
            list(limit_stream(leave(interrupt), StreamTimeouts(idle=PATIENCE)))


def test_limits_without_a_sense_are_refused() -> None:
    for wrong in ({}, {"first": 0}, {"idle": -1}, {"total": float("inf")}, {"first": "soon"}):
        with pytest.raises(ValueError, match=r"first|idle|total"):
            StreamTimeouts(**wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="stream"):
        RetryOptions(stream=10)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="stream"):
        Entry(provider="a", model="m", call=list[Any], stream=10)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="stream"):
        ChainPolicy(stream=10)  # pyright: ignore[reportArgumentType]


def _reading_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "failwell-stream"]
