"""One call with litellm, which speaks OpenAI's dialect through the openai client; its retries off."""

import gc
import os
import sys
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


def close_clients() -> None:
    """Close what litellm keeps for the next call."""
    library().in_memory_llm_clients_cache.flush_cache()
    for client in _left(import_module("httpx").Client):
        client.close()


async def close_sessions() -> None:
    """Likewise, where the next call has another event loop."""
    library().in_memory_llm_clients_cache.flush_cache()
    for one in _left(import_module("httpx").AsyncClient, import_module("aiohttp").ClientSession):
        await (one.aclose if hasattr(one, "aclose") else one.close)()


def _left(*kept: Any) -> list[Any]:
    # Hugging Face keeps one client for the whole process, and it is not ours to close.
    shared = getattr(sys.modules.get("huggingface_hub.utils._http"), "_GLOBAL_CLIENT", None)
    found: list[Any] = [one for one in gc.get_objects() if issubclass(type(one), kept) and one is not shared]
    return [one for one in found if not (one.is_closed if hasattr(one, "is_closed") else one.closed)]
