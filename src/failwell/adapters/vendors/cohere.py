"""cohere, of its second API and of the first.

Its text prints every header of the reply, so only the body is read. 498 is a refused token, 499
a call that the caller's side ended.
"""

from failwell.adapters.facts import Facts
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import adapter


def _refine(_: BaseException, facts: Facts) -> None:
    if facts.body is None:
        facts.message = ""


_read = adapter("cohere", "cohere", _refine)

TABLES: dict[str, Table] = {"cohere": {"ApiError": _read, "ParsingError": _read, "CohereError": _read}}
