"""One call to a deployment on Azure, with the openai package's own client for it."""

from importlib import import_module
from typing import Any

SDK = "openai"
DISTRIBUTION = "openai"
DIALECT = "azure-openai"
PROVIDER = "azure-openai"
NOT_HERE: dict[str, str] = {}

_ASKED: dict[str, Any] = {"model": "lab-deployment", "messages": [{"role": "user", "content": "hello"}]}


def _settings(url: str, timeout: float) -> dict[str, Any]:
    return {
        "azure_endpoint": url,
        "api_key": "lab",
        "api_version": "2024-10-21",
        "max_retries": 0,
        "timeout": timeout,
    }


def call(url: str, *, stream: bool, timeout: float) -> object:
    openai: Any = import_module("openai")
    with openai.AzureOpenAI(**_settings(url, timeout)) as client:
        reply = client.chat.completions.create(**_ASKED, stream=stream)
        return list(reply) if stream else reply


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    openai: Any = import_module("openai")
    async with openai.AsyncAzureOpenAI(**_settings(url, timeout)) as client:
        reply = await client.chat.completions.create(**_ASKED, stream=stream)
        return [chunk async for chunk in reply] if stream else reply
