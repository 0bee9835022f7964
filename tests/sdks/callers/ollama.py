"""One chat with the ollama client, which never retries."""

from importlib import import_module
from typing import Any

SDK = "ollama"
DISTRIBUTION = "ollama"
DIALECT = "ollama"
PROVIDER = "ollama"
NOT_HERE: dict[str, str] = {}

_ASKED: dict[str, Any] = {"model": "llama3.2", "messages": [{"role": "user", "content": "hello"}]}


def call(url: str, *, stream: bool, timeout: float) -> object:
    ollama: Any = import_module("ollama")
    reply = ollama.Client(host=url, timeout=timeout).chat(**_ASKED, stream=stream)
    return list(reply) if stream else reply


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    ollama: Any = import_module("ollama")
    reply = await ollama.AsyncClient(host=url, timeout=timeout).chat(**_ASKED, stream=stream)
    return [chunk async for chunk in reply] if stream else reply
