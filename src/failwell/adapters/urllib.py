"""`urllib` and `http.client`: what the standard library's own HTTP raises."""

from failwell.adapters.ask import ask
from failwell.adapters.reading import Reading
from failwell.adapters.registry import Table, read


def _url_error(error: BaseException) -> Reading | None:
    # A `URLError` is an envelope; what happened is its reason.
    reason = ask(error, "reason")
    return read(reason) if isinstance(reason, BaseException) else None


_LOST = Reading(kind="provider.outcome_unknown", rule="urllib.RemoteDisconnected", saw="RemoteDisconnected")

TABLES: dict[str, Table] = {
    "urllib": {"URLError": _url_error},
    "http": {
        "RemoteDisconnected": _LOST,
        "IncompleteRead": Reading(
            kind="provider.stream_interrupted", rule="urllib.IncompleteRead", saw="IncompleteRead"
        ),
        "HTTPException": Reading(kind="provider.outcome_unknown", rule="urllib.HTTPException", saw="HTTPException"),
    },
}
