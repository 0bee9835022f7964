"""What a type checker sees of the public modules. Nothing here is run: pyright reads it in `make check`.

An `ignore` comment is an expected error: pyright complains where it is not needed.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from functools import partial
from typing import Any, assert_type

import failwell
from failwell import Backoff, Budget, Chain, Entry, Policy, describe, gather, retry, retrying
from failwell.agents import Outcome, ToolLoopBreaker, drop_oldest_tool_results, run_agent
from failwell.calls import (
    ChainReply,
    Decision,
    Partial,
    ReplySource,
    RetryOptions,
    RetryState,
    StreamTimeouts,
    Subscription,
    collect_ledgers,
    decide,
    limit_astream,
    limit_stream,
    observe,
    watch,
)
from failwell.capability import (
    Capability,
    CapabilityInputError,
    capability,
    check_cancel,
    on_cancel,
    progress,
)
from failwell.errors import Ledger
from failwell.http import problem
from failwell.jobs import AsyncClient as JobsClient
from failwell.jobs import AsyncJobHandle, Client, JobGroup, JobHandle, JobSchedule, JobState

failwell.nope()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
failwell.kinds()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def ask(prompt: str) -> str:
    return prompt


async def ask_async(prompt: str) -> str:
    return prompt


def count(prompt: str) -> int:
    return len(prompt)


def chunks(prompt: str) -> Iterator[bytes]:
    yield prompt.encode()


async def chunks_async(prompt: str) -> AsyncIterator[bytes]:
    yield prompt.encode()


async def open_stream(prompt: str) -> AsyncIterator[bytes]:
    return chunks_async(prompt)


def reports_and_decisions(error: Exception) -> None:
    report = describe(error)
    assert_type(report, failwell.ErrorReport)
    assert_type(problem(report), dict[str, Any])
    assert_type(decide(Policy(), report, RetryState(1)), Decision)


def retries() -> None:
    assert_type(retry(ask)("hi"), str)
    assert_type(retry(attempts=3)(ask)("hi"), str)
    retry(ask)(1)  # pyright: ignore[reportArgumentType]
    retry(attempt=3)  # pyright: ignore[reportCallIssue]
    retry(attempts="3")  # pyright: ignore[reportArgumentType]
    retry(stream=10)  # pyright: ignore[reportArgumentType]
    assert_type(list(retry(stream=StreamTimeouts(idle=5))(chunks)("hi")), list[bytes])
    assert_type(list(limit_stream(chunks("hi"), StreamTimeouts(first=5))), list[bytes])
    assert_type(retry(shrink=drop_oldest_tool_results)(ask)("hi"), str)
    assert_type(run_agent(ask, "hi"), Outcome)
    run_agent(ask, 1)  # pyright: ignore[reportArgumentType, reportCallIssue]
    assert_type(ToolLoopBreaker().wrap(ask)("hi"), str)
    retry(backoff=Backoff(first=1.0), options=RetryOptions(provider="acme"), timeout=3.0)
    for attempt in retrying(attempts=2, idempotent=True):
        with attempt:
            assert_type(attempt.number, int)


class AsyncClient:
    async def __call__(self, prompt: str) -> str:
        return prompt


def averages(first: float) -> Generator[float, int, str]:
    yield first
    return "done"


async def averages_async(first: float) -> AsyncGenerator[float, int]:
    yield first


def names_and_layers() -> None:
    assert_type(retry(name="ask", repeat_exhausted=True)(ask)("hi"), str)
    retry(name=3)  # pyright: ignore[reportArgumentType]
    retry(layer="ask")  # pyright: ignore[reportCallIssue]
    with collect_ledgers() as ledgers:
        assert_type(ledgers, list[Ledger])
    assert_type(ledgers[0].layers[0].calls, int)
    assert_type(ledgers[0].attempts[0].layer, str | None)


def generators() -> None:
    generator = retry(averages)(1.0)
    assert_type(generator, Generator[float, int, str])
    assert_type(generator.send(1), float)
    assert_type(retry(averages_async)(1.0), AsyncGenerator[float, int])


def observers() -> None:
    assert_type(observe(lambda event: None), Subscription)
    observe("x")  # pyright: ignore[reportArgumentType]
    with watch(print) as subscription:
        subscription.close()


def money() -> None:
    Budget(usd=0.5, unpriced="allow")
    Budget(usd="0.5")  # pyright: ignore[reportArgumentType]
    Budget(usd=1, unpriced="maybe")  # pyright: ignore[reportArgumentType]


def chains() -> None:
    chain = Chain(Entry(provider="a", model="m", call=ask), Entry(provider="b", model="n", call=ask))
    assert_type(chain, Chain[str])
    assert_type(chain.reply("hi"), ChainReply[str])
    assert_type(chain.reply("hi").value, str)
    assert_type(chain.source, ReplySource | None)
    assert_type(chain.call("hi"), str)
    Chain(Entry(provider="a", model="m", call=ask), purse=None)  # pyright: ignore[reportCallIssue]
    streaming = Chain(Entry(provider="a", model="m", call=chunks))
    assert_type(streaming.stream("hi"), Iterator[bytes])


async def async_chains() -> None:
    assert_type(await retry(ask_async)("hi"), str)
    assert_type(await run_agent(ask_async, "hi"), Outcome)
    assert_type(
        [chunk async for chunk in limit_astream(open_stream("hi"), StreamTimeouts(idle=5))], list[bytes]
    )
    assert_type(await retry(AsyncClient())("hi"), str)
    assert_type(await retry(partial(ask_async, "hi"))(), str)
    assert_type(await Chain(Entry(provider="a", model="m", call=ask_async)).acall("hi"), str)
    sync = Chain(Entry(provider="a", model="m", call=ask))
    await sync.acall("hi")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    async for chunk in Chain(Entry(provider="a", model="m", call=chunks_async)).astream("hi"):
        assert_type(chunk, bytes)
    async for chunk in Chain(Entry(provider="a", model="m", call=open_stream)).astream("hi"):
        assert_type(chunk, bytes)


async def batches() -> None:
    assert_type(gather(count, ["a"]), Partial[int])
    assert_type((await gather(ask_async, ["a"], limit=2)).values(), list[str])


class Counter(Capability):
    """As an author writes one."""

    def initialize(self, config: dict[str, Any]) -> None:
        self.config = config

    def execute(self, text: str) -> dict[str, int]:
        if not text:
            raise CapabilityInputError("there is nothing to count", fields_invalid=["text"])
        with self.heartbeat("counting"), on_cancel(self.release):
            self.check_cancel()
            self.progress(0.5, "counting")
            self.usage({"words": 1})
        return {"words": len(text.split())}

    def release(self) -> None:
        """Nothing to release."""

    def on_cancel(self) -> None:
        """The author's hook."""


