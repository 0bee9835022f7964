"""tenacity: a `RetryError` is what its last attempt was."""

from failwell.adapters.classification import Classification
from failwell.adapters.registry import Table
from failwell.adapters.vendor_tables import carries, cause_of, last_attempt


def _retried(error: BaseException) -> Classification:
    inner = last_attempt(error) or cause_of(error)
    if inner is None:
        # The last attempt returned something that the caller's own predicate refused.
        return Classification.from_rule(kind="retry.exhausted", rule="tenacity.RetryError", saw="RetryError")
    return carries(inner, "tenacity.RetryError")


TABLES: dict[str, Table] = {
    "tenacity": {
        "RetryError": _retried,
        "TryAgain": Classification.from_rule(
            kind="worker.transient", rule="tenacity.TryAgain", saw="TryAgain"
        ),
    }
}
