"""Error classes of Java, .NET, Node, Ruby and their common libraries by name, and the sentences of Go and Rust.

Python's classes are in the vendors' tables. A class of a transport says how far the call got; the others name a kind.
"""

import re
import sys

from failwell.adapters.classification import Phase
from failwell.adapters.protocols.system_errors import KIND_BY_NAME
from failwell.adapters.sdk_exceptions import PHASES
from failwell.errors.lazy_regex import lazy_regex

_PHASES_BY_NAME: dict[Phase, str] = {
    "dns": "UnknownHostException UnresolvedAddressException DnsNameResolverException EAI_AGAIN",
    "connect": (
        "ConnectException ConnectTimeoutException HttpConnectTimeoutException HttpHostConnectException NoRouteToHostException "
        "java.nio.channels.ClosedChannelException PortUnreachableException Net::OpenTimeout OpenTimeout ConnectTimeoutError "
        "Faraday::ConnectionFailed ConnectionFailed HttpConnectException SQLNonTransientConnectionException PoolInitializationException"
    ),
    "pool": "ConnectionPoolTimeoutException PoolAcquireTimeoutException SQLTransientConnectionException",
    "tls": (
        "SSLHandshakeException SSLPeerUnverifiedException javax.net.ssl.SSLException CertificateException CertPathValidatorException CertPathBuilderException "
        "CertificateExpiredException SunCertPathBuilderException System.Security.Authentication.AuthenticationException"
    ),
    "read": (
        "SocketTimeoutException HttpTimeoutException ReadTimeoutException ReadTimeout WriteTimeoutException AsyncRequestTimeoutException "
        "RequestTimeoutException ResponseTimeoutException SQLTimeoutException"
    ),
    "closed": (
        "NoHttpResponseException ConnectionClosedException PrematureCloseException StreamResetException ConnectionShutdownException "
        "ConnectionResetException RemotelyClosedException PrematureChannelClosureException HttpIOException CommunicationsException SQLRecoverableException ConnectionResetError RemoteDisconnected TruncatedChunkException"
    ),
}
_PHASES: dict[str, Phase] = {
    **{name: phase for table in reversed(PHASES.values()) for name, phase in table.items()},
    **{name: phase for phase, names in _PHASES_BY_NAME.items() for name in names.split()},
}
"""Name of a class → how far the call got. Python's transports are here too, since messages print them without modules."""
_KINDS_BY_NAME: dict[str, str] = {
    "internal.bug": (
        "NullPointerException NullReferenceException ClassCastException InvalidCastException ArrayIndexOutOfBoundsException "
        "IndexOutOfBoundsException StringIndexOutOfBoundsException IndexOutOfRangeException ConcurrentModificationException "
        "IllegalStateException InvalidOperationException ArithmeticException DivideByZeroException NegativeArraySizeException "
        "UnsupportedOperationException NotImplementedException NotSupportedException NoSuchMethodError NoSuchFieldError AbstractMethodError "
        "StackOverflowError ReferenceError NoMethodError java.util.NoSuchElementException KeyNotFoundException ObjectDisposedException "
        "ArrayStoreException IllegalMonitorStateException panic PanicException"
    ),
    "validation.input_invalid": (
        "IllegalArgumentException ArgumentException ArgumentNullException ArgumentOutOfRangeException NumberFormatException FormatException "
        "DateTimeParseException InvalidFormatException ArgumentError"
    ),
    "validation.shape_invalid": (
        "JsonParseException JsonMappingException JsonProcessingException MismatchedInputException JsonSyntaxException JsonException "
        "JsonReaderException JSON::ParserError XmlException SAXParseException JSONException"
    ),
    "validation.path_not_found": "FileNotFoundException NoSuchFileException DirectoryNotFoundException Errno::ENOENT",
    "validation.path_denied": "UnauthorizedAccessException java.nio.file.AccessDeniedException",
    "resource.system_memory": "OutOfMemoryError OutOfMemoryException InsufficientMemoryException NoMemoryError",
    "cancel.run": (
        "KeyboardInterrupt InterruptedException CancellationException OperationCanceledException TaskCanceledException AbortError CanceledError"
    ),
    "provider.outcome_unknown": (
        "java.util.concurrent.TimeoutException System.TimeoutException TimeoutException Timeout::Error TimeoutError AsyncTimeoutException"
    ),
    "extension.dependency_missing": (
        "ClassNotFoundException NoClassDefFoundError UnsatisfiedLinkError DllNotFoundException LoadError TypeLoadException "
        "UnsupportedClassVersionError BadImageFormatException ExceptionInInitializerError"
    ),
    "worker.crashed": "AccessViolationException StackOverflowException VirtualMachineError java.lang.InternalError",
    # JDBC 4, the subclasses of SQLException: https://docs.oracle.com/en/java/javase/21/docs/api/java.sql
    "provider.bad_request": "SQLIntegrityConstraintViolationException SQLSyntaxErrorException SQLDataException SQLFeatureNotSupportedException BatchUpdateException",
    "provider.auth": "SQLInvalidAuthorizationSpecException",
    "tool.busy": "SQLTransactionRollbackException FileSystemAlreadyExistsException OverlappingFileLockException RejectedExecutionException DBUpdateConcurrencyException OptimisticLockException",
}
_KINDS: dict[str, str] = {name: kind for kind, names in _KINDS_BY_NAME.items() for name in names.split()}
_IN_JAVASCRIPT = frozenset(
    {"TypeError", "RangeError", "ReferenceError", "SyntaxError", "EvalError", "URIError"}
)
_JAVASCRIPT = lazy_regex(
    r"\bnode:internal|\bcode: '(?:UND_)?ERR_[A-Z_]{3,40}'|\[cause\]: |\.(?:c|m)?[jt]sx?:\d+:\d+\)?|\bat file:///|<anonymous>"
    # What V8 and SpiderMonkey say of `undefined`.
    r"|Cannot (?:read|set) propert(?:y|ies) of (?:undefined|null)|\bundefined is not (?:a function|an object|iterable)\b|\b[\w.]{1,80} is not a (?:function|constructor)\b"
)

