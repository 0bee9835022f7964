"""One call with the cohere client: chat of its second API, its own retries off."""

from importlib import import_module
from typing import Any

SDK = "cohere"
DISTRIBUTION = "cohere"
DIALECT = "cohere"
PROVIDER = "cohere"
NOT_HERE: dict[str, str] = {
    "garbage_json stream": "it logs an event that is no JSON, goes on, and the answer comes whole",
}

_ASKED: dict[str, Any] = {
    "model": "command-a-lab",
    "messages": [{"role": "user", "content": "hello"}],
    "request_options": {"max_retries": 0},
}


def call(url: str, *, stream: bool, timeout: float) -> object:
    cohere: Any = import_module("cohere")
    client = cohere.ClientV2(api_key="lab", base_url=url, timeout=timeout)
    return list(client.chat_stream(**_ASKED)) if stream else client.chat(**_ASKED)


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    cohere: Any = import_module("cohere")
    client = cohere.AsyncClientV2(api_key="lab", base_url=url, timeout=timeout)
    if stream:
        return [event async for event in client.chat_stream(**_ASKED)]
    return await client.chat(**_ASKED)
