"""httpx, httpx2 and the connection pools under them.

The two families share names and no class, so one table serves both. What a transport error means
depends on how far the call got, and its class says so.
"""

from failwell.adapters.classification import Classification
from failwell.adapters.facts import Facts
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import adapter
from failwell.adapters.traceback_frames import unparsed_reply
from failwell.errors.headers import lower_headers


def _refine(error: BaseException, facts: Facts) -> None:
    """A reader of events that was answered with something else; the reply is in its hands, not in the error."""
    if type(error).__name__ == "SSEError" and (reply := unparsed_reply(error)) is not None:
        facts.status = reply.status
        facts.headers = lower_headers(reply.headers)
        facts.message = ""


def _table(sdk: str) -> Table:
    read = adapter(None, sdk, _refine)
    return {
        "HTTPError": read,
        "InvalidURL": read,
        "StreamError": read,
        "CookieConflict": Classification.from_rule(
            kind="internal.bug", rule=f"{sdk}.CookieConflict", saw="CookieConflict"
        ),
        # httpcore's roots
        "NetworkError": read,
        "TimeoutException": read,
        "ProtocolError": read,
        "ConnectionNotAvailable": read,
        "ProxyError": read,
        "UnsupportedProtocol": read,
    }


TABLES: dict[str, Table] = {name: _table(name) for name in ("httpx", "httpx2", "httpcore", "httpcore2")}
