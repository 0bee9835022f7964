"""Python's own exceptions, and those of the standard library's plumbing.

The built-in classes follow the four job categories they have always projected to; operating
system errors are read by errno, because the class alone calls a full disk a passing blip.
"""

from failwell.adapters.classification import Classification
from failwell.adapters.protocols.system_errors import NAME_BY_NUMBER, read_errno
from failwell.adapters.registry import Table
from failwell.adapters.text.message import read_message
from failwell.adapters.vendor_tables import rows
from failwell.errors.facts import ProviderMetadata
from failwell.errors.foreign_code import is_known_library
from failwell.errors.foreign_objects import int_attr, safe_call, safe_getattr
from failwell.errors.lazy_regex import lazy_regex
from failwell.errors.safe_str import arguments_text

_UNDECODED = Classification.from_rule(
    kind="validation.input_invalid", rule="python.UnicodeDecodeError", saw="UnicodeDecodeError"
)


def _of_a_reply(error: BaseException) -> Classification | None:
    """Text that a client library could not parse is a provider's answer, not the caller's input."""
    from failwell.adapters.traceback_frames import unparsed_reply

    reply = unparsed_reply(error)
    if reply is None:
        return _UNDECODED if type(error).__name__ == "UnicodeDecodeError" else None
    if reply.status is not None and reply.status >= 400:
        from failwell.adapters.classify import classify
        from failwell.adapters.facts import Facts
        from failwell.errors.headers import lower_headers

        name = type(error).__name__
        return classify(
            Facts(
                sdk=reply.client,
                exception_type=name,
                status=reply.status,
                headers=lower_headers(reply.headers),
            )
        )
    return Classification.from_rule(
        kind="provider.output_invalid",
        rule="provider.unparsed_reply",
        basis="origin",
        saw=reply.client,
        message="The provider's reply could not be parsed.",
        provider_metadata=ProviderMetadata(
            sdk=reply.client, exception_type=type(error).__name__, status_code=reply.status
        ),
    )


def _json(error: BaseException) -> Classification:
    return _of_a_reply(error) or _no_json(error)


def _no_json(error: BaseException) -> Classification:
    line, column = safe_getattr(error, "lineno"), safe_getattr(error, "colno")
    where = {"line": line, "column": column} if isinstance(line, int) and isinstance(column, int) else {}
    at = f" at line {line}, column {column}" if where else ""
    return Classification.from_rule(
        kind="validation.shape_invalid",
        rule="python.JSONDecodeError",
        saw="JSONDecodeError",
        message=f"The text is not valid JSON{at}.",
        details=where,
    )


def _missing_module(error: BaseException) -> Classification:
    name = safe_getattr(error, "name")
    known = isinstance(name, str) and name.replace(".", "").replace("_", "").isalnum()
    return Classification.from_rule(
        kind="extension.dependency_missing",
        rule="python.ModuleNotFoundError",
        saw="ModuleNotFoundError",
        message=f"The Python module `{name}` is not installed." if known else None,
        details={"module": name} if known else {},
    )


_LIBRARY = lazy_regex(
    r"\.so\b|\.dylib\b|\.pyd\b|DLL load failed|GLIBC|\b(?:pip|conda|mamba|uv|apt|brew) (?:install|add)\b|\b[Pp]lease install\b|\bnot installed\b|\bNo module named '"
    r"|\bmust (?:be installed|install)\b|\b(?:not found|missing) in your environment\b|\brequires? the \S{1,60} (?:library|package|module)\b"
    # A name that an installed package no longer has, or has not yet: another release of it is needed.
    r"|\((?!most)[^()\n]{0,300}\b(?:site|dist)-packages\b"
)
_NAME_OF = lazy_regex(
    r"\bcannot import name '[^'\n]{1,200}' from '(?P<top>\w{1,80})(?:\.[\w.]{1,200})?'(?P<place> \(unknown location\))?"
)
"""How Python says that a module lacks a name. `from partially initialized module` is a circle in the program and not meant."""


def _import(error: BaseException) -> Classification | None:
    """A name that a module does not have is a bug; a library of the system that is missing or too old is not."""
    text = safe_call(arguments_text, "", error)[:1_000]
    is_library = _LIBRARY.search(text) is not None or _is_of_another_release(text)
    if not is_library and isinstance(error, LookupError | ValueError | TypeError | OSError | MemoryError):
        # Its other base says more than that something is a bug.
        return None
    kind = "extension.dependency_missing" if is_library else "internal.bug"
    return Classification.from_rule(kind=kind, rule="python.ImportError", saw="ImportError")


