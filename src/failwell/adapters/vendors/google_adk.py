"""google.adk: a tool's error names the HTTP error that it stands for."""

from http import HTTPStatus

from failwell.adapters.classification import Classification
from failwell.adapters.vendor_tables import carries, inner_of
from failwell.errors.foreign_objects import str_attr

_KINDS: dict[int, str] = {
    400: "tool.input_invalid",
    401: "provider.auth",
    403: "tool.denied",
    404: "tool.not_found",
    408: "tool.timeout",
    429: "provider.rate_limited",
    500: "tool.failed",
    502: "tool.busy",
    503: "tool.busy",
    504: "tool.timeout",
}


def read_tool_error(error: BaseException) -> Classification:
    """The reading of a `ToolExecutionError`: by its HTTP error, or else by what it carries."""
    word = (str_attr(error, "error_type") or "").upper()
    status = int(word) if word.isascii() and word.isdigit() and len(word) == 3 else _status(word)
    kind = _KINDS.get(status or 0)
    rule = "google.adk.ToolExecutionError"
    if kind is None or kind == "tool.failed":
        return carries(inner_of(error), rule, otherwise="tool.failed", saw=word or "ToolExecutionError")
    return Classification.from_rule(kind=kind, rule=rule, basis="code", saw=word)


def _status(name: str) -> int | None:
    return HTTPStatus[name].value if name in HTTPStatus.__members__ else None