_RUNTIME_CODES: dict[str, Phase] = {
    "UND_ERR_CONNECT_TIMEOUT": "connect", "ERR_SOCKET_CONNECTION_TIMEOUT": "connect", "ERR_PROXY_CONNECTION_FAILED": "proxy",
    "UND_ERR_HEADERS_TIMEOUT": "read", "UND_ERR_BODY_TIMEOUT": "read", "ESOCKETTIMEDOUT": "read",
    "UND_ERR_SOCKET": "closed", "ERR_HTTP2_STREAM_ERROR": "closed", "ERR_STREAM_PREMATURE_CLOSE": "closed", "ERR_CONNECTION_RESET": "closed",
    "ERR_CONNECTION_REFUSED": "connect", "ERR_NAME_NOT_RESOLVED": "dns", "ERR_CONNECTION_TIMED_OUT": "connect",
    "ERR_INTERNET_DISCONNECTED": "connect", "ERR_ADDRESS_UNREACHABLE": "connect", "ERR_ADDRESS_INVALID": "connect",
    "ERR_CONNECTION_FAILED": "connect", "ERR_NAME_RESOLUTION_FAILED": "dns", "ERR_DNS_TIMED_OUT": "dns",
    "ERR_TUNNEL_CONNECTION_FAILED": "proxy", "ERR_EMPTY_RESPONSE": "closed", "ERR_CONNECTION_CLOSED": "closed",
    "ERR_CONNECTION_ABORTED": "closed", "ERR_NETWORK_CHANGED": "closed", "ERR_SOCKET_NOT_CONNECTED": "closed",
    "ERR_HTTP2_PROTOCOL_ERROR": "closed", "ERR_QUIC_PROTOCOL_ERROR": "closed", "ERR_INCOMPLETE_CHUNKED_ENCODING": "closed",
    "ERR_CONTENT_LENGTH_MISMATCH": "closed", "ERR_TIMED_OUT": "read", "ERR_SSL_PROTOCOL_ERROR": "tls",
    "ERR_SSL_VERSION_OR_CIPHER_MISMATCH": "tls", "ERR_BAD_SSL_CLIENT_AUTH_CERT": "tls", "ERR_CERT_REVOKED": "tls",
    "CERT_HAS_EXPIRED": "tls", "DEPTH_ZERO_SELF_SIGNED_CERT": "tls", "SELF_SIGNED_CERT_IN_CHAIN": "tls",
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE": "tls", "UNABLE_TO_GET_ISSUER_CERT_LOCALLY": "tls", "UNABLE_TO_GET_ISSUER_CERT": "tls",
    "ERR_TLS_CERT_ALTNAME_INVALID": "tls", "ERR_CERT_AUTHORITY_INVALID": "tls", "ERR_CERT_COMMON_NAME_INVALID": "tls",
    "ERR_CERT_DATE_INVALID": "tls", "CERTIFICATE_VERIFY_FAILED": "tls",
}  # fmt: skip
"""Codes of Node, undici and Chromium (`net_error_list.h`) for transports."""
_RUNTIME_CODE = lazy_regex(r"\b(?:net::)?([A-Z][A-Z0-9]+(?:_[A-Z0-9]+){1,6}|ESOCKETTIMEDOUT)\b")

