"""Loops inside loops: one ledger with every call, the product in plain sight, and no second round by default."""

import asyncio
import contextvars
import copy
import inspect
import pickle
import threading
import warnings
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import failwell
from failwell import Chain, ChainPolicy, Entry, ErrorReport, Fault, gather
from failwell.calls import NestedRetries, Price, Prices, RetryOptions, collect_ledgers, keyed, watch
from failwell.calls.attempt_loop import AttemptEvent, AttemptFailed
from failwell.calls.backoff import Backoff
from failwell.calls.retry import retry, retrying
from failwell.delivery import render_text
from failwell.errors.context import Layer, Ledger, ledger_of
from failwell.testing.clock import FakeClock
from tests.calls.acting import Scripted, caught, even, ledger, overloaded

AT_ONCE = Backoff(curve="fixed", first=0.0)


def times(calls: int, name: str, **options: Any) -> Any:
    """`retry` with so many calls and no waits."""
    return retry(attempts=calls, backoff=AT_ONCE, name=name, **options)


def failing() -> Scripted:
    """A call that fails for ever, each time with an exception of its own."""

    def fail(*_args: Any, **_kwargs: Any) -> None:
        raise overloaded()

    return Scripted(fail)


def raise_(error: Exception) -> None:
    raise error


def layers(rows: Ledger) -> list[tuple[int, str | None]]:
    return [(row.number, row.layer) for row in rows.attempts]


def test_an_outer_loop_does_not_repeat_what_an_inner_one_has_exhausted() -> None:
    call = failing()

    with pytest.warns(NestedRetries, match="`node` × `ask`: 3 × 3 = up to 9 calls") as shown:
        error = caught(times(3, "node")(times(3, "ask")(call)))

    rows = ledger(error)
    assert call.count == 3
    assert layers(rows) == [(1, "ask"), (2, "ask"), (3, "ask")]
    assert "`ask` has already tried it 3 times (`node` × `ask`: 3 × 3 = up to 9 calls)" in rows.stopped
    assert rows.exhausted
    assert rows.layers == (Layer("node", 3), Layer("ask", 3))
    assert "`repeat_exhausted=True` keeps both" in str(shown[0].message)
    assert shown[0].filename == caught.__code__.co_filename


def test_if_it_may_repeat_it_every_call_is_in_the_one_ledger() -> None:
    call = failing()
    clock = FakeClock()
    outer = retry(clock=clock, jitter=even, name="node", repeat_exhausted=True)

    with pytest.warns(NestedRetries):
        error = caught(outer(times(3, "ask")(call)))

    rows = ledger(error)
    assert call.count == 9
    assert layers(rows) == [(number, "ask") for number in range(1, 10)]
    assert [row.wait for row in rows.attempts if row.wait] == clock.slept == [1.0, 2.0]
    assert rows.nested == ("`node` × `ask`: 3 × 3 = up to 9 calls",)
    assert rows.table().splitlines()[-1] == "nested loops: `node` × `ask`: 3 × 3 = up to 9 calls"
    assert rows.stopped == "giving up, all 3 attempts are spent"
    last = failwell.describe(error).attempts[-1].reason or ""
    assert last.endswith(
        "`node`: giving up, all 3 attempts are spent (`node` × `ask`: 3 × 3 = up to 9 calls)"
    )


def test_the_report_and_its_text_show_the_layers_and_the_product() -> None:
    @times(2, "node")
    def node() -> None:
        times(2, "other")(Scripted(overloaded(), "answer"))()
        times(2, "ask")(failing())()

    with pytest.warns(NestedRetries):
        report = failwell.describe(caught(node))

    assert [row.layer for row in report.attempts] == ["other", "other", "ask", "ask"]
    assert [row.number for row in report.attempts] == [1, 2, 3, 4]
    text = render_text(report, audience="operator")
    assert "2 × 2 = up to 4 calls" in text
    assert "other" in text
    assert ErrorReport.from_json(report.to_json()).attempts == report.attempts


def test_the_warning_is_shown_once_for_each_pair() -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        for _ in range(3):
            caught(times(2, "a")(times(2, "b")(failing())))
        caught(times(2, "a")(times(3, "b")(failing())))
        caught(times(2, "a")(times(2, "c")(failing())))

    assert [str(warning.message).split(":")[1] for warning in shown] == [" `a` × `b`", " `a` × `c`"]


