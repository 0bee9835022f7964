"""DSPy's language model under one retry authority: async calls, streams, tools, saved state."""

import asyncio
import json
from typing import Any

import pytest

from failwell import describe
from failwell.integrations.dspy import reliability
from failwell.testing import FakeClock, lab
from tests.sdks.frameworks.replies import NO_KEY, OVERLOADED, completion, script

dspy: Any = pytest.importorskip("dspy", reason="`make test-sdks` runs it with dspy")

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]
SECRET = "the-text-nobody-may-see"


def a_model(url: str) -> Any:
    return dspy.LM("openai/gpt-4o-mini", api_base=url, api_key="key", cache=False)


def test_plain_and_async_calls_are_repeated_and_the_model_stays_as_it_was() -> None:
    clock = FakeClock()
    with script(OVERLOADED, completion(content="one"), OVERLOADED, completion(content="two")) as server:
        lm = a_model(server.url)
        copy = reliability(lm, clock=clock, jitter=lambda: 0.5)["lm"]
        answers = [copy("hi"), asyncio.run(copy.acall("hi"))]

    assert (answers, clock.slept, len(server.requests)) == ([["one"], ["two"]], [1.0, 1.0], 4)
    assert (lm.num_retries, copy.num_retries, type(lm)) == (3, 0, dspy.LM)


def test_a_copy_and_a_saved_model_are_models_of_dspy() -> None:
    with script(NO_KEY) as server:
        lm = reliability(a_model(server.url))["lm"]
        with pytest.raises(Exception) as caught:
            lm.copy(temperature=0.5)("hi")
    loaded = dspy.BaseLM.load_state(lm.dump_state())

    assert len(describe(caught.value).attempts) == 1
    assert type(loaded) is dspy.LM


def test_what_is_no_language_model_is_refused() -> None:
    with pytest.raises(TypeError, match="`lm` takes a language model"):
        reliability("openai/gpt-4o-mini")


def test_a_tool_is_guarded_once_plain_and_async_and_other_callbacks_stay() -> None:
    seen: list[str] = []

    class Theirs(dspy.utils.callback.BaseCallback):
        def on_tool_end(self, call_id: str, outputs: Any, exception: Any = None) -> None:
            seen.append(str(outputs))

    def plain(city: str) -> str:
        raise PermissionError(13, SECRET)

    async def on_loop(city: str) -> str:
        raise PermissionError(13, SECRET)

    first, second = dspy.Tool(plain), dspy.Tool(on_loop)
    with dspy.context(callbacks=[Theirs()]), dspy.context(**reliability(a_model("http://127.0.0.1:1"))):
        results = [first(city="Oslo"), first(city="Oslo"), asyncio.run(second.acall(city="Oslo"))]

    assert [json.loads(result)["kind"] for result in results] == ["tool.failed"] * 3
    assert seen == results
    assert SECRET not in "".join(results)


def test_the_delay_of_a_server_is_kept_by_both_engines() -> None:
    waits: dict[str, list[float]] = {}
    with lab() as fake:
        for engine in ("auto", "litellm"):
            clock = FakeClock()
            url = fake.url("openai", "rate_limited@seconds")
            lm = dspy.LM("openai/gpt-4o-mini", api_base=url, api_key="key", cache=False, engine=engine)
            with pytest.raises(Exception, match="Rate limit"):
                reliability(lm, clock=clock, attempts=2)["lm"]("hi")
            waits[engine] = clock.slept

    assert waits["litellm"] == waits["auto"]
    assert len(waits["auto"]) == 1
