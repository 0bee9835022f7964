"""The body of a webhook for a failed run: the caller's own payload, and our keys beside it."""

from collections.abc import Mapping
from typing import Any, Literal

from failwell.errors.faults import Validation
from failwell.errors.report import ErrorReport

RESERVED = ("run_id", "status", "state", "result_url", "error")
"""Keys that say how the run ended; a payload may not speak for it."""


class ReservedKey(Validation, kind="validation.input_invalid"):
    """The caller's payload for the webhook that reports a failure uses a key of the report."""

    keys: tuple[str, ...]

    def summary(self) -> str:
        named = ", ".join(f"`{key}`" for key in self.keys)
        return f"the webhook payload uses {named}, which the run sets itself; rename it"


def check_payload(payload: Mapping[str, Any]) -> None:
    """Refuse a payload with a reserved key. Call it when the webhook is set up, before any run.

    Raises:
        ReservedKey: it names each key.
    """
    taken = tuple(key for key in RESERVED if key in payload)
    if taken:
        raise ReservedKey(keys=taken, fields_invalid=list(taken))


def failure_payload(
    report: ErrorReport | None,
    *,
    run_id: str,
    payload: Mapping[str, Any] | None = None,
    result_url: str | None = None,
    audience: Literal["user", "operator"] = "user",
) -> dict[str, Any]:
    """The JSON body for a failed run; without a report it has no `error` at all.

    Raises:
        ReservedKey: the caller's payload uses one of ours.
    """
    own = {} if payload is None else dict(payload)
    check_payload(own)
    body: dict[str, Any] = {**own, "run_id": run_id, "status": "failed", "state": "failed"}
    if result_url is not None:
        body["result_url"] = result_url
    if report is not None:
        body["error"] = report.view(audience)
    return body
