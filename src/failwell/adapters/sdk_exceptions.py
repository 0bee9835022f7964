"""Reads an SDK's exception without its SDK: status, headers, body, codes, causes.

Attributes are read one by one and each may raise. Nothing is fetched: a body counts only if
the client has read it already. The result is one `Facts`, for the rules to judge.
"""

import errno
from collections.abc import Callable, Mapping
from functools import lru_cache
from http import HTTPStatus
from operator import attrgetter
from typing import Any, cast

from failwell.adapters.classification import Classification, Phase
from failwell.adapters.classify import classify
from failwell.adapters.facts import (
    STRUCTURES,
    Facts,
    Objects,
    as_objects,
    codes_and_message,
    codes_of,
    parse_body,
)
from failwell.adapters.precedence import rules_for
from failwell.adapters.retry_after import wait_of
from failwell.adapters.text.first_look import may_hold_facts
from failwell.adapters.traceback_frames import broke_in_stream
from failwell.errors.causes import below, members, stands_alone
from failwell.errors.foreign_objects import (
    plain_int,
    plain_str,
    safe_attribute,
    safe_call,
    safe_getattr,
    safe_getattrs,
)
from failwell.errors.headers import lower_headers
from failwell.errors.safe_str import is_printable, words_of

_ATTRIBUTES = (
    "response", "body", "status_code", "request_id", "model",
    "error_code", "code", "type", "error_type", "reason",
)  # fmt: skip
"""Attributes that are read from every exception; the codes come last."""
_ELSEWHERE = (
    "raw_response", "http_response", "headers", "response_headers", "details", "status", "http_status",
)  # fmt: skip
"""Attributes that are read from an exception without a `response`."""
_STATUSES = ("status_code", "status", "http_status", "code")
_STATUSES_OF_A_REPLY = ("status_code", "status")
_CODE_ORDER = ("x-fal-error-type", "x-error-code", "x-amzn-errortype")
_CODE_HEADERS = frozenset(_CODE_ORDER)
_REQUEST_IDS = (
    "x-request-id", "request-id", "x-amzn-requestid", "apim-request-id", "x-ms-request-id", "x-goog-request-id",
    "x-fal-request-id", "x-amzn-trace-id", "cf-ray",
)  # fmt: skip
_STREAMS = ("text/event-stream", "application/x-ndjson", "application/vnd.amazon.eventstream")
_PHRASES = frozenset(status.phrase.lower() for status in HTTPStatus)
"""The reason phrases of statuses. They repeat the status and are not codes."""
_NO_HANDLE = frozenset({errno.EMFILE, errno.ENFILE})
_ERRNO = "[Errno "
_MAPPINGS: tuple[type[Any], ...] = (dict, Mapping)
_MOST_TYPES = 1024
_DEEPEST = 8
_LONGEST = 4_000
_new = object.__new__

Refine = Callable[[BaseException, Facts], None]


class SdkAdapter:
    """The adapter of one SDK: reads the facts of an exception and classifies them."""

    def __init__(self, facts: Callable[[BaseException], Facts]) -> None:
        self.facts = facts

    def __call__(self, error: BaseException) -> Classification:
        return classify(self.facts(error))

    def kind_of(self, error: BaseException) -> str:
        """The kind alone, for a cause of which only the kind is shown."""
        facts = self.facts(error)
        return rules_for(facts, wait_of(facts)[0])[0].kind


def adapter(provider: str | None, sdk: str, refine: Refine | None = None) -> SdkAdapter:
    """An adapter for one SDK. `refine` may correct the facts where the SDK differs from others."""

    def read_facts(error: BaseException) -> Facts:
        facts = gather(error, provider, sdk)
        if refine is not None:
            refine(error, facts)
        return facts

    return SdkAdapter(read_facts)


