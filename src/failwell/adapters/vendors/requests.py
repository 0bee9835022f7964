"""requests and urllib3 as clients of their own.

Every requests error is an `OSError`, so its own classes speak first. One connection error stands for
DNS, refusals, resets and proxies alike; what it was is in the errors below it.
"""

from failwell.adapters.classification import Classification
from failwell.adapters.facts import Facts
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import adapter, transport
from failwell.errors.foreign_objects import safe_getattr


def _refine(error: BaseException, facts: Facts) -> None:
    if facts.phase is None:
        # urllib3 hands its last error over as an argument or a `reason`, not always as a cause.
        args = safe_getattr(error, "args", default=())
        inner = safe_getattr(error, "reason", default=args[0] if args else None)
        if isinstance(inner, BaseException):
            facts.phase, _ = transport(inner)
            if facts.phase is None:
                nested = safe_getattr(inner, "reason")
                facts.phase = transport(nested)[0] if isinstance(nested, BaseException) else None


def _row(kind: str, name: str, sdk: str) -> Classification:
    return Classification.from_rule(kind=kind, rule=f"{sdk}.{name}", saw=name)


_requests = adapter(None, "requests", _refine)
_urllib3 = adapter(None, "urllib3", _refine)

TABLES: dict[str, Table] = {
    "requests": {
        "RequestException": _requests,
        **{
            name: _row("validation.input_invalid", name, "requests")
            for name in (
                "MissingSchema", "InvalidSchema", "InvalidURL", "InvalidHeader", "URLRequired",
                "UnrewindableBodyError",
            )
        },
        "JSONDecodeError": _row("provider.output_invalid", "JSONDecodeError", "requests"),
        "InvalidJSONError": _row("validation.input_invalid", "InvalidJSONError", "requests"),
        "TooManyRedirects": _row("provider.rejected", "TooManyRedirects", "requests"),
        "StreamConsumedError": _row("internal.bug", "StreamConsumedError", "requests"),
    },
    "urllib3": {
        "HTTPError": _urllib3,
        "LocationValueError": _row("validation.input_invalid", "LocationValueError", "urllib3"),
        "InvalidHeader": _row("validation.input_invalid", "InvalidHeader", "urllib3"),
        "ProxySchemeUnsupported": _row("validation.config_invalid", "ProxySchemeUnsupported", "urllib3"),
        "DecodeError": _row("provider.output_invalid", "DecodeError", "urllib3"),
    },
}  # fmt: skip
