"""OpenAI Agents: an agent on its chat completions model."""

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import Any

from failwell.integrations.openai_agents import reliability
from tests.sdks.plugins.scenarios import ToolBroke

NAME = "OpenAI Agents"
PACKAGE = "openai-agents"
LINE = "Runner.run(agent, prompt, run_config=reliability())"


def before(url: str) -> Callable[..., str]:
    return _agent(url, None)


def after(url: str, **options: Any) -> Callable[..., str]:
    return _agent(url, reliability(**options))


def _agent(url: str, run_config: Any) -> Callable[..., str]:
    agents: Any = import_module("agents")
    sdk: Any = import_module("openai")
    agents.set_tracing_disabled(True)

    @agents.function_tool
    def weather(city: str) -> str:
        raise ToolBroke

    async def run(stream: bool) -> str:
        async with sdk.AsyncOpenAI(api_key="sk-lab", base_url=url) as client:
            model = agents.OpenAIChatCompletionsModel(model="gpt-4o-mini", openai_client=client)
            agent = agents.Agent(name="lab", model=model, tools=[weather])
            if not stream:
                return (await agents.Runner.run(agent, "hello", run_config=run_config)).final_output
            running = agents.Runner.run_streamed(agent, "hello", run_config=run_config)
            async for _event in running.stream_events():
                continue
            return running.final_output

    def ask(stream: bool = False) -> str:
        return asyncio.run(run(stream))

    return ask
