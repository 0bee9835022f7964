"""The Temporal plugin with a real server: what is repeated, how often, after which wait, and what is stored."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

pytest.importorskip("temporalio", reason="temporalio is in requirements/sdks/newest.txt")

from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ApplicationErrorCategory,
    is_cancelled_exception,
)
from temporalio.worker import Replayer, Worker

import failwell
from failwell.adapters.describe import describe
from failwell.calls.guard import Guard
from failwell.calls.policy import Policy
from failwell.errors.axes import Category
from failwell.temporal.plugin import recover, reliability
from tests.integrations import temporal_flows as flows
from tests.servers import wsgi_server
from tests.temporal_server import server, task_queue

FLOWS: list[Any] = [
    flows.Call,
    flows.BadArguments,
    flows.Inline,
    flows.Handlers,
    flows.Delivered,
    flows.Local,
    flows.Cancelled,
]
ACTIVITIES: list[Any] = [flows.act, flows.act_in_a_thread, flows.take_arguments, flows.deliver, flows.hang]


class Flows:
    """Workflows on one worker, and their handles."""

    def __init__(self, client: Client, queue: str, plugin: Any) -> None:
        self._client = client
        self._queue = queue
        self._plugin = plugin
        self.handles: list[WorkflowHandle[Any, Any]] = []

    async def start(self, flow: Any, *args: Any) -> WorkflowHandle[Any, Any]:
        handle = await self._client.start_workflow(
            flow.run, args=args, id=uuid4().hex, task_queue=self._queue
        )
        self.handles.append(handle)
        return handle

    async def __call__(self, flow: Any, *args: Any) -> Any:
        return await (await self.start(flow, *args)).result()

    async def replay(self) -> None:
        """Replay every history in a worker of its own; a difference raises."""
        replayer = Replayer(
            workflows=FLOWS, plugins=[self._plugin], data_converter=self._client.data_converter
        )
        for handle in self.handles:
            await replayer.replay_workflow(await handle.fetch_history())


@asynccontextmanager
async def running(plugin: Any = None) -> AsyncGenerator[Flows]:
    plugin = plugin or reliability()
    client = await Client.connect(server().address, plugins=[plugin])
    queue = task_queue()
    with ThreadPoolExecutor(2) as threads:
        async with Worker(
            client, task_queue=queue, workflows=FLOWS, activities=ACTIVITIES, activity_executor=threads
        ):
            yield Flows(client, queue, plugin)


async def events_of(handle: WorkflowHandle[Any, Any]) -> list[str]:
    return [str(event.WhichOneof("attributes")) for event in (await handle.fetch_history()).events]


async def reached(handle: WorkflowHandle[Any, Any], event: str) -> None:
    """Wait until the server has recorded such an event."""
    async for recorded in handle.fetch_history_events(wait_new_event=True):
        if recorded.WhichOneof("attributes") == event:
            return


async def failure(call: Awaitable[Any]) -> WorkflowFailureError:
    with pytest.raises(WorkflowFailureError) as caught:
        await asyncio.wait_for(call, 30)
    return caught.value


def cause(error: WorkflowFailureError) -> ApplicationError:
    inner = error.cause.cause if isinstance(error.cause, ActivityError) else error.cause
    assert isinstance(inner, ApplicationError)
    return inner


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    flows.calls.clear()
    flows.keys.clear()


def call(coroutine: Awaitable[Any]) -> Any:
    async def main() -> Any:
        return await asyncio.wait_for(coroutine, 55)

    return asyncio.run(main())


@pytest.mark.slow
@pytest.mark.acceptance("pipelex 61", "pipelex 59")
def test_the_server_repeats_what_a_repeat_can_mend_and_an_error_in_workflow_code_ends_the_workflow() -> None:
    async def main() -> dict[str, WorkflowFailureError]:
        async with running() as run:
            calls = {
                name: run(flows.Call, name) for name in ("transient", "configuration", "foreign", "unknown")
            }
            calls["named"] = run(flows.Call, "transient", 2, "act_in_a_thread")
            calls["inline"] = run(flows.Inline, "configuration")
            errors = await asyncio.gather(*map(failure, calls.values()))
            return dict(zip(calls, errors, strict=True))

    errors = call(main())

    kinds = {name: (cause(error).type, recover(error).kind) for name, error in errors.items()}
    assert kinds == {
        "transient": ("provider.overloaded",) * 2,
        "configuration": ("provider.auth",) * 2,
        # Another plugin called it retryable; its cause decides.
        "foreign": ("provider.quota_exhausted",) * 2,
        "unknown": ("internal.unknown",) * 2,
        "named": ("provider.overloaded",) * 2,
        "inline": ("provider.auth",) * 2,
    }
    assert all(cause(error).non_retryable for error in errors.values())
    # Three of its own schedule, and two that the activity's policy names.
    assert flows.calls == {"transient": 3 + 2, "configuration": 1, "foreign": 1, "unknown": 1}
    report = recover(errors["transient"])
    assert [(row.number, row.wait) for row in report.attempts] == [(1, 0.01), (2, 0.01), (3, None)]
    assert (report.scene.node, report.scene.workflow, report.scene.attempt) == ("act", "Call", 3)
    stored = "".join(
        str(link.failure) for link in (errors["unknown"].cause, cause(errors["unknown"])) if link
    )
    assert flows.SECRET not in stored


@pytest.mark.slow
@pytest.mark.acceptance("pipelex 54", "pipelex 55", "pipelex 60")
def test_every_scenario_is_called_as_often_as_its_category_allows() -> None:
    async def main() -> dict[str, WorkflowFailureError]:
        async with running(
            reliability(non_retryable=["Mine"], idempotent_activities=["act_in_a_thread"])
        ) as run:
            names = ("buried", "denied", "authors_own", "unwritable", "lost_reply", "nested", "large")
            calls = {name: run(flows.Call, name) for name in names}
            calls["arguments"] = run(flows.BadArguments)
            # The policy of this activity adds a name to those of the plugin.
            calls["listed"] = run(flows.Call, "transient", 3, "act", ["Fault"])
            calls["idempotent"] = run(flows.Call, "lost_reply", 0, "act_in_a_thread")
            errors = await asyncio.gather(*map(failure, calls.values()))
            return dict(zip(calls, errors, strict=True))

    with pytest.warns(UserWarning, match="retries inside retries"):
        errors = call(main())

    assert flows.calls == {
        # Buried under three wrappers, it is as transient as before.
        "buried": 3,
        "denied": 1,
        # The list of names can only forbid.
        "authors_own": 1,
        # The work was done, and its result cannot be written: a repeat would do it again.
        "unwritable": 1,
        # Once where a repeat may do it twice, three times where that is declared to be harmless.
        "lost_reply": 1 + 3,
        # The loop inside has made its two calls; the server does not repeat them.
        "nested": 1,
        "large": 1,
        # An overlay forbids what the category allows.
        "transient": 1,
    }
    assert cause(errors["authors_own"]).details == ({"mine": 1},)
    assert recover(errors["nested"]).kind == "provider.overloaded"
    assert "more characters cut]" in recover(errors["large"]).message
    benign = {
        name for name, error in errors.items() if cause(error).category == ApplicationErrorCategory.BENIGN
    }
    assert benign == {"denied"}
    # The model's arguments never reached the activity, and the server made one attempt.
    assert recover(errors["arguments"]).kind == "internal.bug"


@pytest.mark.slow
def test_a_long_delay_is_a_timer_of_the_workflow_and_costs_no_attempt() -> None:
    async def main() -> tuple[WorkflowFailureError, list[str], timedelta]:
        async with running(reliability(policy=Policy(in_process_limit=1.0))) as run:
            handle = await run.start(flows.Call, "overloaded_then_parked")
            error = await failure(handle.result())
            events = await events_of(handle)
            parked = await run.start(flows.Call, "parked_for_an_hour")
            await reached(parked, "timer_started_event_attributes")
            timers = [
                event.timer_started_event_attributes.start_to_fire_timeout.ToTimedelta()
                for event in (await parked.fetch_history()).events
                if event.HasField("timer_started_event_attributes")
            ]
            await parked.terminate()
            await run.replay()
            return error, events, timers[0]

    error, events, hour = call(main())

    # The second call was turned away and is not charged: three others count, as the schedule of the kind says.
    assert flows.calls["overloaded_then_parked"] == 4
    assert len(set(flows.keys["overloaded_then_parked"])) == 1
    assert events.count("timer_started_event_attributes") == 1
    assert events.count("activity_task_scheduled_event_attributes") == 2
    assert recover(error).scene.attempt == 3
    assert hour == timedelta(hours=1)
    assert flows.calls["parked_for_an_hour"] == 1


@pytest.mark.slow
@pytest.mark.acceptance("pipelex 56")
def test_a_report_is_the_same_in_the_process_in_the_workflow_and_at_the_submitter() -> None:
    async def main() -> list[WorkflowFailureError]:
        async with running() as run:
            return [
                await failure(run(flows.Call, "configuration")),
                await failure(run(flows.Inline, "wraps")),
            ]

    in_activity, in_workflow = call(main())
    with pytest.raises(Exception) as caught:
        failwell.retry(name="act")(flows.configuration)()
    local = describe(caught.value).to_dict()

    durable = recover(in_activity).to_dict()
    aside = ("id", "occurred_at", "scene", "internal")
    assert {k: v for k, v in durable.items() if k not in aside} == {
        k: v for k, v in local.items() if k not in aside
    }
    # A wrapper in the workflow's code adds nothing and takes nothing away.
    assert recover(in_workflow).kind == "provider.auth"
    assert recover(in_workflow).scene.node == "act"
    assert flows.SECRET not in str(in_workflow.cause and in_workflow.cause.failure)


@pytest.mark.slow
@pytest.mark.acceptance("pipelex 59")
def test_errors_in_workflow_code_are_terminal_and_delivered_once() -> None:
    received: list[dict[str, Any]] = []
    app = _webhook(received)

    async def main(url: str) -> dict[str, Any]:
        async with running() as run:
            names = ("transient", "unknown", "group", "foreign")
            ends = dict(
                zip(
                    names,
                    await asyncio.gather(*(failure(run(flows.Inline, name)) for name in names)),
                    strict=True,
                )
            )
            delivered = await failure(run(flows.Delivered, "configuration", url))
            handlers: Any = await run.start(flows.Handlers)
            with pytest.raises(WorkflowUpdateFailedError) as rejected:
                await handlers.execute_update(flows.Handlers.change, "configuration")
            await handlers.signal(flows.Handlers.end, "denied")
            ended = await failure(handlers.result())
            await run.replay()
            return {**ends, "delivered": delivered, "update": rejected.value, "signal": ended}

    with wsgi_server(app) as url:
        errors = call(main(url))

    assert {name: recover(error).kind for name, error in errors.items()} == {
        "transient": "provider.overloaded",
        "unknown": "internal.unknown",
        "group": "provider.overloaded",
        "foreign": "provider.quota_exhausted",
        "delivered": "provider.auth",
        "update": "provider.auth",
        "signal": "tool.denied",
    }
    # Retrying belongs to activities: a workflow is not repeated as a whole.
    assert all(cause(errors[name]).non_retryable for name in ("transient", "unknown", "group"))
    assert [body["error"]["kind"] for body in received] == ["provider.auth"]


@pytest.mark.slow
def test_a_cancel_reaches_the_activity_and_ends_a_long_delay() -> None:
    async def main() -> list[WorkflowFailureError]:
        async with running() as run:
            waiting = await run.start(flows.Cancelled, "later")
            parked = await run.start(flows.Call, "parked_for_an_hour")
            at_once = await run.start(flows.Cancelled, "at once")
            for handle, event in ((waiting, "activity_task_scheduled"), (parked, "timer_started")):
                await reached(handle, f"{event}_event_attributes")
                await handle.cancel()
            errors = [await failure(handle.result()) for handle in (waiting, parked, at_once)]
            await run.replay()
            return errors

    errors = call(main())

    assert {recover(error).category for error in errors} == {Category.CANCELLED}
    assert [error.cause is not None and is_cancelled_exception(error.cause) for error in errors] == [True] * 3
    assert flows.calls == {"parked_for_an_hour": 1}


@pytest.mark.slow
def test_local_activities_and_a_plugin_that_is_given_twice() -> None:
    async def main() -> list[WorkflowFailureError]:
        plugin = reliability(policy=Policy(in_process_limit=1.0))
        client = await Client.connect(server().address, plugins=[plugin])
        queue = task_queue()
        with pytest.warns(UserWarning, match="The same plugin type"):
            worker = Worker(
                client, task_queue=queue, workflows=FLOWS, activities=[flows.act], plugins=[reliability()]
            )
        async with worker:
            run = Flows(client, queue, plugin)
            errors = [
                await failure(run(flows.Local, "transient")),
                await failure(run(flows.Local, "overloaded_then_parked")),
                await failure(run(flows.Call, "configuration")),
            ]
            await run.replay()
            return errors

    errors = call(main())

    assert [recover(error).kind for error in errors] == ["provider.overloaded"] * 2 + ["provider.auth"]
    assert flows.calls == {"transient": 3, "overloaded_then_parked": 4, "configuration": 1}


@pytest.mark.slow
def test_a_workflow_that_cannot_read_its_arguments_or_makes_no_sense_ends() -> None:
    async def main() -> list[WorkflowFailureError]:
        async with running() as run:
            errors = [
                await failure(run(flows.Inline, {"not": "a name"})),
                await failure(run(flows.Inline)),
                # The number of attempts is a text, and a timeout is a number.
                await failure(run(flows.Call, "transient", "many")),
                await failure(run(flows.Inline, "seconds")),
            ]
            await run.replay()
            return errors

    errors = call(main())

    assert {recover(error).kind for error in errors} == {"internal.bug"}
    assert flows.calls == {}


@pytest.mark.slow
def test_the_server_has_a_limit_for_attempts_that_no_worker_answers() -> None:
    async def main() -> list[Any]:
        async with running(reliability(attempts=9)) as run:
            own = await run.start(flows.Call, "configuration", 2, "act", ["Legacy"])
            other = await run.start(flows.Call, "configuration")
            await asyncio.gather(*(failure(handle.result()) for handle in (own, other)))
            return [
                event.activity_task_scheduled_event_attributes.retry_policy
                for handle in (own, other)
                for event in (await handle.fetch_history()).events
                if event.HasField("activity_task_scheduled_event_attributes")
            ]

    own, other = call(main())

    # A policy keeps its own number and names; without one there is an end, as late as any schedule of the plugin.
    assert (own.maximum_attempts, own.non_retryable_error_types[0]) == (2, "Legacy")
    assert other.maximum_attempts == 9
    # What the SDK fails with before and after the activity, such as a result that cannot be written.
    assert {"TypeError", "PayloadsTooLarge"} <= {
        *own.non_retryable_error_types,
        *other.non_retryable_error_types,
    }


@pytest.mark.slow
def test_a_history_that_was_recorded_without_the_plugin_is_replayed_with_it() -> None:
    async def main() -> None:
        client = await Client.connect(server().address)
        queue = task_queue()
        async with Worker(client, task_queue=queue, workflows=FLOWS, activities=[flows.act]):
            run = Flows(client, queue, reliability())
            await failure(run(flows.Call, "configuration", 1))
            await failure(run(flows.Local, "authors_own", 1))
        await run.replay()

    call(main())

    assert flows.calls == {"configuration": 1, "authors_own": 1}


@pytest.mark.slow
def test_a_guard_that_is_paused_makes_the_workflow_wait_and_not_the_worker() -> None:
    async def main() -> list[str]:
        async with running(reliability(guard=Guard(), policy=Policy(in_process_limit=1.0))) as run:
            first = await run.start(flows.Call, "limited_once")
            await reached(first, "timer_started_event_attributes")
            # The provider has turned the first call away, so the second is not made yet.
            second = await run.start(flows.Call, "limited_once")
            await asyncio.gather(first.result(), second.result())
            return await events_of(second)

    events = call(main())

    assert flows.calls == {"limited_once": 3}
    assert events.count("timer_started_event_attributes") == 1


@pytest.mark.slow
def test_only_the_exceptions_that_are_named_end_a_workflow() -> None:
    async def main() -> bool:
        async with running(reliability(workflow_failures=(failwell.Fault,))) as run:
            await failure(run(flows.Inline, "configuration"))
            stalled = await run.start(flows.Inline, "unknown")
            await reached(stalled, "workflow_task_failed_event_attributes")
            status = (await stalled.describe()).status
            await stalled.terminate()
            return status is WorkflowExecutionStatus.RUNNING

    assert call(main())


def _webhook(received: list[dict[str, Any]]) -> Any:
    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        received.append(json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))))
        start_response("204 No Content", [])
        return []

    return app


@pytest.mark.slow
def test_the_example_of_encryption_hides_the_failure_from_the_server(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("cryptography", reason="the example encrypts with it")
    from examples.bridges.temporal_encryption import main

    call(main(server().address))

    assert capsys.readouterr().out.splitlines() == [
        "the submitter reads: provider.auth, acme refused the key for card 4711",
        "the server can read the card: False",
        "the server can read the message: False",
    ]
