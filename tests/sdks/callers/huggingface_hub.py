"""One call with huggingface_hub's inference client: chat completions."""

from importlib import import_module
from typing import Any

SDK = "huggingface_hub"
DISTRIBUTION = "huggingface_hub"
DIALECT = "huggingface"
PROVIDER = "huggingface"
NOT_HERE: dict[str, str] = {}

_ASKED: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}], "model": "lab/model"}


def call(url: str, *, stream: bool, timeout: float) -> object:
    hub: Any = import_module("huggingface_hub")
    client = hub.InferenceClient(base_url=url, token="hf_lab", timeout=timeout)
    reply = client.chat_completion(**_ASKED, stream=stream)
    return list(reply) if stream else reply


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    hub: Any = import_module("huggingface_hub")
    async with hub.AsyncInferenceClient(base_url=url, token="hf_lab", timeout=timeout) as client:
        reply = await client.chat_completion(**_ASKED, stream=stream)
        return [chunk async for chunk in reply] if stream else reply