def test_a_warning_that_is_an_error_does_not_replace_the_failure() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        error = caught(times(2, "a")(times(2, "b")(failing())))

    assert failwell.describe(error).kind == "provider.overloaded"


def test_three_layers_multiply() -> None:
    call = failing()

    with pytest.warns(NestedRetries):
        error = caught(
            times(2, "a", repeat_exhausted=True)(
                times(2, "b", repeat_exhausted=True)(times(2, "c")(call)),
            )
        )

    assert call.count == 8
    assert layers(ledger(error)) == [(number, "c") for number in range(1, 9)]
    assert ledger(error).nested == ("`a` × `b` × `c`: 2 × 2 × 2 = up to 8 calls",)


def test_a_loop_that_made_one_call_has_exhausted_nothing() -> None:
    call = failing()

    error = caught(times(3, "outer")(times(1, "inner")(call)))

    assert call.count == 3
    assert [row.layer for row in ledger(error).attempts] == ["inner"] * 3


def test_what_an_inner_loop_would_not_repeat_an_outer_one_may() -> None:
    call = failing()

    caught(times(3, "outer")(retry(on="tool.", clock=FakeClock())(call)))

    assert call.count == 3


@pytest.mark.parametrize("succeeds", [times(2, "other")(Scripted("answer")), lambda: answering().call()])
def test_a_failure_is_repeated_if_a_loop_inside_has_succeeded_since_another_gave_up(
    succeeds: Callable[[], Any],
) -> None:
    asked = failing()
    own = Scripted(overloaded(), "answer")

    @times(3, "node")
    def node() -> Any:
        caught(times(2, "ask")(asked))
        succeeds()
        return own()

    with pytest.warns(NestedRetries) as shown, collect_ledgers() as collected:
        assert node() == "answer"

    (rows,) = collected
    assert [(row.layer, row.kind) for row in rows.attempts if row.layer != "chain"] == [
        ("ask", "provider.overloaded"),
        ("ask", "provider.overloaded"),
        ("node", "provider.overloaded"),
        ("ask", "provider.overloaded"),
        ("ask", "provider.overloaded"),
        *([("node", None)] if len(rows.attempts) == 6 else []),
    ]
    assert asked.count == 4
    assert "does not repeat" not in str(shown[0].message)


def answering() -> Chain[Any]:
    return Chain(Entry(provider="p", model="m", call=Scripted("answer")), name="chain")


def test_a_call_of_its_own_after_a_loop_inside_gave_up_has_its_own_row_and_is_not_repeated() -> None:
    own = failing()

    @times(3, "node")
    def node() -> Any:
        caught(times(2, "ask")(failing()))
        return own()

    with pytest.warns(NestedRetries, match="`node` does not repeat"):
        rows = ledger(caught(node))

    assert own.count == 1
    assert layers(rows) == [(1, "ask"), (2, "ask"), (3, "node")]
    assert rows.exhausted
    assert "`ask` has already tried it 2 times" in rows.stopped


def test_a_loop_in_a_watcher_does_not_count_as_the_failure_of_the_next_attempt() -> None:
    call = Scripted(overloaded(), overloaded(), "answer")

    def note(_event: AttemptEvent) -> None:
        caught(times(2, "note")(failing()))

    assert times(3, "node", watcher=note)(call)() == "answer"


def by_from() -> None:
    try:
        times(2, "ask")(failing())()
    except Fault as error:
        raise Fault(message="the step failed") from error


def by_handling() -> None:
    try:
        times(2, "ask")(failing())()
    except Fault:
        raise_(overloaded())


def by_hiding() -> None:
    try:
        times(2, "ask")(failing())()
    except Fault:
        raise overloaded() from None


def by_swallowing() -> None:
    caught(times(2, "ask")(failing()))
    raise Fault(kind="provider.rate_limited")


async def by_hiding_async() -> None:
    async def ask() -> None:
        raise overloaded()

    try:
        await times(2, "ask")(ask)()
    except Fault:
        raise overloaded() from None


def by_thread() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(times(2, "ask")(failing())).result()


def by_thread_with_context() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(contextvars.copy_context().run, times(2, "ask")(failing())).result()


def by_gather() -> None:
    def ask(_item: int) -> None:
        times(2, "ask")(failing())()

    gather(ask, [1]).values()


def by_written_loop() -> None:
    for attempt in retrying(attempts=2, backoff=AT_ONCE, name="ask"):
        with attempt:
            raise overloaded()