def gather(error: BaseException, provider: str | None, sdk: str) -> Facts:
    """The facts in the usual attributes of an exception."""
    cls = type(error)
    response, body, status, request_id, model, *own = safe_getattrs(error, _ATTRIBUTES)
    held: list[Any] = []
    if response is None:
        # All at once: to ask for one after another would take longer than to judge what is found.
        response, replied, *held = safe_getattrs(error, _ELSEWHERE)
        if response is None:
            response = replied
    if response is None:
        sent, also_sent, details, *statuses = held
        headers = lower_headers(also_sent if sent is None else sent)
        body = as_objects(parse_body(details if body is None else body))
        if type(status) is not int or not 100 <= status < 600:
            status = _first_status([status, *statuses, own[1]])
    else:
        headers = _headers(error, response)
        body = as_objects(body_of(error, response, body))
        if type(status) is not int or not 100 <= status < 600:
            status = status_of(error, response)
    codes: dict[str, None] = {}
    message = ""
    if type(body) is str:
        message = body[:_LONGEST]
        codes = dict.fromkeys(codes_of(body))
    elif body is not None:
        codes, message = codes_and_message(body)
    text = message or text_of(error)
    phase, bug = transport(error, "" if message else text)
    # One by one: to hand them to the class by their names would take longer than to read them.
    facts = _new(Facts)
    facts.provider, facts.sdk = provider, sdk
    facts.exception_type, facts.names = cls.__name__, _names(cls)
    facts.status = status
    facts.codes = _codes(codes, own, headers)
    facts.message = text
    facts.headers, facts.body = headers, body
    facts.phase, facts.cause_bug = phase, bug
    facts.in_stream = (status is not None and status < 400 and _is_stream(headers)) or (
        phase in ("read", "closed") and broke_in_stream(error)
    )
    facts.request_id = (
        plain_str(request_id) or plain_str(safe_attribute(error, "_request_id")) or id_in(headers)
    )
    facts.model = plain_str(model)
    if status is None and phase is None and bug is None and type(body) is not Objects:
        add_text_facts(facts)
    return facts


def add_text_facts(facts: Facts) -> None:
    """Add to an SDK's exception without a reply what its message holds of one."""
    if not may_hold_facts(facts.message):
        return
    from failwell.adapters.text.reader import read_text

    printed_facts = read_text(facts.message)
    facts.status = printed_facts.status
    facts.headers = facts.headers or printed_facts.headers
    facts.codes = tuple(dict.fromkeys((*facts.codes, *printed_facts.codes)))
    if facts.status is None:
        facts.phase = printed_facts.phase
    elif isinstance(printed_facts.body, STRUCTURES):
        facts.body = as_objects(printed_facts.body)


def _headers(error: BaseException, response: object) -> dict[str, str]:
    headers = None if response is None else lower_headers(safe_attribute(response, "headers"))
    return headers or lower_headers(safe_getattr(error, "headers", "response_headers"))


def status_of(error: object, response: object) -> int | None:
    """The HTTP status, wherever the SDK keeps it."""
    found = [] if error is None else safe_getattrs(error, _STATUSES)
    if response is not None:
        found += safe_getattrs(response, _STATUSES_OF_A_REPLY)
    return _first_status(found)


def _first_status(values: list[Any]) -> int | None:
    for value in values:
        if value is not None:
            number = plain_int(value)
            if number is not None and 100 <= number < 600:
                return number
    return None


def _is_stream(headers: Mapping[str, str]) -> bool:
    """Whether a successful reply had begun as a stream, so that the failure came later."""
    return headers.get("content-type", "").startswith(_STREAMS)


def body_of(error: object, response: object, body: Any = None) -> Any:
    """The reply's body, parsed, if the client has read it; `body` is what the error itself holds as such."""
    body = parse_body(safe_getattr(error, "body", "details") if body is None else body)
    if response is None or (body is not None and not isinstance(body, str)):
        return body
    attributes = safe_attribute(response, "__dict__")
    content = attributes.get("_content") if isinstance(attributes, _MAPPINGS) else None
    if body and type(content) is bytes and b"{" not in content and b"[" not in content:
        # A page, which has no more to say than the text of it that the error holds.
        return body
    parsed = parse_body(content)
    # Some SDKs keep only the sentence; the reply beside it still has the code.
    return parsed if isinstance(parsed, STRUCTURES) or (not body and bool(parsed)) else body


