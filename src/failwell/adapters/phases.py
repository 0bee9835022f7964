"""How far a call got, told by the names of the transport's exceptions.

The HTTP libraries under the SDKs share names but not classes: an `httpx2.ReadTimeout` is no
`httpx.ReadTimeout`. So names are compared, each with its library's, along the chain of causes.
"""

from failwell.adapters.extract import Phase

_HTTPX: dict[str, Phase] = {
    "PoolTimeout": "pool",
    "ConnectTimeout": "connect",
    "ConnectError": "connect",
    "ProxyError": "proxy",
    "UnsupportedProtocol": "connect",
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
"""Errors of a programmer. Under a "connection error" they are a bug in a hook, not a blip."""

REFINES: frozenset[str] = frozenset({"tls", "dns"})
"""Phases that a cause may add to a coarser one above it: a `ConnectError` may be a bad certificate."""


def phase_of(module: str, name: str) -> Phase | None:
    """The phase that one exception class stands for, if it is a transport's."""
    table = PHASES.get(module.partition(".")[0])
    return None if table is None else table.get(name)


def is_certificate(message: str) -> bool:
    """Whether a transport's own message speaks of a certificate; the class often does not."""
    return "CERTIFICATE_VERIFY_FAILED" in message or "certificate verify failed" in message
