"""linkup: twenty classes without a common base and without fields; the class is what there is.

The status stands in parentheses in the client's own text, which tells two uses of one class apart. The
reply with its headers stays behind in the client's frame.
"""

from dataclasses import replace

from failwell.adapters.classification import Adapter, Classification, Phase
from failwell.adapters.classify import classify
from failwell.adapters.facts import Facts
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import text_of, transport
from failwell.adapters.traceback_frames import reply_in
from failwell.adapters.vendor_tables import cause_of
from failwell.errors.facts import Evidence
from failwell.errors.foreign_objects import safe_getattr
from failwell.errors.headers import lower_headers
from failwell.errors.kind_registry import kind as registered
from failwell.errors.lazy_regex import lazy_regex
from failwell.errors.safe_str import words_of

_STATUS = lazy_regex(r"\((\d{3})\)")


def _entry(kind: str | None) -> Adapter:
    """An adapter for one class; without a kind, the status in the text decides."""

    def read(error: BaseException) -> Classification:
        text = text_of(error)
        match = _STATUS.search(text)
        status = int(match.group(1)) if match else None
        name = type(error).__name__
        headers = lower_headers(safe_getattr(reply_in(error, "linkup"), "headers"))
        facts = Facts(
            provider="linkup", sdk="linkup", exception_type=name, status=status, headers=headers, message=text,
            request_id=headers.get("x-request-id"),
        )  # fmt: skip
        reading = classify(facts)
        if kind is None or (kind, reading.kind) == ("provider.rate_limited", "provider.quota_exhausted"):
            # A class that is the name of a 429 says no more than the status; the reply may.
            return reading
        summary = registered(kind).summary.removesuffix(".")
        at = "" if status is None else f", HTTP {status}"
        return replace(
            reading,
            kind=kind,
            evidence=(Evidence(rule=f"linkup.{name}", basis="type", saw=name),),
            message=f"{summary} (linkup{at}).",
        )

    return read


def _is(kind: str | None, *names: str) -> Table:
    return dict.fromkeys(names, _entry(kind))


def _timeout(error: BaseException) -> Classification:
    cause = cause_of(error)
    phase: Phase | None = None if cause is None else transport(cause)[0]
    return classify(
        Facts(
            provider="linkup",
            sdk="linkup",
            exception_type="LinkupTimeoutError",
            names=("linkuptimeouterror",),
        )
        if phase is None
        else Facts(provider="linkup", sdk="linkup", exception_type="LinkupTimeoutError", phase=phase)
    )


def raised(error: BaseException) -> Classification | None:
    """A builtin exception that came out of linkup's client."""
    if type(error) is not ValueError:
        return None
    facts = Facts(provider="linkup", sdk="linkup", exception_type="ValueError", message=words_of(error)[:500])
    reading = classify(facts)
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
        **_is(None, "LinkupAuthenticationError", "LinkupUnknownError"),
        "LinkupTimeoutError": _timeout,
    }
}  # fmt: skip
