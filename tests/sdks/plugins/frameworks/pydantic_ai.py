"""Pydantic AI: an agent on its OpenAI chat model."""

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import Any

from failwell.integrations.pydantic_ai import reliability
from tests.sdks.plugins.scenarios import ToolBroke

NAME = "Pydantic AI"
PACKAGE = "pydantic-ai-slim"
LINE = "Agent(model, capabilities=[reliability()])"


def before(url: str) -> Callable[..., str]:
    return _agent(url)


def after(url: str, **options: Any) -> Callable[..., str]:
    return _agent(url, capabilities=[reliability(**options)])


def _agent(url: str, **parameters: Any) -> Callable[..., str]:
    agents: Any = import_module("pydantic_ai")
    models: Any = import_module("pydantic_ai.models.openai")
    providers: Any = import_module("pydantic_ai.providers.openai")
    sdk: Any = import_module("openai")

    async def run(stream: bool) -> str:
        async with sdk.AsyncOpenAI(api_key="sk-lab", base_url=url) as client:
            provider = providers.OpenAIProvider(openai_client=client)
            agent = agents.Agent(models.OpenAIChatModel("gpt-4o-mini", provider=provider), **parameters)

            @agent.tool_plain
            def weather(city: str) -> str:
                raise ToolBroke

            if not stream:
                return (await agent.run("hello")).output
            async with agent.run_stream("hello") as running:
                return await running.get_output()

    def ask(stream: bool = False) -> str:
        return asyncio.run(run(stream))

    return ask
