"""Workflows and activities for the tests of the Temporal plugin. Temporal's sandbox loads this module anew for every run."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.request import Request, urlopen

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    import failwell
    from failwell.calls.backoff import Backoff
    from failwell.calls.idempotency import idempotency_key
    from failwell.delivery.webhook import failure_payload
    from failwell.errors.facts import NotBefore
    from failwell.errors.fault import Fault
    from failwell.temporal.plugin import recover

SECRET = "the-text-nobody-may-see"
calls: dict[str, int] = {}
"""How often each scenario was called, by name."""
keys: dict[str, list[str]] = {}
"""The idempotency keys of its calls."""


@dataclass
class Arguments:
    count: int


class OddError(Exception):
    """An exception that nobody knows."""


def transient() -> None:
    raise Fault(
        kind="provider.overloaded", provider="acme", not_before=NotBefore(after=0.01, source="retry-after")
    )


def configuration() -> None:
    raise Fault(kind="provider.auth", provider="acme")


def unknown() -> None:
    raise OddError(SECRET)


def buried() -> None:
    try:
        transient()
    except Fault as error:
        wrapped: Exception = error
        for name in ("Fetch", "Load", "Run"):
            wrapper = Fault(message=f"{name} failed")
            wrapper.__cause__ = wrapped
            wrapped = wrapper
        raise wrapped from wrapped.__cause__


def foreign() -> None:
    """As Temporal's plugin of OpenAI Agents does: a quota that is repeated for ever."""
    try:
        raise Fault(kind="provider.quota_exhausted", provider="acme")
    except Fault as error:
        raise ApplicationError("Retryable OpenAI status code: 429", type="APIStatusError") from error


def authors_own() -> None:
    raise ApplicationError(
        "the author has decided", {"mine": 1}, type="Mine", next_retry_delay=timedelta(milliseconds=10)
    )


def overloaded_then_parked() -> None:
    """A failure that is repeated, a delay that is too long to be repeated by the server, and failures to the end."""
    if calls["overloaded_then_parked"] == 2:
        parked_for(1.5)
    transient()


def parked_for_an_hour() -> None:
    parked_for(3600.0)


def limited_once() -> None:
    if calls["limited_once"] == 1:
        parked_for(2.0)


def parked_for(seconds: float) -> None:
    raise Fault(kind="provider.rate_limited", not_before=NotBefore(after=seconds, source="retry-after"))


def lost_reply() -> None:
    raise Fault(kind="provider.outcome_unknown")


def nested() -> None:
    """A loop in the activity that has already repeated the call up to its limit."""
    failwell.retry(attempts=2, backoff=Backoff(first=0.0))(transient)()


def denied() -> None:
    raise Fault(kind="tool.denied")


def large() -> None:
    raise Fault(kind="provider.bad_request", message="x" * 1_000_000)


def unwritable() -> object:
    return object()


_ALL: tuple[Callable[[], object], ...] = (
    *(transient, configuration, unknown, buried, foreign, authors_own, denied, large, unwritable),
    *(overloaded_then_parked, parked_for_an_hour, lost_reply, nested, limited_once),
)
SCENARIOS: dict[str, Callable[[], object]] = {each.__name__: each for each in _ALL}


@activity.defn
async def act(name: str) -> Any:
    calls[name] = calls.get(name, 0) + 1
    keys.setdefault(name, []).append(idempotency_key())
    return SCENARIOS[name]()


@activity.defn
def act_in_a_thread(name: str) -> Any:
    calls[name] = calls.get(name, 0) + 1
    return SCENARIOS[name]()


@activity.defn
async def take_arguments(arguments: Arguments) -> int:
    calls["take_arguments"] = calls.get("take_arguments", 0) + 1
    return arguments.count


@workflow.defn
class Call:
    """Calls one activity with nothing but the timeout that Temporal requires."""

    @workflow.run
    async def run(
        self, name: str, attempts: int = 0, activity_name: str = "act", listed: list[str] | None = None
    ) -> Any:
        first = timedelta(milliseconds=10)
        policy = RetryPolicy(
            maximum_attempts=attempts, initial_interval=first, non_retryable_error_types=listed
        )
        return await workflow.execute_activity(
            activity_name,
            name,
            start_to_close_timeout=timedelta(seconds=20),
            retry_policy=policy if attempts else None,
        )


@activity.defn
def deliver(url: str, body: dict[str, Any]) -> None:
    sent = Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urlopen(sent, timeout=10):
        pass


@workflow.defn
class Delivered:
    """Runs a child, and reports its failure to a webhook before it fails too."""

    @workflow.run
    async def run(self, name: str, url: str) -> None:
        try:
            await workflow.execute_child_workflow(Inline.run, name)
        except Exception as error:
            body = failure_payload(recover(error), run_id=workflow.info().workflow_id, audience="operator")
            await workflow.execute_activity(
                deliver, args=[url, body], start_to_close_timeout=timedelta(seconds=20)
            )
            raise


@activity.defn
async def hang() -> None:
    """Runs until it is cancelled."""
    while True:
        activity.heartbeat()
        await asyncio.sleep(0.05)


@workflow.defn
class Local:
    """Calls a local activity, which the worker repeats itself."""

    @workflow.run
    async def run(self, name: str, attempts: int = 0) -> Any:
        return await workflow.execute_local_activity(
            "act",
            name,
            start_to_close_timeout=timedelta(seconds=20),
            retry_policy=RetryPolicy(maximum_attempts=attempts) if attempts else None,
        )


@workflow.defn
class Cancelled:
    """Waits for an activity, or cancels one before the event loop has turned."""

    @workflow.run
    async def run(self, when: str) -> None:
        handle = workflow.start_activity(
            hang,
            start_to_close_timeout=timedelta(seconds=40),
            heartbeat_timeout=timedelta(seconds=1),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        if when == "at once":
            handle.cancel()
        await handle


@workflow.defn
class BadArguments:
    """Passes on arguments that a model made up."""

    @workflow.run
    async def run(self) -> Any:
        return await workflow.execute_activity(
            "take_arguments", {"count": "many"}, start_to_close_timeout=timedelta(seconds=20)
        )


@workflow.defn
class Inline:
    """Raises in its own code."""

    @workflow.run
    async def run(self, name: str) -> None:
        if name == "wraps":
            try:
                await workflow.execute_activity(
                    "act", "configuration", start_to_close_timeout=timedelta(seconds=20)
                )
            except Exception as error:
                raise OddError(SECRET) from error
        if name == "seconds":
            seconds: Any = 20
            await workflow.execute_activity("act", "transient", start_to_close_timeout=seconds)
        if name == "group":
            async with asyncio.TaskGroup() as group:
                group.create_task(_fail("transient"))
        SCENARIOS[name]()


async def _fail(name: str) -> None:
    SCENARIOS[name]()


@workflow.defn
class Handlers:
    """Raises in the handlers of an update and of a signal."""

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.update
    async def change(self, name: str) -> None:
        SCENARIOS[name]()

    @workflow.signal
    async def end(self, name: str) -> None:
        SCENARIOS[name]()
