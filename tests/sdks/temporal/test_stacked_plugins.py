"""The Temporal plugin beside those of OpenAI Agents and Pydantic AI: real agents, a real server, and the calls that the lab counts."""

import asyncio
import atexit
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import cache
from importlib import import_module
from typing import Any

import pytest

from failwell.calls import AttemptFailed
from failwell.calls.attempt_loop import AttemptEvent
from failwell.errors.report import ErrorReport
from failwell.temporal.plugin import recover, reliability
from failwell.testing.laboratory.delay_forms import Wait
from failwell.testing.laboratory.lab_reply import LabCall, Reply
from failwell.testing.laboratory.lab_routes import check
from tests.sdks.plugins.scripted_lab import ScriptedLab, Step, calls_tool, lab_reply, scripted_lab
from tests.temporal_server import server, task_queue

pytest.importorskip(
    "temporalio.openai_agents", reason="`make test-sdks` runs it with requirements/sdks/temporal.txt"
)

from temporalio.client import Client, WorkflowFailureError
from temporalio.worker import Worker

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow, pytest.mark.timeout(120)]
OK = lab_reply("ok")
FRAMEWORKS = ("openai", "pydantic")


def limited_until(seconds: float) -> Step:
    """A rate limit whose delay is a date."""

    def answer(dialect: str, call: LabCall) -> Reply:
        until = format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)
        reply = check(dialect, "rate_limited").dialect.answer("rate_limited")
        assert reply is not None
        wait = Wait("date", seconds, (("retry-after", until),))
        return reply(
            LabCall(call.method, call.path, call.body, stream=call.stream, wait=wait, base=call.base)
        )

    return answer


@pytest.fixture(scope="module")
def lab() -> Iterator[ScriptedLab]:
    """One lab for all runs: the agents learn its address when their module is loaded."""
    patch = pytest.MonkeyPatch()
    logging.disable(logging.CRITICAL)
    with scripted_lab("openai", OK) as running:
        patch.setenv("FAILWELL_LAB_URL", running.url)
        yield running
    logging.disable(logging.NOTSET)
    patch.undo()


async def run(
    framework: str, lab: ScriptedLab, *plugins: Any, queue: str | None = None
) -> str | WorkflowFailureError:
    queue = queue or task_queue()
    flow, plugin, activities = (_openai if framework == "openai" else _pydantic)(lab, framework)
    client = await Client.connect(server().address, plugins=[plugin, *plugins])
    async with Worker(client, task_queue=queue, workflows=[flow], activities=activities):
        try:
            # The queue has this one workflow.
            return await asyncio.wait_for(client.execute_workflow(flow.run, id=queue, task_queue=queue), 60)
        except WorkflowFailureError as error:
            return error


def _openai(lab: ScriptedLab, _framework: str) -> tuple[Any, Any, list[Any]]:
    agents: Any = import_module("agents")
    plugins: Any = import_module("temporalio.openai_agents")
    from openai import AsyncOpenAI

    from tests.sdks.temporal.openai_flows import OpenAIFlow, weather

    # The client repeats by itself, as it does by default.
    sdk = AsyncOpenAI(api_key="sk-lab", base_url=lab.url)
    plugin = plugins.OpenAIAgentsPlugin(
        model_params=plugins.ModelActivityParameters(start_to_close_timeout=timedelta(seconds=30)),
        model_provider=agents.OpenAIProvider(openai_client=sdk, use_responses=False),
    )
    return OpenAIFlow, plugin, [weather]


def _pydantic(_lab: ScriptedLab, framework: str) -> tuple[Any, Any, list[Any]]:
    from pydantic_ai.durable_exec.temporal import PydanticAIPlugin

    from tests.sdks.temporal.pydantic_flows import CatchingFlow, PydanticFlow

    return PydanticFlow if framework == "pydantic" else CatchingFlow, PydanticAIPlugin(), []


@cache
def _loop() -> asyncio.Runner:
    """One event loop for all runs: the client of an agent in a module belongs to it."""
    runner = asyncio.Runner()
    atexit.register(runner.close)
    return runner


def outcome(
    lab: ScriptedLab, framework: str, *steps: Step, queue: str | None = None, **options: Any
) -> tuple[int, str | ErrorReport]:
    """How many requests arrived, and the answer or the report."""
    lab.steps = steps
    lab.requests.clear()
    lab.times.clear()
    result = _loop().run(run(framework, lab, reliability(jitter=lambda: 0.5, **options), queue=queue))
    return len(lab.requests), result if isinstance(result, str) else recover(result)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_quota_is_one_call_a_wrong_key_is_one_and_503_is_three(lab: ScriptedLab, framework: str) -> None:
    for scenario, calls, kind in (
        ("daily_quota", 1, "provider.quota_exhausted"),
        ("bad_key", 1, "provider.auth"),
        ("overloaded", 3, "provider.overloaded"),
    ):
        arrived, report = outcome(lab, framework, lab_reply(scenario))
        assert isinstance(report, ErrorReport), report
        assert (arrived, report.kind) == (calls, kind), (scenario, report)

    arrived, answer = outcome(lab, framework, lab_reply("overloaded"), OK)
    assert (arrived, type(answer)) == (2, str)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_delay_that_is_a_date_is_kept(lab: ScriptedLab, framework: str) -> None:
    waits: list[float | None] = []

    def note(event: AttemptEvent) -> None:
        if isinstance(event, AttemptFailed):
            waits.append(event.attempt.wait)

    arrived, answer = outcome(lab, framework, limited_until(4), OK, watcher=note)

    assert (arrived, type(answer)) == (2, str)
    # Dates have whole seconds, and some time passes until the header is read.
    assert len(waits) == 1
    assert waits[0] is not None
    assert 0 < waits[0] <= 4
    assert lab.times[1] - lab.times[0] >= waits[0]


def test_workflow_code_still_catches_the_exception_of_its_framework(lab: ScriptedLab) -> None:
    arrived, answer = outcome(lab, "pydantic, caught", lab_reply("daily_quota"))

    # The exception is rebuilt from pydantic-ai's own detail; the report comes with it.
    assert (arrived, answer) == (1, "429 provider.quota_exhausted")


async def events_of(workflow: str) -> list[str]:
    """The types of the events in the history of a workflow."""
    client = await Client.connect(server().address)
    events = client.get_workflow_handle(workflow).fetch_history_events()
    return [event.WhichOneof("attributes") or "" async for event in events]


def test_arguments_that_a_model_made_up_are_not_repeated_by_the_engine(lab: ScriptedLab) -> None:
    from tests.sdks.temporal.openai_flows import weather_calls

    queue = task_queue()
    arrived, report = outcome(lab, "openai", calls_tool("weather", {"city": "Oslo"}), OK, queue=queue)
    events = _loop().run(events_of(queue))

    # Temporal's tool checks them in the code of the workflow, which would be run again and again.
    assert isinstance(report, ErrorReport)
    assert (arrived, report.kind, report.retryable) == (1, "internal.bug", False)
    assert weather_calls == []
    assert events.count("activity_task_scheduled_event_attributes") == 1
    assert events.count("workflow_task_failed_event_attributes") == 0
    assert events[-1] == "workflow_execution_failed_event_attributes"
