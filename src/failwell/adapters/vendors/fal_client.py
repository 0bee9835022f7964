"""fal_client: queued and direct runs.

Its message may be a list of validation items. A used-up balance is a 403 that says so in words, and
`error_type` names what the queue's runner met, such as a start that took too long.
"""

from failwell.adapters.classification import Classification
from failwell.adapters.facts import Facts, codes_of, message_of
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import adapter
from failwell.errors.axes import Certainty
from failwell.errors.foreign_objects import safe_getattr, str_attr


def _refine(error: BaseException, facts: Facts) -> None:
    facts.request_id = str_attr(error, "request_id") or facts.request_id
    items = safe_getattr(error, "message")
    if isinstance(items, list | dict):
        body: dict[str, object] = {"detail": items}
        facts.codes = tuple(dict.fromkeys((*codes_of(body), *facts.codes)))
        facts.message = message_of(body)


_read = adapter("fal", "fal_client", _refine)

TABLES: dict[str, Table] = {
    "fal_client": {
        "FalClientError": _read,
        "RealtimeError": _read,
        "MissingCredentialsError": Classification.from_rule(
            kind="provider.auth",
            rule="fal_client.MissingCredentialsError",
            saw="MissingCredentialsError",
            provider="fal",
            certainty=Certainty.NOT_SENT,
        ),
    }
}
