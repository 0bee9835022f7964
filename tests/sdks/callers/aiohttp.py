"""One call with aiohttp itself, to a service that is nobody's model."""

from importlib import import_module
from typing import Any

SDK = "aiohttp"
DISTRIBUTION = "aiohttp"
DIALECT = "plain"
PROVIDER = "plain"
NOT_HERE: dict[str, str] = {
    "daily_quota": "its error holds no body, and only the body says that it is about a day",
    "rate_limited@prose": "its error holds no body, and so no sentence that tells the wait",
    "empty_reply stream": "no bytes are a valid stream of bytes",
    "garbage_json stream": "the stream is handed out as bytes, and nobody parses them",
}


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    aiohttp: Any = import_module("aiohttp")
    patience = aiohttp.ClientTimeout(total=timeout)
    async with (
        aiohttp.ClientSession(timeout=patience, raise_for_status=True) as client,
        client.post(f"{url}/things", json={"stream": stream}) as reply,
    ):
        return [line async for line in reply.content] if stream else await reply.json()
