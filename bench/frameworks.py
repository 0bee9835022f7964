"""What a plugin adds to a model call of an agent that succeeds, in microseconds.

Every framework runs on a stub of its own model, in this process: without anything, with a hook of the framework that does
nothing, and with the plugin, in turns. What the framework itself takes for calling a hook is shown apart. The figures
are those of the best runs in processor time, because a shared machine only ever adds to it. The aim is 50 µs. A
framework that is not installed is left out: run this with the Python of `.sdks/frameworks` or `.sdks/engines` for the others.
"""

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

ROUNDS = 25
CALLS = 40
AIM = 50.0

Run = Callable[[], Awaitable[object]]


class Runs(NamedTuple):
    """One run of an agent that makes one model call."""

    plain: Run
    empty: Run
    """With a hook that does nothing; the plain one where a plugin needs none."""
    plugin: Run


def pydantic_ai() -> Runs:
    from failwell.integrations.pydantic_ai import reliability

    agents: Any = import_module("pydantic_ai")
    base: Any = import_module("pydantic_ai.capabilities").AbstractCapability
    models: Any = import_module("pydantic_ai.models.function")
    messages: Any = import_module("pydantic_ai.messages")
    answer = messages.ModelResponse(parts=[messages.TextPart("done")])

    async def respond(_messages: Any, _info: Any) -> Any:
        return answer

    async def wrap_model_request(_self: Any, _ctx: Any, *, request_context: Any, handler: Any) -> Any:
        return await handler(request_context)

    model = models.FunctionModel(respond)
    empty = type("Empty", (base,), {"wrap_model_request": wrap_model_request})
    plain, hooked, reliable = (
        agents.Agent(model, capabilities=capabilities)
        for capabilities in ([], [empty()], [reliability()])
    )  # fmt: skip
    return Runs(lambda: plain.run("hello"), lambda: hooked.run("hello"), lambda: reliable.run("hello"))


def openai_agents() -> Runs:
    from failwell.integrations.openai_agents import reliability

    agents: Any = import_module("agents")
    items: Any = import_module("openai.types.responses")
    agents.set_tracing_disabled(True)
    text = items.ResponseOutputText(text="done", type="output_text", annotations=[])
    message = items.ResponseOutputMessage(
        id="m", content=[text], role="assistant", status="completed", type="message"
    )

    async def get_response(_self: Any, *_args: Any, **_kwargs: Any) -> Any:
        return agents.ModelResponse(output=[message], usage=agents.Usage(), response_id=None)

    stub = type("Stub", (agents.Model,), {"get_response": get_response, "stream_response": get_response})
    agent, other = (agents.Agent(name="a", model=stub()) for _ in range(2))

    def keep(data: Any) -> Any:
        return data.model_data

    retry = import_module("agents.retry").ModelRetrySettings(max_retries=2, policy=keep)
    settings = agents.ModelSettings(retry=retry)
    empty = agents.RunConfig(call_model_input_filter=keep, model_settings=settings)
    config = reliability()
    run: Any = agents.Runner.run
    return Runs(
        lambda: run(agent, "hello"),
        lambda: run(agent, "hello", run_config=empty),
        lambda: run(other, "hello", run_config=config),
    )


FRAMEWORKS: dict[str, tuple[str, Callable[[], Runs]]] = {
    "Pydantic AI": ("pydantic-ai-slim", pydantic_ai),
    "OpenAI Agents": ("openai-agents", openai_agents),
}
"""Framework → its distribution, and what makes the runs."""


async def measure(runs: Runs) -> list[float]:
    """The best processor time of each run, in microseconds."""
    best = [float("inf")] * len(runs)
    for _ in range(ROUNDS):
        gc.collect()
        gc.disable()
        for place, run in [*enumerate(runs)] * CALLS:
            start = time.thread_time()
            await run()
            best[place] = min(best[place], time.thread_time() - start)
        gc.enable()
    return [seconds * 1e6 for seconds in best]


def main() -> None:
    print("framework                 release       plain µs   empty hook adds µs   plugin adds µs")
    for name, (package, make) in FRAMEWORKS.items():
        try:
            release = version(package)
        except PackageNotFoundError:
            continue
        plain, empty, plugin = asyncio.run(measure(make()))
        mark = "" if plugin - empty <= AIM else f"  over {AIM:g}"
        print(f"{name:25} {release:10} {plain:11.0f} {empty - plain:20.1f} {plugin - empty:16.1f}{mark}")


if __name__ == "__main__":
    main()
