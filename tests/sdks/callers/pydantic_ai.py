"""One run of a pydantic-ai agent on its OpenAI chat model, with the client's own retries off."""

import asyncio
from importlib import import_module
from typing import Any

SDK = "pydantic_ai"
DISTRIBUTION = "pydantic-ai-slim"
DIALECT = "openai"
PROVIDER = "openai"
NOT_HERE: dict[str, str] = {
    "truncated_stream": "pydantic-ai hands out what came and takes any end of a stream for its end",
}


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    openai: Any = import_module("openai")
    async with openai.AsyncOpenAI(api_key="sk-lab", base_url=url, max_retries=0, timeout=timeout) as client:
        agent = _agent(client)
        if not stream:
            return (await agent.run("hello")).response
        async with agent.run_stream("hello") as running:
            _ = [piece async for piece in running.stream_text()]
            return [running.response]


def call(url: str, *, stream: bool, timeout: float) -> object:
    # `run_sync` is a loop around the same coroutine and leaves that loop open.
    return asyncio.run(acall(url, stream=stream, timeout=timeout))


def _agent(client: Any) -> Any:
    models: Any = import_module("pydantic_ai.models.openai")
    providers: Any = import_module("pydantic_ai.providers.openai")
    agents: Any = import_module("pydantic_ai")
    model = models.OpenAIChatModel("gpt-4o-mini", provider=providers.OpenAIProvider(openai_client=client))
    return agents.Agent(model)
