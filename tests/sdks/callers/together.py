"""One call with the together client: chat completions, its own retries off."""

from importlib import import_module
from typing import Any

SDK = "together"
DISTRIBUTION = "together"
DIALECT = "together"
PROVIDER = "together"
NOT_HERE: dict[str, str] = {}

_ASKED: dict[str, Any] = {"model": "lab-model", "messages": [{"role": "user", "content": "hello"}]}


def call(url: str, *, stream: bool, timeout: float) -> object:
    together: Any = import_module("together")
    with together.Together(api_key="sk-lab", base_url=url, max_retries=0, timeout=timeout) as client:
        reply = client.chat.completions.create(**_ASKED, stream=stream)
        return list(reply) if stream else reply


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    together: Any = import_module("together")
    async with together.AsyncTogether(
        api_key="sk-lab", base_url=url, max_retries=0, timeout=timeout
    ) as client:
        reply = await client.chat.completions.create(**_ASKED, stream=stream)
        return [chunk async for chunk in reply] if stream else reply
