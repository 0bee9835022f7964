"""One call with httpx2 itself, to a service that is nobody's model."""

from importlib import import_module
from typing import Any

SDK = "httpx2"
DISTRIBUTION = "httpx2"
DIALECT = "plain"
PROVIDER = "plain"
NOT_HERE: dict[str, str] = {
    "empty_reply stream": "no lines are a valid stream of lines",
    "garbage_json stream": "the stream is handed out as lines, and nobody parses them",
}


def call(url: str, *, stream: bool, timeout: float) -> object:
    library: Any = import_module(SDK)
    with library.Client(timeout=timeout, trust_env=False) as client:
        if stream:
            with client.stream("POST", f"{url}/things", json={"stream": True}) as reply:
                reply.raise_for_status()
                return list(reply.iter_lines())
        reply = client.post(f"{url}/things", json={"stream": False})
        reply.raise_for_status()
        return reply.json()


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    library: Any = import_module(SDK)
    async with library.AsyncClient(timeout=timeout, trust_env=False) as client:
        if stream:
            async with client.stream("POST", f"{url}/things", json={"stream": True}) as reply:
                reply.raise_for_status()
                return [line async for line in reply.aiter_lines()]
        reply = await client.post(f"{url}/things", json={"stream": False})
        reply.raise_for_status()
        return reply.json()
