"""`urllib` and `http.client`: what the standard library's own HTTP raises."""

from failwell.adapters.classification import Classification
from failwell.adapters.facts import Facts
from failwell.adapters.registry import Table, read
from failwell.adapters.sdk_exceptions import adapter
from failwell.errors.foreign_objects import safe_getattr


def _url_error(error: BaseException) -> Classification | None:
    # A `URLError` is an envelope; what happened is its reason.
    reason = safe_getattr(error, "reason")
    return read(reason) if isinstance(reason, BaseException) and reason is not error else None


def _refine(_error: BaseException, facts: Facts) -> None:
    # What it calls a reason is the server's phrase for the status, and no code.
    facts.codes = ()


_LOST = Classification.from_rule(
    kind="provider.outcome_unknown", rule="urllib.RemoteDisconnected", saw="RemoteDisconnected"
)

TABLES: dict[str, Table] = {
    "urllib": {"URLError": _url_error, "HTTPError": adapter(None, "urllib", _refine)},
    "http": {
        "RemoteDisconnected": _LOST,
        "IncompleteRead": Classification.from_rule(
            kind="provider.stream_interrupted", rule="urllib.IncompleteRead", saw="IncompleteRead"
        ),
        "InvalidURL": Classification.from_rule(
            kind="validation.input_invalid", rule="urllib.InvalidURL", saw="InvalidURL"
        ),
        "ImproperConnectionState": Classification.from_rule(
            kind="internal.bug", rule="urllib.ImproperConnectionState", saw="ImproperConnectionState"
        ),
        "HTTPException": Classification.from_rule(
            kind="provider.outcome_unknown", rule="urllib.HTTPException", saw="HTTPException"
        ),
    },
}