_SENTENCES: tuple[tuple[Phase, tuple[str, ...]], ...] = (
    ("tls", (
        "x509: ", "certificate verify failed", "self-signed certificate", "self signed certificate", "certificate has expired",
        "unable to get local issuer certificate", "pkix path building failed", "remote certificate is invalid", "ssl certificate problem",
        "invalid peer certificate", "could not create ssl/tls secure channel", "(provider: ssl provider, error: ", "certificate is not trusted", "ssl: no alternative certificate subject name",
    )),
    ("handles", ("too many open files",)),
    ("connect", (
        "tls handshake timeout", "failed to establish a new connection", "tcp connect error", "connect timed out", "connection attempt timed out",
        "request canceled while waiting for connection", "connection attempt failed", "actively refused", "connect call failed", "unable to connect to the server",
        'connection to server at "', "failed to connect to ", "reset reason: connection failure", "reset reason: remote connection failure",
        "error occurred while establishing a connection to sql server", "client::legacy::error(connect", "reset reason: connection timeout", "<urlopen error timed out", "<urlopen error [winerror 10060]", "<urlopen error [errno 110]", "couldn't connect to server", "could not connect to server", "cannot connect to host",
        "network socket disconnected before secure",
    )),
    ("read", (
        "context deadline exceeded", "client.timeout exceeded", "timeout awaiting response headers", "read timed out", "httpclient.timeout of",
        "deadline has elapsed", "aborted due to timeout", "i/o timeout", "socket timeout", "timed out waiting for a response", "timed out waiting for server response",
        "source: timedout",
        "operation was aborted due to a timeout",
    )),
    ("closed", (
        "socket hang up", "unexpected eof", "unexpectedeof", "connection closed before message completed", "server closed idle connection", "premature close",
        "server sent goaway", "ssl syscall error: eof detected", "connection to the server was lost", "connection to server was lost", "remote end closed connection without response", "connection aborted", "peer closed connection",
        "connection reset", "connection closed unexpectedly", "disconnected before", "server disconnected without sending a response", "other side closed",
        "transport-level error has occurred", "hyper::error(incompletemessage", "received rst_stream with error code", "reset reason: connection termination", "reset reason: remote reset", "error reading a body from connection", "connection was closed before we received", "empty reply from server", "server returned nothing",
    )),
)  # fmt: skip
_DOTNET_HANDSHAKE = "ssl connection could not be established"
_HUNG_UP = lazy_regex(
    r"forcibly closed|connection reset|unexpected eof|remote party has closed|0 bytes from the transport"
)
PHASE_BY_SENTENCE: dict[str, Phase] = {
    sentence: phase for phase, sentences in _SENTENCES for sentence in sentences
}
_FOUNDATION: dict[Phase, tuple[int, ...]] = {
    "dns": (1003, 1006),
    "connect": (1004, 1009, 1018, 1019, 1020),
    "tls": (1022, *range(1200, 1207)),
    "read": (1001,),
    "closed": (1005, 1011, 1017),
}
"""Apple, "URL Loading System Error Codes", without their signs."""
_FOUNDATION_CODES: dict[int, Phase] = {code: phase for phase, codes in _FOUNDATION.items() for code in codes}
_FOUNDATION_CODE = lazy_regex(r"\bNSURLErrorDomain\b[^\n]{0,12}?-(\d{3,4})\b")
_SEPARATOR = lazy_regex(r"\.|::|\\|\$")
_AXIOS_TIMEOUT = lazy_regex(r"timeout of \d{1,9} ?ms exceeded")
_END_OF_FILE = lazy_regex(r"\": EOF$", re.MULTILINE)
_OPENSSL = lazy_regex(
    r"SSL routines:[^:\n]{0,60}:(?P<reason>[^\n]{0,20}?(?:certificate|alert (?:protocol|handshake|unknown|bad)|unsupported protocol|renegotiation|handshake failure|eof|dh key|cipher|wrong version number|version too low|no protocols)[^\n]{0,60})"
)
_DIALING = lazy_regex(r"\bdial (?:tcp|udp|unix)\b")
_BROWSER = lazy_regex(
    r"\s*(?:TypeError: )?(?:Failed to fetch|Load failed|NetworkError when attempting to fetch resource)\.?\s*$"
)
"""All that the `fetch` of Chromium, Safari and Firefox says, whatever happened on the way."""
_BROKEN_OFF = lazy_regex(r"(?:TypeError: )?terminated\b")
"""What Node's `fetch` says of a body that broke off."""
CANCELLED = (
    "NSURLErrorDomain Code=-999",
    "context canceled",
    "operation was canceled by the user",
    "This operation was aborted",
)
"""What Go and Node print for a call that the program itself ended."""