def _is_of_another_release(text: str) -> bool:
    """Whether a name is missing from a library: it has it in another release, or its installation is damaged."""
    match = _NAME_OF.search(text)
    return match is not None and (match["place"] is not None or is_known_library(match["top"]))


def _exit(error: BaseException) -> Classification:
    code = safe_getattr(error, "code")
    if code is None or code == 0:
        return Classification.from_rule(kind="cancel.run", rule="python.SystemExit", saw="SystemExit")
    number = code if isinstance(code, int) else 1
    return Classification.from_rule(
        kind="internal.script_error",
        rule="python.SystemExit",
        saw=f"SystemExit({number})",
        message=f"The program ended itself with exit code {number}.",
        details={"exit_code": number},
    )


# `RuntimeError` itself is what Python raises when it is misused. A library's subclass of it may be
# anything, so only the exact class is read as a program error.
_MISUSE = Classification.from_rule(
    kind="internal.bug", rule="python.RuntimeError", exact=True, saw="RuntimeError"
)


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


def read_oserror(error: BaseException) -> Classification:
    """What the errno says; without one, what the class says; else an unnamed failure of the system."""
    number = int_attr(error, "errno")
    known = None if number is None else read_errno(NAME_BY_NUMBER.get(number, ""))
    if known is not None:
        return known
    for cls in type(error).__mro__:
        kind = _BY_CLASS.get(cls.__name__)
        if kind is not None and cls.__module__ == "builtins":
            # By name, since an error that was read from a text has a class of its own.
            is_base = cls.__name__ == ConnectionError.__name__
            printed = read_message(error) if number is None and is_base else None
            return printed or Classification.from_rule(
                kind=kind, rule=f"python.{cls.__name__}", saw=cls.__name__
            )
    if number is None:
        # Raised by hand, for anything: a fact in the message says more than the class.
        return read_message(error) or Classification.from_rule(
            kind="internal.io_error", rule="python.OSError", saw="OSError"
        )
    return Classification.from_rule(
        kind="internal.io_error", rule="python.OSError", basis="errno", saw=f"errno {number}"
    )


TABLES: dict[str, Table] = {
    "builtins": {
        **rows(
            "python",
            {
                "validation.input_invalid": "ValueError TypeError KeyError",
                "internal.bug": (
                    "AssertionError AttributeError NameError NotImplementedError IndexError LookupError "
                    "ArithmeticError StopIteration StopAsyncIteration RecursionError SystemError EOFError "
                    "BufferError ReferenceError SyntaxError GeneratorExit"
                ),
                "resource.system_memory": "MemoryError",
                "provider.outcome_unknown": "TimeoutError",
                "cancel.run": "KeyboardInterrupt",
            },
        ),
        "RuntimeError": _MISUSE,
        "UnicodeDecodeError": _of_a_reply,
        "ModuleNotFoundError": _missing_module,
        "ImportError": _import,
        "SystemExit": _exit,
        "OSError": read_oserror,
    },
    "asyncio": {
        **rows(
            "python",
            {
                "cancel.run": "CancelledError QueueShutDown",
                "tool.busy": "QueueFull",
                "internal.unknown": "QueueEmpty",
                "provider.stream_interrupted": "IncompleteReadError LimitOverrunError",
                "internal.bug": "InvalidStateError BrokenBarrierError SendfileNotAvailableError",
            },
        ),
    },
    "concurrent": {
        **rows(
            "python",
            {
                "cancel.run": "CancelledError",
                "worker.crashed": "BrokenExecutor BrokenProcessPool BrokenThreadPool BrokenInterpreterPool",
                "internal.bug": "InvalidStateError",
            },
        ),
    },
    # That nothing was there says nothing about why.
    "queue": {
        **rows(
            "python",
            {
                "tool.busy": "Full",
                "internal.unknown": "Empty",
            },
        )
    },
    "json": {"JSONDecodeError": _json},
    "socket": {
        **rows("python", {"provider.connection": "gaierror herror"}),
    },
    "ssl": {
        **rows(
            "python",
            {
                "provider.tls_failed": "SSLCertVerificationError CertificateError",
                "provider.connection": "SSLError",
                "provider.outcome_unknown": "SSLEOFError SSLZeroReturnError SSLSyscallError",
            },
        ),
    },
    "zoneinfo": rows("python", {"validation.input_invalid": "ZoneInfoNotFoundError"}),
}
TABLES["_queue"] = TABLES["queue"]
