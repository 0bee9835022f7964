"""One call with the anthropic client: messages, its own retries off."""

from importlib import import_module
from typing import Any

SDK = "anthropic"
DISTRIBUTION = "anthropic"
DIALECT = "anthropic"
PROVIDER = "anthropic"
NOT_HERE: dict[str, str] = {}

_ASKED: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "hello"}],
}


def call(url: str, *, stream: bool, timeout: float) -> object:
    anthropic: Any = import_module("anthropic")
    with anthropic.Anthropic(api_key="sk-lab", base_url=url, max_retries=0, timeout=timeout) as client:
        reply = client.messages.create(**_ASKED, stream=stream)
        return list(reply) if stream else reply


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    anthropic: Any = import_module("anthropic")
    async with anthropic.AsyncAnthropic(
        api_key="sk-lab", base_url=url, max_retries=0, timeout=timeout
    ) as client:
        reply = await client.messages.create(**_ASKED, stream=stream)
        return [event async for event in reply] if stream else reply