def _codes(codes: dict[str, None], own: list[object], headers: Mapping[str, str]) -> tuple[str, ...]:
    """Codes and types from the body, the exception's attributes and the headers, most specific first."""
    for value in own:
        if value is not None and isinstance(value, str) and 0 < len(value) <= 80:
            code = value.strip().lower()
            if code not in _PHRASES:
                codes[code] = None
    if not headers.keys().isdisjoint(_CODE_HEADERS):
        first = [value.partition(":")[0].lower() for name in _CODE_ORDER if (value := headers.get(name))]
        return tuple(dict.fromkeys((*first, *codes)))
    return tuple(codes)


def names_of(error: BaseException) -> tuple[str, ...]:
    """Lower-cased names of the exception's foreign classes, nearest first."""
    return _names(type(error))


@lru_cache(maxsize=_MOST_TYPES)
def _names(cls: type) -> tuple[str, ...]:
    return tuple(above.__name__.lower() for above in cls.__mro__ if above.__module__ != "builtins")


def text_of(error: BaseException) -> str:
    """The exception's own text, for rules to read; it is never passed on."""
    return plain_str(safe_attribute(error, "message"), _LONGEST) or safe_call(words_of, "", error)[:_LONGEST]


def id_in(headers: Mapping[str, str]) -> str | None:
    """The request id among a reply's headers."""
    for name in _REQUEST_IDS if headers else ():
        if headers.get(name):
            return headers[name][:200]
    return None


def transport(error: BaseException, text: str = "") -> tuple[Phase | None, str | None]:
    """How far the call got, from the exception and its causes, and the name of a programming error among them.

    `text` is what `error` itself says, where that has been read already.
    """
    phase: Phase | None = None
    seen: set[int] = set()
    link = error
    while True:
        step = _class_phase(type(link))
        if step is not None:
            if step in ("connect", "closed"):
                step = "handles" if _lacks_handles(link) else refined(step, text or text_of(link))
            if phase is None or step in REFINES or _is_below(link):
                phase = step
        elif type(link) is OSError and phase is not None and link.errno in _NO_HANDLE:
            phase = "handles"
        if stands_alone(link):
            return phase, None
        seen.add(id(link))
        under = below(link)
        inner = members(link) if under is None else under
        if not inner:
            return phase, None
        link, text = inner[0], ""
        if phase is None and _is_bug(link) and _speaks_of_transport(error):
            return None, type(link).__name__
        if id(link) in seen or len(seen) >= _DEEPEST:
            return phase, None


def _lacks_handles(error: BaseException) -> bool:
    """Whether a connection failed for want of a file handle: httpcore keeps the reason as its argument alone."""
    args = safe_attribute(error, "args")
    reason = cast("tuple[object, ...]", args)[0] if type(args) is tuple and args else None
    if type(reason) is not OSError:
        return False
    return reason.errno in _NO_HANDLE or getattr(reason.__cause__, "errno", None) in _NO_HANDLE


@lru_cache(maxsize=_MOST_TYPES)
def _class_phase(cls: type) -> Phase | None:
    for above in cls.__mro__:
        phase = phase_of(above.__module__, above.__name__)
        if phase is not None:
            return phase
    return None


def _is_below(error: BaseException) -> bool:
    # Bridges from aiohttp to httpx call every broken connection a failed connect; aiohttp knows better.
    return type(error).__module__.partition(".")[0] == "aiohttp"


def _is_bug(error: BaseException) -> bool:
    return type(error).__module__ == "builtins" and type(error).__name__ in BUGS


def _speaks_of_transport(error: BaseException) -> bool:
    return any("connect" in name or "timeout" in name for name in names_of(error))