def by_generator() -> None:
    @times(2, "ask")
    def chunks() -> Generator[int]:
        raise overloaded()
        yield 1

    list(chunks())


def by_loop() -> None:
    async def ask() -> None:
        raise overloaded()

    async def node() -> None:
        await asyncio.create_task(times(2, "ask")(ask)())

    asyncio.run(node())


def by_group() -> None:
    async def ask() -> None:
        raise overloaded()

    async def node() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(times(2, "ask")(ask)())

    asyncio.run(node())


def by_async_generator() -> None:
    @times(2, "ask")
    async def chunks() -> AsyncGenerator[int]:
        raise overloaded()
        yield 1

    async def node() -> None:
        async for _ in chunks():
            pass

    asyncio.run(node())


def by_chain() -> None:
    Chain(Entry(provider="p", model="m", call=failing(), attempts=2), name="ask", clock=FakeClock()).call()


def by_chain_of_two() -> None:
    Chain(
        Entry(provider="p", model="m", call=failing()),
        Entry(provider="q", model="m", call=failing()),
        name="ask",
        clock=FakeClock(),
    ).call()


def by_key() -> None:
    with keyed("order-1"):
        times(2, "ask")(failing())()


@pytest.mark.parametrize(
    "inner",
    [
        by_from, by_handling, by_hiding, by_swallowing, by_hiding_async, by_thread, by_thread_with_context, by_gather, by_written_loop, by_generator, by_loop,
        by_group, by_async_generator, by_chain, by_chain_of_two, by_key,
    ],
)  # fmt: skip
def test_a_loop_inside_is_seen_however_its_failure_comes_out(inner: Callable[[], Any]) -> None:
    node = times(3, "node")(inner)
    with pytest.warns(NestedRetries) as shown:
        error = caught((lambda: asyncio.run(node())) if inspect.iscoroutinefunction(inner) else node)

    assert shown[0].filename in (__file__, caught.__code__.co_filename)
    assert layers(ledger(error)) == [(1, "ask"), (2, "ask")]
    assert ledger(error).nested == ("`node` × `ask`: 3 × 2 = up to 6 calls",)
    assert ledger(error).exhausted


def test_loops_side_by_side_are_not_inside_each_other() -> None:
    same = Scripted(overloaded())
    looped = times(3, "ask")(same)

    caught(looped)
    error = caught(looped)

    assert same.count == 6
    assert ledger(error).nested == ()
    assert layers(ledger(error)) == [(1, "ask"), (2, "ask"), (3, "ask")]


def test_a_chain_goes_to_the_next_entry_when_a_loop_inside_an_entry_is_exhausted() -> None:
    call = failing()
    answers = Chain(
        Entry(provider="p", model="m", call=times(2, "ask")(call), attempts=3),
        Entry(provider="q", model="m", call=Scripted("answer")),
        clock=FakeClock(),
    )
    insists = Chain(
        Entry(provider="p", model="m", call=times(2, "ask")(call), attempts=3),
        Entry(provider="q", model="m", call=Scripted("answer")),
        clock=FakeClock(),
        policy=ChainPolicy(repeat_exhausted=True),
    )

    with collect_ledgers() as collected:
        for chain in (answers, insists):
            with pytest.warns(NestedRetries):
                assert chain.call() == "answer"

    assert [(row.layer, row.provider) for row in collected[0].attempts] == [
        ("ask", "p"),
        ("ask", "p"),
        ("chain", "q"),
    ]
    assert len(collected[1].attempts) == 7


def test_a_loop_around_a_chain_has_the_calls_and_the_costs_of_the_chain() -> None:
    reply = {"usage": {"prompt_tokens": 1_000_000, "completion_tokens": 0}}
    prices = Prices({"m": Price.dollars(1, 1)}, public=False)
    chain = Chain(Entry(provider="p", model="m", call=Scripted(reply)), prices=prices)
    results = Scripted(overloaded(), "parsed")

    @times(2, "step")
    def step() -> Any:
        chain.call()
        return results()

    with collect_ledgers() as collected:
        assert step() == "parsed"

    (rows,) = collected
    assert [(row.layer, row.cost) for row in rows.attempts] == [
        ("chain", 100_000_000),
        ("step", None),
        ("chain", 100_000_000),
    ]
    assert rows.cost == 200_000_000


