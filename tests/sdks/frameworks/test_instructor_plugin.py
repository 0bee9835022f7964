"""instructor under the plugin: calls that fail are repeated, and answers that do not fit are asked for again."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.calls import Guard
from failwell.calls.attempt_loop import AttemptEvent, AttemptFailed
from failwell.calls.circuit_breaker import BreakerPolicy
from failwell.testing import FakeClock
from tests.sdks.plugins.scripted_lab import Step, calls_tool, lab_reply, scripted_lab

pytest.importorskip("instructor", reason="`make test-sdks` runs it with instructor")

import openai
import pydantic

from failwell.integrations.instructor import reliability

instructor: Any = __import__("instructor")
pytestmark = pytest.mark.filterwarnings("ignore")
FITS, FITS_NOT = calls_tool("Greeting", {"name": "Ada"}), calls_tool("Greeting", {"name": 1})
OVERLOADED = lab_reply("overloaded")


@pytest.fixture(autouse=True)
def _no_log() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class Greeting(pydantic.BaseModel):
    """What the model fills in."""

    name: str


ASKED: dict[str, Any] = {
    "model": "gpt-4o-mini",
    "messages": [{"role": "user", "content": "hello"}],
}


def create(
    url: str, kind: str, parameters: dict[str, Any], schema: type[Greeting] | None = Greeting, **options: Any
) -> Any:
    parameters = {**ASKED, **parameters, "response_model": schema}
    if kind == "plain":
        with openai.OpenAI(api_key="sk-lab", base_url=url) as client:
            return reliability(instructor.from_openai(client), **options).create(**parameters)

    async def run() -> Any:
        async with openai.AsyncOpenAI(api_key="sk-lab", base_url=url) as client:
            return await reliability(instructor.from_openai(client), **options).create(**parameters)

    return asyncio.run(run())


@pytest.mark.parametrize("kind", ["plain", "async"])
@pytest.mark.parametrize(
    ("steps", "calls", "slept", "outcome"),
    [
        ((FITS,), 1, [], None),
        ((FITS_NOT, FITS), 2, [], None),
        ((FITS_NOT,), 3, [], "provider.output_invalid"),
        ((OVERLOADED, FITS_NOT, OVERLOADED, FITS), 4, [1.0, 2.0], None),
        ((FITS_NOT, OVERLOADED), 4, [1.0, 2.0], "provider.overloaded"),
        ((lab_reply("bad_key"),), 1, [], "provider.auth"),
    ],
)
def test_a_call_that_fails_is_repeated_around_the_answers_that_do_not_fit(
    kind: str, steps: tuple[Step, ...], calls: int, slept: list[float], outcome: str | None
) -> None:
    clock, events = FakeClock(), list[AttemptEvent]()

    with scripted_lab("openai", *steps) as lab:
        error: Exception | None = None
        try:
            create(lab.url, kind, {"max_retries": 2}, clock=clock, jitter=lambda: 0.5, watcher=events.append)
        except Exception as raised:
            error = raised

    rows = [event.attempt for event in events if isinstance(event, AttemptFailed)]
    assert outcome == (None if error is None else describe(error).kind)
    assert len(lab.requests) == calls
    assert [row.wait for row in rows] == (slept if error is None else [*slept, None])
    assert clock.slept == slept


def test_a_tenacity_object_of_the_caller_decides_about_everything() -> None:
    tenacity: Any = pytest.importorskip("tenacity")
    errors: Any = pytest.importorskip("instructor.core.exceptions")
    own = tenacity.Retrying(stop=tenacity.stop_after_attempt(2))

    with (
        scripted_lab("openai", OVERLOADED) as lab,
        pytest.raises(errors.InstructorRetryException),
    ):
        create(lab.url, "plain", {"max_retries": own}, clock=FakeClock())

    assert len(lab.requests) == 2


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_call_without_a_schema_is_repeated_too(kind: str) -> None:
    clock = FakeClock()

    with scripted_lab("openai", OVERLOADED, lab_reply("ok")) as lab:
        reply = create(lab.url, kind, {}, schema=None, clock=clock, jitter=lambda: 0.5)

    assert reply.choices[0].message.content
    assert clock.slept == [1.0]


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_an_answer_that_does_not_fit_is_asked_for_again_with_shortened_messages(kind: str) -> None:
    def shrink(_messages: list[Any]) -> list[Any]:
        return [{"role": "user", "content": "hi"}]

    with scripted_lab("openai", lab_reply("context_too_long"), FITS_NOT, FITS) as lab:
        greeting = create(lab.url, kind, {"max_retries": 1}, clock=FakeClock(), shrink=shrink)

    assert greeting.name == "Ada"
    assert [request["messages"][0]["content"] for request in lab.requests] == ["hello", "hi", "hi"]


def test_an_answer_that_does_not_fit_opens_no_breaker() -> None:
    clock = FakeClock()
    guard = Guard(clock=clock, breaker=BreakerPolicy(failures=1, rest=10))
    errors: Any = pytest.importorskip("instructor.core.exceptions")
    for step, opens in ((OVERLOADED, True), (FITS_NOT, False)):
        with scripted_lab("openai", step) as lab, pytest.raises(errors.InstructorRetryException):
            create(lab.url, "plain", {"max_retries": 1}, clock=clock, guard=guard, attempts=1)
        assert ("open" in {state.breaker.position for state in guard.states()}) is opens
        clock.advance(11)


def test_what_is_no_client_of_instructor_is_refused() -> None:
    with openai.OpenAI(api_key="sk-lab") as client, pytest.raises(TypeError, match="a client of instructor"):
        reliability(client)
