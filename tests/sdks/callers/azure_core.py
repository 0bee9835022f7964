"""One call to a deployment on Azure with azure.core itself, the client under every Azure SDK."""

import json
from importlib import import_module
from typing import Any

SDK = "azure.core"
DISTRIBUTION = "azure-core"
DIALECT = "azure-openai"
PROVIDER = "azure"
NOT_HERE: dict[str, str] = {
    "garbage_json stream": "the stream is handed out as bytes, and nobody parses them",
}

_PATH = "/openai/deployments/lab-deployment/chat/completions"
_ASKED: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}]}


def _request(url: str, stream: bool) -> Any:
    rest: Any = import_module("azure.core.rest")
    return rest.HttpRequest("POST", f"{url}{_PATH}", json={**_ASKED, "stream": stream})


def _settings(timeout: float) -> dict[str, Any]:
    # Without policies there are no retries.
    return {"policies": [], "connection_timeout": timeout, "read_timeout": timeout}


def _events(said: bytes) -> list[Any]:
    lines = (line.removeprefix(b"data: ") for line in said.splitlines() if line.startswith(b"data: "))
    return [line.decode() if line == b"[DONE]" else json.loads(line) for line in lines]


def call(url: str, *, stream: bool, timeout: float) -> object:
    core: Any = import_module("azure.core")
    with core.PipelineClient(url, **_settings(timeout)) as client:
        reply = client.send_request(_request(url, stream), stream=stream)
        if stream and reply.status_code >= 400:
            reply.read()
        reply.raise_for_status()
        return _events(b"".join(reply.iter_bytes())) if stream else reply.json()


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    core: Any = import_module("azure.core")
    async with core.AsyncPipelineClient(url, **_settings(timeout)) as client:
        reply = await client.send_request(_request(url, stream), stream=stream)
        if stream and reply.status_code >= 400:
            await reply.read()
        reply.raise_for_status()
        if not stream:
            return reply.json()
        return _events(b"".join([piece async for piece in reply.iter_bytes()]))
