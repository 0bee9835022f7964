"""Reply headers: read through any library's mapping, and cut down to those that may be kept."""

from collections.abc import Mapping
from typing import Any, cast

SAFE_HEADERS = frozenset(
    {
        "retry-after", "retry-after-ms", "x-should-retry", "ratelimit", "ratelimit-policy", "ratelimit-limit",
        "ratelimit-remaining", "ratelimit-reset", "x-request-id", "request-id", "x-amzn-requestid",
        "x-amzn-errortype", "x-amz-retry-after", "x-error-code", "x-fal-error-type", "x-fal-request-id",
        "apim-request-id", "x-ms-request-id", "x-goog-request-id", "cf-ray", "content-type", "content-length",
        "date", "server", "grpc-status", "grpc-retry-pushback-ms", "traceparent",
    }
)  # fmt: skip
"""Reply headers that may be kept. Any other is dropped, whatever it is called."""
_SAFE_PREFIXES = (
    "x-ratelimit-",
    "anthropic-ratelimit-",
    "x-ms-ratelimit-",
    "ratelimitbysize-",
    "x-ratelimitbysize-",
)
_MOST = 40
_LONGEST = 200


def lower_headers(headers: object) -> dict[str, str]:
    """Any library's headers as a plain dict with lower-case names, for reading only."""
    if headers is None:
        return {}
    try:
        pairs: Any = cast("Any", headers).items()
        return {str(name).lower(): str(value)[:2_000] for name, value in list(pairs)[:200]}
    except Exception:  # noqa: BLE001  (a foreign mapping may raise anything at all)
        return {}


def is_safe_header(name: str) -> bool:
    """Whether a header of this (lower-case) name may be kept."""
    return name in SAFE_HEADERS or name.startswith(_SAFE_PREFIXES)


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The allow-listed ones among lower-cased headers."""
    kept: dict[str, str] = {}
    for name, value in headers.items():
        if is_safe_header(name):
            kept[name] = value[:_LONGEST]
            if len(kept) >= _MOST:
                break
    return kept
