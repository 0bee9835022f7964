"""One call to Claude on Vertex AI, with the anthropic package's own client for it."""

from importlib import import_module
from typing import Any

SDK = "anthropic"
DISTRIBUTION = "anthropic"
DIALECT = "anthropic"
PROVIDER = "google-vertex"
NEEDS = ("google.auth",)
NOT_HERE: dict[str, str] = {}

_ASKED: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "hello"}],
}


def _client(name: str, url: str, timeout: float) -> Any:
    made: Any = getattr(import_module("anthropic"), name)
    return made(
        access_token="lab", project_id="lab", region="us-east5", base_url=url, max_retries=0, timeout=timeout
    )


def call(url: str, *, stream: bool, timeout: float) -> object:
    with _client("AnthropicVertex", url, timeout) as client:
        reply = client.messages.create(**_ASKED, stream=stream)
        return list(reply) if stream else reply


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    async with _client("AsyncAnthropicVertex", url, timeout) as client:
        reply = await client.messages.create(**_ASKED, stream=stream)
        return [event async for event in reply] if stream else reply
