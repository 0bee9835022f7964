"""One search with the linkup client, which never retries."""

from importlib import import_module
from typing import Any

SDK = "linkup"
DISTRIBUTION = "linkup-sdk"
DIALECT = "linkup"
PROVIDER = "linkup"
# A search has no stream.
STREAMS = False
NOT_HERE: dict[str, str] = {}

_ASKED: dict[str, Any] = {"query": "hello", "depth": "standard", "output_type": "sourcedAnswer"}


def call(url: str, *, stream: bool, timeout: float) -> object:
    linkup: Any = import_module("linkup")
    return linkup.LinkupClient(api_key="lab", base_url=url).search(**_ASKED, timeout=timeout)


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    linkup: Any = import_module("linkup")
    return await linkup.LinkupClient(api_key="lab", base_url=url).async_search(**_ASKED, timeout=timeout)
