"""One call with the google-genai client: generate content, its own retries off."""

from importlib import import_module
from typing import Any

SDK = "google.genai"
DISTRIBUTION = "google-genai"
DIALECT = "google-genai"
PROVIDER = "google"
NOT_HERE: dict[str, str] = {}

_ASKED: dict[str, Any] = {"model": "gemini-lab", "contents": "hello"}


def _client(url: str, timeout: float) -> Any:
    genai: Any = import_module("google.genai")
    return genai.Client(api_key="lab", http_options={"base_url": url, "timeout": round(timeout * 1000)})


def call(url: str, *, stream: bool, timeout: float) -> object:
    with _client(url, timeout) as client:
        if stream:
            return list(client.models.generate_content_stream(**_ASKED))
        return client.models.generate_content(**_ASKED)


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    async with _client(url, timeout).aio as client:
        if stream:
            return [chunk async for chunk in await client.models.generate_content_stream(**_ASKED)]
        return await client.models.generate_content(**_ASKED)
