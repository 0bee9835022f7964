"""One prediction with the replicate client, which sets its timeouts by `wait` and repeats no POST."""

from importlib import import_module
from typing import Any

SDK = "replicate"
DISTRIBUTION = "replicate"
DIALECT = "replicate"
PROVIDER = "replicate"
NOT_HERE: dict[str, str] = {
    "slow_headers stream": "it starts a stream's prediction without any timeout",
    "slow_body stream": "it starts a stream's prediction without any timeout",
}

_MODEL = "lab/greeter"
_INPUT = {"prompt": "hello"}


def call(url: str, *, stream: bool, timeout: float) -> object:
    client = _client(url, timeout)
    if stream:
        return list(client.stream(_MODEL, input=_INPUT))
    return client.run(_MODEL, input=_INPUT, use_file_output=False, wait=timeout)


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    client = _client(url, timeout)
    if stream:
        return [piece async for piece in await client.async_stream(_MODEL, input=_INPUT)]
    return await client.async_run(_MODEL, input=_INPUT, use_file_output=False, wait=timeout)


def _client(url: str, timeout: float) -> Any:
    replicate: Any = import_module("replicate")
    httpx: Any = import_module("httpx")
    return replicate.Client(api_token="r8-lab", base_url=url, timeout=httpx.Timeout(timeout))
