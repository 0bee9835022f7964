"""LiteLLM's functions, its router and its callback under the plugin, against the lab."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.calls.streams.timeouts import StreamTimedOut, StreamTimeouts
from failwell.errors.context import ledger_of
from failwell.errors.report import ErrorReport
from failwell.testing import FakeClock
from tests.sdks.callers.litellm import close_clients, close_sessions
from tests.sdks.plugins.scripted_lab import (
    ScriptedLab,
    Step,
    lab_reply,
    rate_limited,
    scripted_lab,
    stalls_in_text,
)

pytest.importorskip("litellm", reason="`make test-sdks` runs it with litellm")
from failwell.integrations.litellm import failure_callback, reliability
from tests.sdks.plugins.frameworks.litellm import library

pytestmark = pytest.mark.filterwarnings("ignore")
OK, OVERLOADED = lab_reply("ok"), lab_reply("overloaded")


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_clients()


def arguments(lab: ScriptedLab) -> dict[str, Any]:
    messages = [{"role": "user", "content": "hello"}]
    return {"model": "openai/gpt-4o-mini", "messages": messages, "api_key": "sk-lab", "api_base": lab.url}


def ask(lab: ScriptedLab, way: str, **options: Any) -> Any:
    """Call the model once, by one of the ways that LiteLLM has."""
    litellm = library()
    if way == "plain":
        return reliability(litellm.completion, **options)(**arguments(lab))
    if way == "stream":
        return [*reliability(litellm.completion, **options)(**arguments(lab), stream=True)]

    async def run() -> Any:
        completion = reliability(litellm.acompletion, **options)
        try:
            if way == "async":
                return await completion(**arguments(lab))
            return [chunk async for chunk in await completion(**arguments(lab), stream=True)]
        finally:
            await close_sessions()

    if way in ("async", "async stream"):
        return asyncio.run(run())
    names = {name: value for name, value in arguments(lab).items() if name != "messages"}
    router = reliability(
        litellm.Router(
            model_list=[{"model_name": "m", "litellm_params": {**names, "num_retries": 5}}], num_retries=4
        ),
        **options,
    )
    return router.completion(model="m", messages=arguments(lab)["messages"])


WAYS = ["plain", "stream", "async", "async stream", "router"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("steps", "calls", "slept", "kind"),
    [
        ((lab_reply("bad_key"),), 1, [], "provider.auth"),
        ((lab_reply("daily_quota"),), 1, [], "provider.quota_exhausted"),
        ((OVERLOADED,), 3, [1.0, 2.0], "provider.overloaded"),
        ((rate_limited(1.5), OK), 2, [1.5], None),
    ],
)
def test_the_calls_that_arrive_are_the_attempts_in_the_ledger(
    way: str, steps: tuple[Step, ...], calls: int, slept: list[float], kind: str | None
) -> None:
    clock = FakeClock()

    with scripted_lab("openai", *steps) as lab:
        error: Exception | None = None
        try:
            ask(lab, way, clock=clock, jitter=lambda: 0.5)
        except Exception as raised:
            error = raised

    assert (len(lab.requests), clock.slept) == (calls, slept)
    assert kind == (None if error is None else describe(error).kind)
    if error is not None:
        ledger = ledger_of(error)
        assert ledger is not None
        assert [row.number for row in ledger.attempts] == [*range(1, calls + 1)]


@pytest.mark.parametrize("way", ["stream", "async stream"])
def test_a_stream_that_stalls_ends_on_time_and_is_not_repeated(way: str) -> None:
    with scripted_lab("openai", stalls_in_text) as lab, pytest.raises(StreamTimedOut) as caught:
        ask(lab, way, stream=StreamTimeouts(idle=0.3))

    assert len(lab.requests) == 1
    assert describe(caught.value).kind == "provider.stream_interrupted"


def test_retries_that_litellm_was_told_of_elsewhere_are_off() -> None:
    litellm = library()
    litellm.num_retries = 7

    with scripted_lab("openai", lab_reply("bad_key")) as lab, pytest.raises(litellm.AuthenticationError):
        reliability(litellm.completion)(**arguments(lab), num_retries=3, max_retries=2)

    assert (litellm.num_retries, len(lab.requests)) == (None, 1)


def test_the_callback_describes_each_failed_call_of_somebody_else() -> None:
    litellm = library()
    reports: list[ErrorReport] = []
    litellm.callbacks = [failure_callback(reports.append)]

    try:
        with scripted_lab("openai", lab_reply("bad_key")) as lab, pytest.raises(litellm.AuthenticationError):
            litellm.completion(**arguments(lab))
    finally:
        litellm.callbacks = []

    assert [(report.kind, report.retryable) for report in reports] == [("provider.auth", False)]


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="a function of litellm or a `Router`"):
        reliability("gpt-4o")
    with pytest.raises(TypeError, match="`on_error` takes a function"):
        failure_callback(None)  # type: ignore[arg-type]
