"""`urllib` and `http.client`: what the standard library's own HTTP raises."""

from failwell.adapters.ask import ask, ask_int
from failwell.adapters.reading import Reading
from failwell.adapters.registry import Table, read
from failwell.adapters.status import kind_of_status
from failwell.fault.facts import ProviderMetadata


def _url_error(error: BaseException) -> Reading | None:
    # A `URLError` is an envelope; what happened is its reason.
    reason = ask(error, "reason")
    return read(reason) if isinstance(reason, BaseException) else None


def _status(error: BaseException) -> Reading:
    # A reply came, so this is no failure of the system below, whatever its base class says.
    status = ask_int(error, "code")
    if status is None:
        return Reading(kind="provider.unknown", rule="urllib.HTTPError", saw="HTTPError")
    return Reading(
        kind=kind_of_status(status),
        rule="urllib.HTTPError",
        basis="status",
        saw=str(status),
        message=f"The service answered with status {status}.",
        provider_metadata=ProviderMetadata(status_code=status),
    )


_LOST = Reading(kind="provider.outcome_unknown", rule="urllib.RemoteDisconnected", saw="RemoteDisconnected")

TABLES: dict[str, Table] = {
    "urllib": {"URLError": _url_error, "HTTPError": _status},
    "http": {
        "RemoteDisconnected": _LOST,
        "IncompleteRead": Reading(
            kind="provider.stream_interrupted", rule="urllib.IncompleteRead", saw="IncompleteRead"
        ),
        "InvalidURL": Reading(kind="validation.input_invalid", rule="urllib.InvalidURL", saw="InvalidURL"),
        "ImproperConnectionState": Reading(
            kind="internal.bug", rule="urllib.ImproperConnectionState", saw="ImproperConnectionState"
        ),
        "HTTPException": Reading(
            kind="provider.outcome_unknown", rule="urllib.HTTPException", saw="HTTPException"
        ),
    },
}
