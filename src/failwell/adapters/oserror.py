"""Operating-system errors, read by errno: the number says what the class name hides."""

import errno
from collections.abc import Iterable

from failwell.adapters.reading import Reading
from failwell.adapters.safe_getattr import int_attr

_KINDS: dict[str, Iterable[str]] = {
    "resource.disk": ("ENOSPC", "EDQUOT", "EFBIG"),
    "resource.system_memory": ("ENOMEM", "ENOBUFS"),
    "resource.file_handles": ("EMFILE", "ENFILE"),
    "validation.path_not_found": ("ENOENT", "ENXIO", "ENODEV"),
    "validation.path_wrong_type": ("ENOTDIR", "EISDIR", "ELOOP"),
    "validation.path_denied": ("EACCES", "EPERM", "EROFS"),
    "validation.input_invalid": ("EINVAL", "ENAMETOOLONG", "EDOM", "ERANGE", "E2BIG", "EILSEQ"),
    "internal.spawn_failed": ("ENOEXEC",),
    "tool.busy": (
        "EAGAIN", "EWOULDBLOCK", "EINTR", "EBUSY", "ETXTBSY", "EADDRINUSE", "EDEADLK", "ENOLCK", "EALREADY",
        "EINPROGRESS",
    ),
    "provider.connection": (
        "ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "ENETDOWN", "EHOSTDOWN", "EADDRNOTAVAIL",
    ),
    "provider.outcome_unknown": (
        "ECONNRESET", "ECONNABORTED", "EPIPE", "ESHUTDOWN", "ENOTCONN", "ENETRESET", "ETIMEDOUT",
    ),
}  # fmt: skip

_BY_NUMBER = {
    number: (kind, name)
    for kind, names in _KINDS.items()
    for name in names
    if (number := getattr(errno, name, None)) is not None
}

_BY_CLASS = {
    "FileNotFoundError": "validation.path_not_found",
    "NotADirectoryError": "validation.path_wrong_type",
    "IsADirectoryError": "validation.path_wrong_type",
    "PermissionError": "validation.path_denied",
    "ConnectionRefusedError": "provider.connection",
    "ConnectionResetError": "provider.outcome_unknown",
    "ConnectionAbortedError": "provider.outcome_unknown",
    "BrokenPipeError": "provider.outcome_unknown",
    "ConnectionError": "provider.outcome_unknown",
    "InterruptedError": "tool.busy",
    "BlockingIOError": "tool.busy",
    "TimeoutError": "provider.outcome_unknown",
}
"""For errors that were raised by hand, without a number."""


def read_oserror(error: BaseException) -> Reading:
    """What the errno says; without one, what the class says; else an unnamed failure of the system."""
    number = int_attr(error, "errno")
    known = None if number is None else _BY_NUMBER.get(number)
    if known is not None:
        kind, name = known
        details: dict[str, object] = {"errno": name}
        return Reading(kind=kind, rule=f"python.OSError.{name}", basis="errno", saw=name, details=details)
    for cls in type(error).__mro__:
        kind = _BY_CLASS.get(cls.__name__)
        if kind is not None and cls.__module__ == "builtins":
            return Reading(kind=kind, rule=f"python.{cls.__name__}", saw=cls.__name__)
    saw = "OSError" if number is None else f"errno {number}"
    return Reading(
        kind="internal.io_error", rule="python.OSError", basis="type" if number is None else "errno", saw=saw
    )
