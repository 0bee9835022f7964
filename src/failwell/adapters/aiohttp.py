"""aiohttp as a client of its own.

A status error has status and headers and never the body. Connection classes say how far the call
got; a total timeout is Python's own `TimeoutError`, and says nothing.
"""

from typing import Any

from failwell.adapters.ask import ask_int
from failwell.adapters.reading import Reading
from failwell.adapters.registry import Table
from failwell.adapters.sdk import doorway


def _refine(error: BaseException, facts: dict[str, Any]) -> None:
    if ask_int(error, "status") == 0:
        facts["status"] = None


_read = doorway(None, "aiohttp", _refine)


def _row(kind: str, name: str) -> Reading:
    return Reading(kind=kind, rule=f"aiohttp.{name}", saw=name)


TABLES: dict[str, Table] = {
    "aiohttp": {
        "ClientError": _read,
        "ContentTypeError": _row("provider.output_invalid", "ContentTypeError"),
        "InvalidURL": _row("validation.input_invalid", "InvalidURL"),
        "NonHttpUrlClientError": _row("validation.input_invalid", "NonHttpUrlClientError"),
        "TooManyRedirects": _row("provider.rejected", "TooManyRedirects"),
        "ServerFingerprintMismatch": _row("provider.tls_failed", "ServerFingerprintMismatch"),
        "WSMessageTypeError": _row("provider.output_invalid", "WSMessageTypeError"),
    }
}