@capability(name="measure", version="2")
def characters(text: str) -> int:
    check_cancel()
    progress(1.0)
    return len(text)


assert_type(characters("abc"), int)
assert_type(Counter().execute("a b"), dict[str, int])


@capability
def resize(image: str, width: int = 640) -> dict[str, int]:
    return {image: width}


@capability(name="count-words")
async def count_words(text: str) -> int:
    return len(text)


def jobs_of_a_thread(client: Client) -> None:
    job = client.submit(resize, image="cat.png")
    assert_type(job, JobHandle[dict[str, int]])
    assert_type(job.result(timeout=1), dict[str, int])
    assert_type(client.submit(count_words, "one").result(), int)
    assert_type(client.submit("resize", image=1), JobHandle[Any])
    assert_type(client.submit_many(count_words, [{"text": "one"}]), list[JobHandle[int]])
    assert_type(
        client.submit_many("resize", [{"image": 1}], group="g", callback=resize), list[JobHandle[Any]]
    )
    assert_type(client.group("g"), JobGroup)
    assert_type(client.schedule(resize, "0 3 * * *", name="nightly"), JobSchedule)
    assert_type(client.job("1", resize), JobHandle[dict[str, int]])
    assert_type(client.with_options(priority=1), Client)
    client.submit(resize, image=1)  # pyright: ignore[reportArgumentType, reportCallIssue]
    client.submit(resize, imagine="cat.png")  # pyright: ignore[reportCallIssue]
    client.submit(resize)  # pyright: ignore[reportCallIssue]


async def jobs_of_an_event_loop(client: JobsClient) -> None:
    job = await client.submit(resize, image="cat.png")
    assert_type(job, AsyncJobHandle[dict[str, int]])
    assert_type(await job.result(), dict[str, int])
    assert_type(await (await client.submit(count_words, text="one")).result(), int)
    assert_type(await client.submit_many(count_words, [{"text": "one"}]), list[AsyncJobHandle[int]])
    assert_type(await client.schedules(), list[JobSchedule])
    assert_type(await job.status(), JobState)
    async for event in job.events():
        assert_type(event.type, str)
    await client.submit(resize, width="wide")  # pyright: ignore[reportCallIssue]