_HTTPX: dict[str, Phase] = {
    "PoolTimeout": "pool",
    "ConnectTimeout": "connect",
    "ConnectError": "connect",
    "ProxyError": "proxy",
    "WriteTimeout": "write",
    "WriteError": "write",
    "ReadTimeout": "read",
    "ReadError": "closed",
    "CloseError": "closed",
    "RemoteProtocolError": "closed",
    "LocalProtocolError": "write",
    "StreamClosed": "closed",
}
_URLLIB3: dict[str, Phase] = {
    "NewConnectionError": "connect",
    "NameResolutionError": "dns",
    "ConnectTimeoutError": "connect",
    "ProxyError": "proxy",
    "SSLError": "tls",
    "ReadTimeoutError": "read",
    "ProtocolError": "closed",
    "IncompleteRead": "closed",
    "InvalidChunkLength": "closed",
}

PHASES: dict[str, dict[str, Phase]] = {
    "httpx": _HTTPX,
    "httpx2": _HTTPX,
    "httpcore": _HTTPX,
    "httpcore2": _HTTPX,
    "h11": {"RemoteProtocolError": "closed", "LocalProtocolError": "write"},
    "urllib3": _URLLIB3,
    "requests": {
        "ConnectTimeout": "connect",
        "ProxyError": "proxy",
        "SSLError": "tls",
        "ReadTimeout": "read",
        "ChunkedEncodingError": "closed",
        "ContentDecodingError": "closed",
    },
    "aiohttp": {
        "ClientConnectorDNSError": "dns",
        "ClientConnectorCertificateError": "tls",
        "ClientConnectorSSLError": "tls",
        "ClientSSLError": "tls",
        "ClientProxyConnectionError": "proxy",
        "ClientHttpProxyError": "proxy",
        "ConnectionTimeoutError": "connect",
        "ClientConnectorError": "connect",
        "SocketTimeoutError": "read",
        "ServerTimeoutError": "read",
        "ServerDisconnectedError": "closed",
        "ClientPayloadError": "closed",
        "ClientConnectionResetError": "closed",
        "ClientOSError": "closed",
        "ContentLengthError": "closed",
        "TransferEncodingError": "closed",
    },
    "botocore": {
        "EndpointConnectionError": "connect",
        "ConnectTimeoutError": "connect",
        "ProxyConnectionError": "proxy",
        "SSLError": "tls",
        "ReadTimeoutError": "read",
        "ConnectionClosedError": "closed",
        "ResponseStreamingError": "closed",
        "IncompleteReadError": "closed",
    },
    "azure": {
        "ServiceRequestTimeoutError": "connect",
        "ServiceRequestError": "connect",
        "ServiceResponseTimeoutError": "read",
        "ServiceResponseError": "closed",
        "IncompleteReadError": "closed",
    },
    "websockets": {
        "InvalidHandshake": "connect",
        "ConnectionClosed": "closed",
        "ConnectionClosedError": "closed",
        "ConnectionClosedOK": "closed",
    },
    "socket": {"gaierror": "dns", "herror": "dns"},
    "ssl": {
        "SSLCertVerificationError": "tls",
        "SSLEOFError": "closed",
        "SSLZeroReturnError": "closed",
    },
    "http": {"RemoteDisconnected": "closed", "IncompleteRead": "closed"},
    "builtins": {
        "ConnectionRefusedError": "connect",
        "ConnectionResetError": "closed",
        "ConnectionAbortedError": "closed",
        "BrokenPipeError": "closed",
    },
}

BUGS: frozenset[str] = frozenset(
    {
        "KeyError", "TypeError", "AttributeError", "NameError", "IndexError", "AssertionError", "ImportError",
        "UnboundLocalError", "NotImplementedError", "ZeroDivisionError", "RecursionError", "UnicodeEncodeError",
    }
)  # fmt: skip
"""Programming errors. As the cause of a "connection error" they are a bug in a hook, not a network failure."""

REFINES: frozenset[str] = frozenset({"tls", "dns", "handles"})
"""Phases that a cause may add to a coarser one above it: a `ConnectError` may be a bad certificate."""


def phase_of(module: str, name: str) -> Phase | None:
    """The phase that an exception class of a transport implies."""
    table = PHASES.get(module.partition(".")[0])
    return None if table is None else table.get(name)


