"""One call with the mistralai client: chat completions, its own retries off."""

from importlib import import_module
from typing import Any

SDK = "mistralai"
DISTRIBUTION = "mistralai"
DIALECT = "mistral"
PROVIDER = "mistral"
NOT_HERE: dict[str, str] = {}

_ASKED: dict[str, Any] = {"model": "mistral-small-latest", "messages": [{"role": "user", "content": "hello"}]}


def _client(url: str, timeout: float) -> Any:
    # Up to version 1 the client is at the top of the package.
    package: Any = import_module("mistralai")
    made = getattr(package, "Mistral", None) or import_module("mistralai.client").Mistral
    return made(api_key="lab", server_url=url, timeout_ms=round(timeout * 1000))


def call(url: str, *, stream: bool, timeout: float) -> object:
    with _client(url, timeout) as client:
        if not stream:
            return client.chat.complete(**_ASKED)
        with client.chat.stream(**_ASKED) as events:
            return list(events)


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    async with _client(url, timeout) as client:
        if not stream:
            return await client.chat.complete_async(**_ASKED)
        async with await client.chat.stream_async(**_ASKED) as events:
            return [event async for event in events]
