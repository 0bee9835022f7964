"""Subprocesses that failed: read by signal and exit code, and by what a runtime prints before it aborts."""

import signal
from typing import Any

from failwell.adapters.classification import Classification
from failwell.adapters.protocols.system_errors import KIND_BY_NTSTATUS, is_ntstatus
from failwell.adapters.registry import Table
from failwell.errors.faults import OOM_ASSUMED
from failwell.errors.foreign_objects import int_attr, safe_getattr

_BY_EXIT: dict[int, tuple[str, str]] = {
    124: ("internal.script_timeout", "its time limit ended it"),
    125: ("internal.spawn_failed", "the launcher could not run it"),
    126: ("internal.spawn_failed", "it may not be executed"),
    127: ("internal.spawn_failed", "it was not found"),
}
"""Exit codes that shells and `timeout` give a meaning of their own."""

_BY_SIGNAL: dict[str, tuple[str, str]] = {
    "SIGKILL": ("worker.oom", "most likely for want of memory"),
    "SIGINT": ("cancel.run", "it was interrupted"),
    "SIGTERM": ("cancel.run", "it was told to stop"),
    "SIGHUP": ("cancel.run", "its terminal or session was closed"),
    **dict.fromkeys(
        ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGSYS"), ("internal.bug", "it crashed")
    ),
    "SIGXCPU": ("limit.run_timeout", "it used up its processor time"),
    "SIGXFSZ": ("resource.disk", "it wrote more than it may"),
}


_LAST_OUTPUT = 8_000
_OUT_OF_MEMORY = (
    "heap out of memory",
    "OutOfMemoryError",
    "std::bad_alloc",
    "fatal error: runtime: out of memory",
)


def read_exit(code: int, output: object = None) -> Classification:
    """What an exit code says: negative or above 128, the signal that ended the process.

    Args:
        code: The exit code.
        output: What the process printed last. It counts only where it gave itself up for want of memory.
    """
    number = -code if code < 0 else code - 128 if 128 < code <= 192 else 0
    name = _signal_name(number)
    if name is not None:
        kind, why = _BY_SIGNAL.get(name, ("worker.crashed", "it crashed"))
        if name == "SIGABRT" and _ran_out_of_memory(output):
            kind, why = "resource.system_memory", "it found no memory"
        # Nothing here counts what the kernel killed, so a SIGKILL is only taken for a want of memory.
        assumed: dict[str, Any] = {"out_of_memory": "assumed"} if kind == "worker.oom" else {}
        return Classification.from_rule(
            kind=kind,
            rule=f"process.{name}",
            basis="code",
            saw=f"exit code {code}",
            message=f"A process was ended by {name}: {why}.",
            details={"exit_code": code, "signal": name, **assumed},
            user_action=OOM_ASSUMED if assumed else None,
        )
    by_code = _BY_EXIT.get(code) or KIND_BY_NTSTATUS.get(code & 0xFFFFFFFF)
    kind, why = by_code or ("internal.script_error", "it reported a failure")
    return Classification.from_rule(
        kind=kind,
        rule="process.exit"
        if by_code is None
        else f"process.exit_{code & 0xFFFFFFFF if is_ntstatus(code) else code}",
        basis="code",
        saw=f"exit code {code}",
        message=f"A process ended with exit code {code}: {why}.",
        details={"exit_code": code},
    )


def _signal_name(number: int) -> str | None:
    try:
        return signal.Signals(number).name if number else None
    except ValueError:
        return None


def _ran_out_of_memory(output: object) -> bool:
    """Whether a runtime printed, before it aborted, that it found no memory: V8, the JVM, C++."""
    if isinstance(output, bytes):
        output = output[-_LAST_OUTPUT:].decode("utf-8", "replace")
    return isinstance(output, str) and any(sign in output[-_LAST_OUTPUT:] for sign in _OUT_OF_MEMORY)


def _called(error: BaseException) -> Classification | None:
    code = int_attr(error, "returncode")
    return None if code is None else read_exit(code, safe_getattr(error, "stderr", "output"))


def _expired(error: BaseException) -> Classification:
    limit = safe_getattr(error, "timeout")
    known = isinstance(limit, int | float)
    return Classification.from_rule(
        kind="internal.script_timeout",
        rule="process.TimeoutExpired",
        saw="TimeoutExpired",
        message=f"A process did not finish within {limit:g} s and was ended." if known else None,
        details={"timeout_seconds": limit} if known else {},
    )


TABLES: dict[str, Table] = {
    "subprocess": {
        "CalledProcessError": _called,
        "TimeoutExpired": _expired,
        # Raised by hand of the module itself, when a child could not be prepared.
        "SubprocessError": Classification.from_rule(
            kind="internal.spawn_failed", rule="process.SubprocessError", exact=True, saw="SubprocessError"
        ),
    }
}
