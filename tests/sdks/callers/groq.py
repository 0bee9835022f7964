"""One call with the groq client: chat completions, its own retries off."""

from importlib import import_module
from typing import Any

SDK = "groq"
DISTRIBUTION = "groq"
DIALECT = "groq"
PROVIDER = "groq"
NOT_HERE: dict[str, str] = {}

_ASKED: dict[str, Any] = {
    "model": "llama-3.3-70b-versatile",
    "messages": [{"role": "user", "content": "hello"}],
}


def call(url: str, *, stream: bool, timeout: float) -> object:
    groq: Any = import_module("groq")
    with groq.Groq(api_key="sk-lab", base_url=url, max_retries=0, timeout=timeout) as client:
        reply = client.chat.completions.create(**_ASKED, stream=stream)
        return list(reply) if stream else reply


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    groq: Any = import_module("groq")
    async with groq.AsyncGroq(api_key="sk-lab", base_url=url, max_retries=0, timeout=timeout) as client:
        reply = await client.chat.completions.create(**_ASKED, stream=stream)
        return [chunk async for chunk in reply] if stream else reply