_CLASS_ASIDE = lazy_regex(r"\(([A-Z][A-Za-z]{3,60}(?:Timeout|Error|Exception))\)")
"""How programs name the class of what they report: `Network error (ReadTimeout), will retry`."""


def phase_of_class(dotted: str, message: str) -> Phase | None:
    """How far the call got, from the name of a transport's class."""
    name = _last(dotted)
    module = dotted.rpartition(".")[0]
    is_foreign = module in sys.stdlib_module_names and module not in PHASES
    # `tarfile.ReadError` is no `httpx.ReadError`.
    phase = _PHASES.get(dotted) or (None if is_foreign else _PHASES.get(name))
    if phase is None:
        return None
    low = message.lower()
    if (
        phase == "read"
        and "connect" in low
        and "read" not in low
        and "connection pool" not in low
        and "connectionpool" not in low
    ):
        # One class of Java's for both; the message says which.
        return "connect"
    return phase


def is_system_name(code: str) -> bool:
    """Whether a code is a runtime's or an operating system's, and none of a service."""
    name = code.upper()
    return name in KIND_BY_NAME or name in _RUNTIME_CODES or name.startswith(("ERR_", "UND_ERR_", "MODULE_"))


def is_javascript(text: str) -> bool:
    """Whether a stack in `text` is one of JavaScript's."""
    return (
        "at " in text or "cause" in text or "propert" in text or " is not a" in text
    ) and _JAVASCRIPT.search(text) is not None


def kind_of_class(dotted: str, text: str, *, in_javascript: bool = False) -> str | None:
    """The kind for a class of another language. JavaScript shares the names of some classes with Python."""
    name = _last(dotted)
    kind = _KINDS.get(dotted) or _KINDS.get(name)
    if kind == "cancel.run" and "imeout" in text:
        return "provider.outcome_unknown"
    if kind is None and in_javascript and name in _IN_JAVASCRIPT and "fetch failed" not in text:
        if _BROKEN_OFF.match(text):
            return "provider.outcome_unknown"
        return "validation.shape_invalid" if "in JSON at position" in text else "internal.bug"
    return kind


def is_tls_alert(text: str) -> bool:
    """Whether OpenSSL names a reason that both sides' settings or certificates have; an end of the connection is none."""
    match = _OPENSSL.search(text) if "SSL routines:" in text else None
    return match is not None and "eof" not in match["reason"].lower()


def phase_in(text: str) -> Phase | None:
    """How far a call got, from a code of a runtime or from a sentence that transports print."""
    for match in _RUNTIME_CODE.finditer(text) if "_" in text or "ESOCKET" in text else ():
        phase = _RUNTIME_CODES.get(match[1])
        if phase is not None:
            return phase
    apple = _FOUNDATION_CODE.search(text) if "NSURLErrorDomain" in text else None
    if apple is not None and (known := _FOUNDATION_CODES.get(int(apple[1]))) is not None:
        return known
    if is_tls_alert(text):
        return "tls"
    low = text.lower()
    if _DOTNET_HANDSHAKE in low:
        # The other side hung up in the handshake, or its certificate was refused.
        return "connect" if _HUNG_UP.search(low) is not None else "tls"
    for sentence, phase in PHASE_BY_SENTENCE.items():
        if sentence in low:
            return "connect" if phase == "read" and _DIALING.search(low) else phase
    if _AXIOS_TIMEOUT.search(text) is not None:
        return "read"
    for match in _CLASS_ASIDE.finditer(text) if "(" in text else ():
        if match[1] in _PHASES:
            return _PHASES[match[1]]
    return "closed" if _END_OF_FILE.search(text) is not None or _BROWSER.match(text) is not None else None


def _last(dotted: str) -> str:
    """The class's own name; of a nested class of Java's the inner one's."""
    return _SEPARATOR.split(dotted)[-1]
