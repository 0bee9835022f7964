"""What an HTTP status alone says, when neither a code nor a vendor's rule says more."""

_BY_STATUS: dict[int, str] = {
    400: "provider.bad_request",
    401: "provider.auth",
    402: "provider.quota_exhausted",
    403: "provider.permission",
    408: "provider.outcome_unknown",
    409: "provider.unavailable",
    413: "provider.context_too_long",
    422: "provider.bad_request",
    425: "provider.unavailable",
    429: "provider.rate_limited",
    503: "provider.overloaded",
    504: "provider.outcome_unknown",
    524: "provider.outcome_unknown",
    529: "provider.overloaded",
}


def kind_of_status(status: int) -> str:
    """The kind for a reply of which nothing but its status is known."""
    known = _BY_STATUS.get(status)
    if known is not None:
        return known
    if status >= 500:
        return "provider.unavailable"
    return "provider.rejected" if status >= 400 else "provider.unknown"
