"""One call with the openai client: chat completions, its own retries off."""

from importlib import import_module
from typing import Any

SDK = "openai"
DISTRIBUTION = "openai"
DIALECT = "openai"
PROVIDER = "openai"
NOT_HERE: dict[str, str] = {}

_ASKED: dict[str, Any] = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hello"}]}


def call(url: str, *, stream: bool, timeout: float) -> object:
    openai: Any = import_module("openai")
    with openai.OpenAI(api_key="sk-lab", base_url=url, max_retries=0, timeout=timeout) as client:
        reply = client.chat.completions.create(**_ASKED, stream=stream)
        return list(reply) if stream else reply


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    openai: Any = import_module("openai")
    async with openai.AsyncOpenAI(api_key="sk-lab", base_url=url, max_retries=0, timeout=timeout) as client:
        reply = await client.chat.completions.create(**_ASKED, stream=stream)
        return [chunk async for chunk in reply] if stream else reply
