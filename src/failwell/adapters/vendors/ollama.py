"""ollama: a status of -1 is an error inside a stream, and prose has the sizes.

The reply's headers are only on httpx's exception, which is hidden behind this one with `from None`. A
server that is not there comes as Python's own `ConnectionError`, hiding another in the same way.
"""

from failwell.adapters.classification import Classification
from failwell.adapters.classify import classify
from failwell.adapters.facts import Facts
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import adapter, gather
from failwell.errors.foreign_objects import int_attr, safe_getattr, str_attr
from failwell.errors.headers import lower_headers


def _refine(error: BaseException, facts: Facts) -> None:
    facts.message = str_attr(error, "error", limit=4_000) or ""
    facts.headers = lower_headers(safe_getattr(safe_getattr(error.__context__, "response"), "headers"))
    if int_attr(error, "status_code") == -1:
        # What breaks inside a stream would have been a 500 before it.
        facts.in_stream, facts.status = True, 500


def raised(error: BaseException) -> Classification | None:
    """A builtin exception that came out of ollama's client."""
    if not isinstance(error, ConnectionError) or error.errno is not None:
        return None
    facts = gather(error, "ollama", "ollama")
    # The client turns only a failed connect into this, and hides the original with `from None`.
    facts.phase = "connect"
    return classify(facts)


TABLES: dict[str, Table] = {
    "ollama": {
        "ResponseError": adapter("ollama", "ollama", _refine),
        "RequestError": Classification.from_rule(
            kind="validation.input_invalid", rule="ollama.RequestError", saw="RequestError", provider="ollama"
        ),
    }
}
