"""LangChain: an agent on its OpenAI chat model."""

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import Any

from failwell.integrations.langchain import reliability
from tests.sdks.plugins.scenarios import ToolBroke

NAME = "LangChain"
PACKAGE = "langchain"
LINE = "create_agent(model, tools, middleware=[reliability()])"


def before(url: str) -> Callable[..., str]:
    return _agent(url)


def after(url: str, **options: Any) -> Callable[..., str]:
    return _agent(url, middleware=[reliability(**options)])


def _agent(url: str, **parameters: Any) -> Callable[..., str]:
    agents: Any = import_module("langchain.agents")
    models: Any = import_module("langchain_openai")
    tools: Any = import_module("langchain_core.tools")

    def weather(city: str) -> str:
        """The weather in a city."""
        raise ToolBroke

    async def run(stream: bool) -> str:
        model = models.ChatOpenAI(model="gpt-4o-mini", api_key="sk-lab", base_url=url)
        agent = agents.create_agent(model, [tools.tool(weather)], **parameters)
        question = {"messages": [("user", "hello")]}
        if not stream:
            return (await agent.ainvoke(question))["messages"][-1].content
        pieces = [piece async for piece, _about in agent.astream(question, stream_mode="messages")]
        return "".join(piece.content for piece in pieces)

    def ask(stream: bool = False) -> str:
        return asyncio.run(run(stream))

    return ask
