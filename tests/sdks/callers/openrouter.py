"""One call to OpenRouter, which is spoken to with the openai client."""

from importlib import import_module
from typing import Any

SDK = "openai"
DISTRIBUTION = "openai"
DIALECT = "openrouter"
PROVIDER = "openrouter"
NOT_HERE: dict[str, str] = {}

_ASKED: dict[str, Any] = {
    "model": "meta-llama/llama-3.3-70b-instruct",
    "messages": [{"role": "user", "content": "hello"}],
}


def call(url: str, *, stream: bool, timeout: float) -> object:
    openai: Any = import_module("openai")
    with openai.OpenAI(api_key="sk-or-lab", base_url=url, max_retries=0, timeout=timeout) as client:
        reply = client.chat.completions.create(**_ASKED, stream=stream)
        return list(reply) if stream else reply


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    openai: Any = import_module("openai")
    async with openai.AsyncOpenAI(
        api_key="sk-or-lab", base_url=url, max_retries=0, timeout=timeout
    ) as client:
        reply = await client.chat.completions.create(**_ASKED, stream=stream)
        return [chunk async for chunk in reply] if stream else reply