def refined(step: Phase | None, message: str) -> Phase | None:
    """The phase, refined by the message of a transport. Most transports drop the original exception."""
    if is_certificate(message):
        return "tls"
    if step == "connect" and "bytes received" in message:
        # curl has one number for both time-outs, and libraries on top of it one class.
        return "read"
    if step == "closed" and "REFUSED_STREAM" in message:
        # HTTP/2: the server did nothing with the request.
        return "connect"
    return "handles" if message.startswith(_ERRNO) and _is_handles(message) else step


def _is_handles(message: str) -> bool:
    number = message[len(_ERRNO) :].partition("]")[0]
    return number.isdecimal() and len(number) < 6 and int(number) in _NO_HANDLE


def is_certificate(message: str) -> bool:
    """Whether the message of a transport mentions a certificate. Its class often does not."""
    return "CERTIFICATE_VERIFY_FAILED" in message or "certificate verify failed" in message


HOSTS: tuple[tuple[str, str], ...] = (
    (".openai.com", "openai"),
    (".anthropic.com", "anthropic"),
    ("openai.azure.com", "azure-openai"),
    ("cognitiveservices.azure.com", "azure-openai"),
    (".azure.com", "azure"),
    ("bedrock", "bedrock"),
    ("aiplatform.googleapis.com", "google-vertex"),
    ("generativelanguage.googleapis.com", "google"),
    ("openrouter.ai", "openrouter"),
    ("api.deepseek.com", "deepseek"),
    ("api.x.ai", "xai"),
    ("api.perplexity.ai", "perplexity"),
    ("dashscope", "dashscope"),
    ("api.groq.com", "groq"),
    ("api.together.", "together"),
    ("api.mistral.ai", "mistral"),
    ("api.cohere.", "cohere"),
    ("huggingface.co", "huggingface"),
    ("bigmodel.cn", "zhipu"),
    ("api.z.ai", "zhipu"),
    ("integrate.api.nvidia.com", "nvidia"),
    ("api.ai21.com", "ai21"),
    ("api.voyageai.com", "voyageai"),
    ("api.tavily.com", "tavily"),
    ("api.exa.ai", "exa"),
    ("api.firecrawl.dev", "firecrawl"),
    ("api.elevenlabs.io", "elevenlabs"),
    ("api.deepgram.com", "deepgram"),
    ("api.assemblyai.com", "assemblyai"),
    ("api.cloudflare.com", "cloudflare"),
    ("gateway.ai.cloudflare.com", "cloudflare"),
    ("ai-gateway.vercel.sh", "vercel"),
    ("api.portkey.ai", "portkey"),
    ("api.fireworks.ai", "fireworks"),
    ("api.cerebras.ai", "cerebras"),
    ("api.sambanova.ai", "sambanova"),
    ("api.moonshot.", "moonshot"),
    ("api.minimax", "minimax"),
    ("pinecone.io", "pinecone"),
)
"""A part of a host's name → the provider; the first that occurs counts."""
_MOST_HOSTS = 256
_host = attrgetter("request.url.host")


def provider_of(error: object, otherwise: str) -> str | None:
    """The provider, from the request's host; `otherwise` if there is no request."""
    host: object = safe_call(_host, None, error)
    if type(host) is str and host:
        return _provider_at(host)
    request = safe_getattr(error, "request")
    url = None if request is None else safe_getattr(request, "url")
    if url is None:
        return otherwise
    host = safe_getattr(url, "host")
    if type(host) is not str or not host:
        host = safe_call(str, "", url)[:200] if safe_call(is_printable, None, url) else ""
    return _provider_at(host)


@lru_cache(maxsize=_MOST_HOSTS)
def _provider_at(host: str) -> str | None:
    return next((name for part, name in HOSTS if part in host), None)


def in_stream(error: BaseException, facts: Facts) -> None:
    """Note that the reply had begun, if the class implies it."""
    if type(error).__name__ == "APIError" and facts.status is None:
        facts.in_stream = True
