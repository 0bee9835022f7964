"""Reading an SDK's exception without its SDK: status, headers, body, codes, causes.

Attributes are asked for one by one and each may refuse. Nothing is fetched: a body counts only if
the client has read it already. What is found goes into an `Extract`, for the rules to judge.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any, cast

from failwell.adapters.ask import ask, ask_int, ask_str
from failwell.adapters.classify import classify
from failwell.adapters.extract import Extract, Phase, codes_of, laid_out, message_of, parse_body
from failwell.adapters.headers import lower_headers
from failwell.adapters.origin import broke_in_stream
from failwell.adapters.phases import BUGS, REFINES, is_certificate, phase_of
from failwell.adapters.reading import Reading
from failwell.adapters.render import render
from failwell.fault.links import below, members

_REQUEST_IDS = (
    "x-request-id", "request-id", "x-amzn-requestid", "apim-request-id", "x-ms-request-id", "x-goog-request-id",
    "x-fal-request-id", "x-amzn-trace-id", "cf-ray",
)  # fmt: skip
_STREAMS = ("text/event-stream", "application/x-ndjson", "application/vnd.amazon.eventstream")
_PHRASES = frozenset(status.phrase.lower() for status in HTTPStatus)
"""What stands beside a status on its line. It repeats the status, and must not count as a code."""
_MOST_TYPES = 1024
_DEEPEST = 8
_LONGEST = 4_000


Refine = Callable[[BaseException, dict[str, Any]], None]


class SdkDoorway:
    """The way in for one SDK: facts gathered, corrected, judged and said."""

    def __init__(self, provider: str | None, sdk: str, refine: Refine | None) -> None:
        self._provider, self._sdk, self._refine = provider, sdk, refine

    def __call__(self, error: BaseException) -> Reading:
        return render(self._facts(error))

    def kind_of(self, error: BaseException) -> str:
        """The kind alone, for a cause of which nothing more is told."""
        return classify(self._facts(error)).rule.kind

    def _facts(self, error: BaseException) -> Extract:
        facts = gather(error, self._provider, self._sdk)
        if self._refine is not None:
            self._refine(error, facts)
        return Extract(**facts)


def doorway(provider: str | None, sdk: str, refine: Refine | None = None) -> SdkDoorway:
    """A doorway for one SDK. `refine` may correct the gathered facts where the SDK has habits of its own."""
    return SdkDoorway(provider, sdk, refine)


def gather(error: BaseException, provider: str | None, sdk: str) -> dict[str, Any]:
    """Everything the usual attributes tell, as keyword arguments for an `Extract`."""
    response = ask(error, "response", "raw_response", "http_response")
    headers = lower_headers(ask(response, "headers") or ask(error, "headers", "response_headers"))
    body = laid_out(body_of(error, response))
    status = status_of(error, response)
    phase, bug = transport(error)
    said = message_of(body)
    return {
        "provider": provider,
        "sdk": sdk,
        "exception_type": type(error).__name__,
        "names": names_of(error),
        "status": status,
        "codes": codes_from(error, body, headers),
        "message": said or text_of(error),
        "headers": headers,
        "body": body,
        "phase": phase,
        "in_stream": is_stream(status, headers) or (phase in ("read", "closed") and broke_in_stream(error)),
        "request_id": ask_str(error, "request_id", "_request_id") or id_in(headers),
        "model": ask_str(error, "model"),
        "cause_bug": bug,
    }


def status_of(error: object, response: object) -> int | None:
    """The HTTP status, wherever the SDK keeps it."""
    for holder, names in (
        (error, ("status_code", "status", "http_status", "code")),
        (response, ("status_code", "status")),
    ):
        for name in names:
            value = ask_int(holder, name)
            if value is not None and 100 <= value < 600:
                return value
    return None


def is_stream(status: int | None, headers: Mapping[str, str]) -> bool:
    """Whether the reply had begun as a stream: what is wrong with it then came later."""
    return status is not None and status < 400 and headers.get("content-type", "").startswith(_STREAMS)


def body_of(error: object, response: object) -> Any:
    """The reply's body, parsed, if the client has read it."""
    body = parse_body(ask(error, "body", "details"))
    if body is not None and not isinstance(body, str):
        return body
    held = ask(response, "__dict__", default={})
    whole = parse_body(cast("Mapping[str, Any]", held).get("_content")) if isinstance(held, Mapping) else None
    # Some SDKs keep only the sentence; the reply beside it still has the code.
    useful = isinstance(whole, dict | list) or (not body and bool(whole))
    return cast("object", whole) if useful else body


def codes_from(error: object, body: object, headers: Mapping[str, str]) -> tuple[str, ...]:
    """Codes and types from the body, the exception's attributes and the headers, most specific first."""
    found = list(codes_of(body))
    for name in ("error_code", "code", "type", "error_type", "reason"):
        value = ask(error, name)
        if isinstance(value, str) and 0 < len(value) <= 80 and value.strip().lower() not in _PHRASES:
            found.append(value.strip().lower())
    for name in ("x-amzn-errortype", "x-error-code", "x-fal-error-type"):
        if headers.get(name):
            found.insert(0, headers[name].partition(":")[0].lower())
    return tuple(dict.fromkeys(found))


def names_of(error: BaseException) -> tuple[str, ...]:
    """Lower-cased names of the exception's foreign classes, nearest first."""
    return _names(type(error))


@lru_cache(maxsize=_MOST_TYPES)
def _names(cls: type) -> tuple[str, ...]:
    return tuple(above.__name__.lower() for above in cls.__mro__ if above.__module__ != "builtins")


def text_of(error: BaseException) -> str:
    """The exception's own text, for rules to read; it is never passed on."""
    said = ask_str(error, "message", limit=_LONGEST)
    if said:
        return said
    try:
        return str(error)[:_LONGEST]
    except BaseException:  # noqa: BLE001  (a foreign `__str__` may raise anything at all)
        return ""


def id_in(headers: Mapping[str, str]) -> str | None:
    """The request id among a reply's headers."""
    return next((headers[name][:200] for name in _REQUEST_IDS if headers.get(name)), None)


def transport(error: BaseException) -> tuple[Phase | None, str | None]:
    """How far the call got, from the exception and its causes, and a bug that hides under it."""
    phase: Phase | None = None
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen and len(seen) < _DEEPEST:
        seen.add(id(link))
        found = _phase(link)
        if found is not None and (phase is None or found in REFINES or _is_below(link)):
            phase = found
        inner = members(link)
        under = below(link)
        link = under[0] if under is not None else inner[0] if inner else None
        if link is not None and phase is None and _is_bug(link) and _speaks_of_transport(error):
            return None, type(link).__name__
    return phase, None


def _phase(error: BaseException) -> Phase | None:
    found = _class_phase(type(error))
    if found in ("connect", "closed") and is_certificate(text_of(error)):
        return "tls"
    return found


@lru_cache(maxsize=_MOST_TYPES)
def _class_phase(cls: type) -> Phase | None:
    for above in cls.__mro__:
        found = phase_of(above.__module__, above.__name__)
        if found is not None:
            return found
    return None


def _is_below(error: BaseException) -> bool:
    # Bridges from aiohttp to httpx call every broken connection a failed connect; aiohttp knows better.
    return type(error).__module__.partition(".")[0] == "aiohttp"


def _is_bug(error: BaseException) -> bool:
    return type(error).__module__ == "builtins" and type(error).__name__ in BUGS


def _speaks_of_transport(error: BaseException) -> bool:
    return any("connect" in name or "timeout" in name for name in names_of(error))
