"""One call with litellm, which speaks OpenAI's dialect through the openai client; its retries off."""

import os
from importlib import import_module
from typing import Any

SDK = "litellm"
DISTRIBUTION = "litellm"
DIALECT = "openai"
PROVIDER = "openai"
NOT_HERE: dict[str, str] = {
    "truncated_stream": "litellm adds the last chunk itself, so a stream that ends early looks whole",
}

_ASKED: dict[str, Any] = {
    "model": "openai/gpt-4o-mini",
    "messages": [{"role": "user", "content": "hello"}],
    "api_key": "sk-lab",
    "num_retries": 0,
    "max_retries": 0,
}


def library() -> Any:
    """litellm, kept from fetching its price list while it is imported."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    return import_module("litellm")


def call(url: str, *, stream: bool, timeout: float) -> object:
    reply = library().completion(**_ASKED, api_base=url, timeout=timeout, stream=stream)
    return list(reply) if stream else reply


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    reply = await library().acompletion(**_ASKED, api_base=url, timeout=timeout, stream=stream)
    return [chunk async for chunk in reply] if stream else reply
