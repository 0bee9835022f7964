"""One run with fal_client: the direct endpoint, its own retries off."""

from importlib import import_module
from typing import Any

SDK = "fal_client"
DISTRIBUTION = "fal_client"
DIALECT = "fal"
PROVIDER = "fal"
NOT_HERE: dict[str, str] = {
    "missing_model stream": "its stream reader refuses a failed reply without reading what it says",
    "empty_balance stream": "likewise, and a 403 alone is a missing permission",
    "content_refused_in stream": "likewise, and a 422 alone is a bad request",
}

_APP = "fal-ai/lab"
_ASKED: dict[str, Any] = {"prompt": "hello"}


def _client(name: str, url: str) -> Any:
    # The client takes neither an address nor a number of tries; both are constants of its module.
    module: Any = import_module("fal_client.client")
    module.RUN_URL_FORMAT = f"{url}/"
    module.MAX_ATTEMPTS = 1
    return getattr(import_module("fal_client"), name)(key="lab")


def call(url: str, *, stream: bool, timeout: float) -> object:
    client = _client("SyncClient", url)
    if stream:
        return list(client.stream(_APP, _ASKED, timeout=timeout))
    return client.run(_APP, _ASKED, timeout=timeout)


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    client = _client("AsyncClient", url)
    if stream:
        return [event async for event in client.stream(_APP, _ASKED, timeout=timeout)]
    return await client.run(_APP, _ASKED, timeout=timeout)
