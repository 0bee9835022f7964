"""ollama: a status of -1 is an error inside a stream, headers are gone, and prose has the sizes.

A server that is not there comes as Python's own `ConnectionError`, with httpx's hidden behind it.
"""

from typing import Any

from failwell.adapters.ask import ask_int, ask_str
from failwell.adapters.extract import Extract
from failwell.adapters.reading import Reading
from failwell.adapters.registry import Table
from failwell.adapters.render import render
from failwell.adapters.sdk import doorway, gather


def _refine(error: BaseException, facts: dict[str, Any]) -> None:
    facts["message"] = ask_str(error, "error", limit=4_000) or ""
    facts["in_stream"] = ask_int(error, "status_code") == -1


def raised(error: BaseException) -> Reading | None:
    """A builtin exception that came out of ollama's client."""
    if not isinstance(error, ConnectionError) or error.errno is not None:
        return None
    facts = gather(error, "ollama", "ollama")
    # The client turns only a failed connect into this, and hides the original with `from None`.
    facts["phase"] = "connect"
    return render(Extract(**facts))


TABLES: dict[str, Table] = {
    "ollama": {
        "ResponseError": doorway("ollama", "ollama", _refine),
        "RequestError": Reading(
            kind="validation.input_invalid", rule="ollama.RequestError", saw="RequestError", provider="ollama"
        ),
    }
}
