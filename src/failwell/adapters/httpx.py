"""httpx, httpx2 and the connection pools under them.

The two families share names and no class, so one table serves both. What a transport error means
depends on how far the call got, and its class says so.
"""

from failwell.adapters.registry import Table
from failwell.adapters.sdk import doorway


def _table(sdk: str) -> Table:
    read = doorway(None, sdk)
    return {
        "HTTPError": read,
        "InvalidURL": read,
        "StreamError": read,
        # httpcore's roots
        "NetworkError": read,
        "TimeoutException": read,
        "ProtocolError": read,
        "ConnectionNotAvailable": read,
        "ProxyError": read,
        "UnsupportedProtocol": read,
    }


TABLES: dict[str, Table] = {name: _table(name) for name in ("httpx", "httpx2", "httpcore", "httpcore2")}
