"""One call with litellm, which speaks the dialect of Anthropic through httpx; its retries off."""

from typing import Any

from tests.sdks.callers.litellm import close_clients, close_sessions, library

SDK = "litellm"
DISTRIBUTION = "litellm"
DIALECT = "anthropic"
PROVIDER = "anthropic"
NOT_HERE: dict[str, str] = {
    "truncated_stream": "litellm adds the last chunk itself, so a stream that ends early looks whole",
}

_ASKED: dict[str, Any] = {
    "model": "anthropic/claude-sonnet-4-5",
    "messages": [{"role": "user", "content": "hello"}],
    "api_key": "sk-lab",
    "num_retries": 0,
    "max_retries": 0,
}


def call(url: str, *, stream: bool, timeout: float) -> object:
    try:
        reply = library().completion(**_ASKED, api_base=url, timeout=timeout, stream=stream)
        return list(reply) if stream else reply
    finally:
        close_clients()


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    try:
        reply = await library().acompletion(**_ASKED, api_base=url, timeout=timeout, stream=stream)
        return [chunk async for chunk in reply] if stream else reply
    finally:
        await close_sessions()
