"""The errors of operating systems: their names, numbers and sentences, and the kind that each stands for.

`errno` names come from POSIX and from Node, which adds those of its resolver. A printed sentence is what
`strerror` of glibc or BSD returns, or what Windows prints for the same condition.
"""

import errno
from collections.abc import Iterable

from failwell.adapters.facts import Phase
from failwell.adapters.reading import Reading

_NAMES: dict[str, Iterable[str]] = {
    "resource.disk": ("ENOSPC", "EDQUOT", "EFBIG"),
    "resource.system_memory": ("ENOMEM", "ENOBUFS"),
    "resource.file_handles": ("EMFILE", "ENFILE"),
    "validation.path_not_found": ("ENOENT", "ENXIO", "ENODEV"),
    "validation.path_wrong_type": ("ENOTDIR", "EISDIR", "ELOOP"),
    "validation.path_denied": ("EACCES", "EPERM", "EROFS"),
    "validation.input_invalid": ("EINVAL", "ENAMETOOLONG", "EDOM", "ERANGE", "E2BIG", "EILSEQ"),
    "internal.spawn_failed": ("ENOEXEC",),
    # Someone else listens there. It goes on doing so, and another address has to be chosen.
    "validation.config_invalid": ("EADDRINUSE",),
    "tool.busy": (
        "EAGAIN", "EWOULDBLOCK", "EINTR", "EBUSY", "ETXTBSY", "EDEADLK", "ENOLCK", "EALREADY",
        "EINPROGRESS",
    ),
    "provider.connection": (
        "ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "ENETDOWN", "EHOSTDOWN", "EADDRNOTAVAIL", "ENOTFOUND",
        "EAI_AGAIN", "EAI_FAIL", "EAI_NODATA", "EAI_NONAME",
    ),
    "provider.outcome_unknown": (
        "ECONNRESET", "ECONNABORTED", "EPIPE", "ESHUTDOWN", "ENOTCONN", "ENETRESET", "ETIMEDOUT",
    ),
}  # fmt: skip

KIND_BY_NAME: dict[str, str] = {name: kind for kind, names in _NAMES.items() for name in names}
"""Name of an error → its kind."""

NAME_BY_NUMBER: dict[int, str] = {
    number: name for name in reversed(KIND_BY_NAME) if (number := getattr(errno, name, None)) is not None
}
"""Number on this platform → name; of two names the first in the table."""

PHASE_BY_NAME: dict[str, Phase] = {
    **dict.fromkeys(("ENOTFOUND", "EAI_AGAIN", "EAI_FAIL", "EAI_NODATA", "EAI_NONAME"), "dns"),
    **dict.fromkeys(
        ("ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "ENETDOWN", "EHOSTDOWN", "EADDRNOTAVAIL"), "connect"
    ),
    **dict.fromkeys(("ECONNRESET", "ECONNABORTED", "EPIPE", "ESHUTDOWN", "ENOTCONN", "ENETRESET"), "closed"),
    "ETIMEDOUT": "read",
}
"""How far a call got that ended with this error."""

NAME_BY_WINDOWS_NUMBER: dict[int, str] = {
    2: "ENOENT", 3: "ENOENT", 4: "EMFILE", 5: "EACCES", 8: "ENOMEM", 14: "ENOMEM", 32: "EBUSY", 33: "EBUSY", 39: "ENOSPC",
    112: "ENOSPC", 193: "ENOEXEC", 206: "ENAMETOOLONG", 267: "ENOTDIR", 1450: "ENOMEM", 1455: "ENOMEM", 10013: "EACCES",
    10024: "EMFILE", 10048: "EADDRINUSE", 10049: "EADDRNOTAVAIL", 10050: "ENETDOWN", 10051: "ENETUNREACH",
    10052: "ENETRESET", 10053: "ECONNABORTED", 10054: "ECONNRESET", 10055: "ENOBUFS", 10057: "ENOTCONN",
    10058: "ESHUTDOWN", 10060: "ETIMEDOUT", 10061: "ECONNREFUSED", 10064: "EHOSTDOWN", 10065: "EHOSTUNREACH",
    11001: "ENOTFOUND", 11002: "EAI_AGAIN", 11004: "EAI_NODATA",
}  # fmt: skip
"""System error codes of Windows, and those of Winsock."""

NAME_BY_SENTENCE: dict[str, str] = {
    "connection refused": "ECONNREFUSED",
    "actively refused": "ECONNREFUSED",
    "network is unreachable": "ENETUNREACH",
    "network unreachable": "ENETUNREACH",
    "no route to host": "EHOSTUNREACH",
    "host is unreachable": "EHOSTUNREACH",
    "host is down": "EHOSTDOWN",
    "network is down": "ENETDOWN",
    "cannot assign requested address": "EADDRNOTAVAIL",
    "can't assign requested address": "EADDRNOTAVAIL",
    "name or service not known": "ENOTFOUND",
    "nodename nor servname provided": "ENOTFOUND",
    "no address associated with hostname": "ENOTFOUND",
    "no such host": "ENOTFOUND",
    "unknown host": "ENOTFOUND",
    "could not resolve host": "ENOTFOUND",
    "couldn't resolve host": "ENOTFOUND",
    "could not translate host name": "ENOTFOUND",
    "failed to lookup address information": "ENOTFOUND",
    "getaddrinfo failed": "ENOTFOUND",
    "temporary failure in name resolution": "EAI_AGAIN",
    "server misbehaving": "EAI_AGAIN",
    "connection reset by peer": "ECONNRESET",
    "connection was reset": "ECONNRESET",
    "forcibly closed by the remote host": "ECONNRESET",
    "software caused connection abort": "ECONNABORTED",
    "broken pipe": "EPIPE",
    "socket is not connected": "ENOTCONN",
    "connection timed out": "ETIMEDOUT",
    "operation timed out": "ETIMEDOUT",
    "did not properly respond after a period of time": "ETIMEDOUT",
    "no space left on device": "ENOSPC",
    "there is not enough space on the disk": "ENOSPC",
    "disk quota exceeded": "EDQUOT",
    "file too large": "EFBIG",
    "cannot allocate memory": "ENOMEM",
    "no buffer space available": "ENOBUFS",
    "too many open files": "EMFILE",
    "address already in use": "EADDRINUSE",
    "device or resource busy": "EBUSY",
    "text file busy": "ETXTBSY",
    "resource temporarily unavailable": "EAGAIN",
    "resource deadlock avoided": "EDEADLK",
    "interrupted system call": "EINTR",
    "no locks available": "ENOLCK",
    "no such file or directory": "ENOENT",
    "cannot find the file specified": "ENOENT",
    "cannot find the path specified": "ENOENT",
    "no such device or address": "ENXIO",
    "no such device": "ENODEV",
    "not a directory": "ENOTDIR",
    "is a directory": "EISDIR",
    "too many levels of symbolic links": "ELOOP",
    "permission denied": "EACCES",
    "access is denied": "EACCES",
    "operation not permitted": "EPERM",
    "read-only file system": "EROFS",
    "invalid argument": "EINVAL",
    "file name too long": "ENAMETOOLONG",
    "argument list too long": "E2BIG",
    "exec format error": "ENOEXEC",
}
"""What is printed for an error, in lower case → its name."""


def read_errno(name: str) -> Reading | None:
    """The reading of an operating system's error by its name; `None` if the name is not known."""
    kind = KIND_BY_NAME.get(name)
    if kind is None:
        return None
    details: dict[str, object] = {"errno": name}
    return Reading.from_rule(
        kind=kind, rule=f"python.OSError.{name}", basis="errno", saw=name, details=details
    )