def test_names_come_from_the_functions() -> None:
    class Client:
        @retry(attempts=1)
        def ask(self) -> None:
            raise overloaded()

        def look(self) -> None:
            for attempt in retrying(attempts=1):
                with attempt:
                    raise overloaded()

        def __call__(self) -> None:
            raise overloaded()

    def name(call: Callable[[], Any]) -> str | None:
        return ledger(caught(call)).attempts[0].layer

    here = "test_names_come_from_the_functions"
    assert name(Client().ask) == f"{here}.Client.ask"
    assert name(Client().look) == f"{here}.Client.look"
    assert name(retry(attempts=1)(Client())) == f"{here}.Client"
    assert name(retry(attempts=1, name="mine")(Client())) == "mine"
    assert name(retry(options=RetryOptions(name="options"))(Client())) == "options"


def test_a_watcher_hears_of_each_layer_as_that_layer_counts() -> None:
    heard: list[tuple[str, int]] = []

    def note(event: AttemptEvent) -> None:
        if isinstance(event, AttemptFailed):
            heard.append((event.layer, event.attempt.number))

    with pytest.warns(NestedRetries), watch(note):
        caught(times(2, "a", repeat_exhausted=True)(times(2, "b")(failing())))

    assert heard == [("b", 1), ("b", 2), ("a", 1), ("b", 1), ("b", 2), ("a", 2)]


class Foreign(Exception):
    """As somebody else writes one."""


@pytest.mark.parametrize("error", [overloaded(), ConnectionRefusedError(111, "refused"), Foreign("x")])
def test_a_ledger_survives_pickle_and_copy(error: Exception) -> None:
    rows = ledger(caught(times(2, "ask")(Scripted(error))))

    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert ledger_of(twin) == rows
        assert failwell.describe(twin).attempts == failwell.describe(error).attempts
    for twin in (pickle.loads(pickle.dumps(rows)), copy.copy(rows), copy.deepcopy(rows)):
        assert twin == rows
        assert twin.table() == rows.table()


def test_a_failure_from_another_process_is_not_repeated_if_it_was_exhausted_there() -> None:
    there = pickle.dumps(caught(times(2, "ask")(failing())))

    with pytest.warns(NestedRetries):
        error = caught(times(3, "node")(lambda: raise_(pickle.loads(there))))

    assert layers(ledger(error)) == [(1, "ask"), (2, "ask")]


def test_each_block_collects_the_ledgers_of_its_own_calls() -> None:
    barrier = threading.Barrier(4, timeout=10)

    def ask(name: str) -> str:
        barrier.wait()
        return name

    chain = Chain(Entry(provider="p", model="m", call=ask))

    def work(name: str) -> tuple[list[Ledger], Ledger]:
        with collect_ledgers() as collected:
            chain.call(name)
            mine = chain.ledger
        return collected, mine

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(work, "abcd"))

    assert all(len(collected) == 1 and collected[0] is mine for collected, mine in outcomes)


def test_calls_of_one_chain_at_the_same_time_do_not_see_each_others_ledgers() -> None:
    async def ask(number: int) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"usage": {"prompt_tokens": number, "completion_tokens": 0}}

    chain = Chain(Entry(provider="p", model="m", call=ask))

    async def one(number: int) -> int:
        await chain.acall(number)
        await asyncio.sleep(0)
        return chain.ledger.attempts[0].usage["input_tokens"]

    async def all_at_once() -> list[int]:
        return await asyncio.gather(*(one(number) for number in range(20)))

    assert asyncio.run(all_at_once()) == list(range(20))
    assert chain.ledger.attempts == ()


def test_a_chain_that_was_not_called_has_an_empty_ledger_and_several_keep_theirs() -> None:
    chains = [
        Chain(Entry(provider=f"p{n}", model="m", call=Scripted("answer")), name=f"c{n}") for n in range(3)
    ]

    assert chains[0].ledger == Ledger(layer="c0")
    for chain in chains:
        chain.call()

    assert [chain.ledger.attempts[0].provider for chain in chains] == ["p0", "p1", "p2"]


def test_a_stream_that_is_closed_early_is_in_the_ledger() -> None:
    def chunks() -> Generator[dict[str, Any]]:
        yield {"usage": {"prompt_tokens": 7, "completion_tokens": 0}}
        yield {}

    chain = Chain(Entry(provider="p", model="m", call=chunks))

    with collect_ledgers() as collected:
        stream: Any = chain.stream()
        next(stream)
        stream.close()

    assert collected[0].attempts[0].usage == {"input_tokens": 7, "output_tokens": 0}
    assert collected[0].stopped == "the caller closed the stream"
