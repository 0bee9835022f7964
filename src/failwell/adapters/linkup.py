"""linkup: twenty classes without a common base and without fields; the class is what there is.

The status stands in parentheses in the client's own text, which tells two uses of one class apart.
"""

import re

from failwell.adapters.envelope import cause_of
from failwell.adapters.extract import Extract, Phase
from failwell.adapters.reading import Reading
from failwell.adapters.registry import Table
from failwell.adapters.render import render
from failwell.adapters.sdk import text_of, transport
from failwell.adapters.status import kind_of_status
from failwell.fault.facts import ProviderMetadata

_STATUS = re.compile(r"\((\d{3})\)")


def _is(kind: str, *names: str) -> Table:
    return {name: _read(kind, name) for name in names}


def _read(kind: str, name: str) -> Reading:
    return Reading(
        kind=kind,
        rule=f"linkup.{name}",
        saw=name,
        provider="linkup",
        provider_metadata=ProviderMetadata(sdk="linkup", exception_type=name),
    )


def _by_status(name: str, kinds: dict[int, str], otherwise: str) -> "Table":
    def read(error: BaseException) -> Reading:
        found = _STATUS.search(text_of(error))
        status = int(found.group(1)) if found else None
        kind = otherwise if status is None else kinds.get(status) or kind_of_status(status)
        return Reading(
            kind=kind,
            rule=f"linkup.{name}",
            basis="type" if status is None else "status",
            saw=name if status is None else f"HTTP {status}",
            provider="linkup",
            provider_metadata=ProviderMetadata(sdk="linkup", exception_type=name, status_code=status),
        )

    return {name: read}


def _timeout(error: BaseException) -> Reading:
    cause = cause_of(error)
    phase: Phase | None = None if cause is None else transport(cause)[0]
    return render(
        Extract(
            provider="linkup",
            sdk="linkup",
            exception_type="LinkupTimeoutError",
            names=("linkuptimeouterror",),
        )
        if phase is None
        else Extract(provider="linkup", sdk="linkup", exception_type="LinkupTimeoutError", phase=phase)
    )


def raised(error: BaseException) -> Reading | None:
    """A builtin exception that came out of linkup's client."""
    if type(error) is not ValueError:
        return None
    said = Extract(provider="linkup", sdk="linkup", exception_type="ValueError", message=str(error)[:500])
    reading = render(said)
    return reading if reading.kind == "provider.auth" else None


TABLES: dict[str, Table] = {
    "linkup": {
        **_is("provider.quota_exhausted", "LinkupInsufficientCreditError", "LinkupBudgetLimitExceededError",
              "LinkupPaymentRequiredError"),
        **_is("provider.rate_limited", "LinkupTooManyRequestsError"),
        **_is("provider.overloaded", "LinkupTasksQueueLimitExceededError"),
        **_is("provider.permission", "LinkupIpNotWhitelistedError"),
        **_is("provider.capability_missing", "LinkupUnsupportedTaskTypeError"),
        **_is("provider.output_invalid", "LinkupNoResultError"),
        **_is("provider.bad_request", "LinkupInvalidRequestError", "LinkupTaskNotFoundError",
              "LinkupFetchResponseTooLargeError", "LinkupFetchTargetNotFoundError",
              "LinkupFetchUnsupportedContentTypeError", "LinkupFetchUrlIsFileError"),
        # The page that was to be fetched is not the provider, but it may answer the next time.
        **_is("provider.unavailable", "LinkupFailedFetchError", "LinkupFetchTargetUnreachableError"),
        **_is("provider.outcome_unknown", "LinkupRequestDeadlineExceededError"),
        **_by_status("LinkupAuthenticationError", {}, "provider.auth"),
        **_by_status("LinkupUnknownError", {404: "provider.rejected"}, "provider.unavailable"),
        "LinkupTimeoutError": _timeout,
    }
}  # fmt: skip
