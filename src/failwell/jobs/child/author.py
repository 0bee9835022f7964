"""What the author of a capability may import, where failwell is not installed.

The worker offers it as `failwell.capability`, so an author writes one import for both cases. The
errors have the names, arguments and attributes of the real ones; the host makes real ones of them.
"""

import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar, overload

current: ContextVar[Any] = ContextVar("failwell_call", default=None)
"""The call that this thread or task works for."""
calls: dict[str | None, Any] = {}
"""The calls in flight, for threads that the capability started itself."""


@dataclass(frozen=True)
class ResourceShortfall:
    """The gap between what the work needed and what there was, in megabytes."""

    resource: str
    needed: float
    available: float


class CapabilityError(Exception):
    """The capability failed."""

    category = "fatal"
    default_retriable = False


class CapabilityInputError(CapabilityError):
    """Something that was given can be corrected."""

    category = "user_input"
    default_retriable = True

    def __init__(self, message: str, *, fields_invalid: Iterable[str] | None = None) -> None:
        super().__init__(message)
        self.fields_invalid = list(fields_invalid or ())


class CapabilityTransientError(CapabilityError):
    """Something passing went wrong; a repeat may succeed."""

    category = "transient"
    default_retriable = True

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class CapabilityResourceError(CapabilityError):
    """Memory of the GPU or of the machine, or disk space, is used up."""

    category = "resource"
    default_retriable = True

    def __init__(self, message: str, *, resource_shortfall: ResourceShortfall | None = None) -> None:
        super().__init__(message)
        self.resource_shortfall = resource_shortfall


class CapabilityFatalError(CapabilityError):
    """The capability knows that no repeat will help."""


class CapabilityDisabledError(CapabilityInputError):
    """Work was given to a capability that is switched off."""

    def __init__(self, capability_name: str) -> None:
        super().__init__(f"capability {capability_name!r} is disabled; enable it and submit again")
        self.capability_name = capability_name


class CapabilityConfigError(CapabilityInputError):
    """A configuration has keys or values that are not accepted."""

    def __init__(
        self, message: str, *, fields_invalid: Iterable[str] | None = None, config_class_name: str = ""
    ) -> None:
        super().__init__(message, fields_invalid=fields_invalid)
        self.config_class_name = config_class_name


class CapabilityNotLoadedError(CapabilityFatalError):
    """Work was given to a capability that was never loaded."""

    def __init__(self, capability_name: str) -> None:
        super().__init__(f"capability {capability_name!r} is not loaded; load it before submitting to it")
        self.capability_name = capability_name


class CapabilityTimeoutError(CapabilityTransientError):
    """Something did not finish within its time limit."""

    def __init__(
        self, capability_name: str, timeout_seconds: float, *, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(
            f"capability {capability_name!r} did not finish within {timeout_seconds:.1f} s",
            retry_after_seconds=retry_after_seconds,
        )
        self.capability_name = capability_name
        self.timeout_seconds = timeout_seconds


class CapabilityCancelledError(CapabilityTransientError):
    """An operator stopped the job."""

    default_retriable = False

    def __init__(self, capability_name: str) -> None:
        super().__init__(f"capability {capability_name!r} was cancelled by operator")
        self.capability_name = capability_name


class WorkerOOMError(CapabilityResourceError):
    """A process below the capability was killed, most likely for want of memory."""

    def __init__(
        self, capability_name: str, *, process_returncode: int | None = None, message: str | None = None
    ) -> None:
        code = "" if process_returncode is None else f" (returncode={process_returncode})"
        super().__init__(
            message or f"the worker of capability {capability_name!r} was killed during the call{code}"
        )
        self.capability_name = capability_name
        self.process_returncode = process_returncode


# ------------------------------------------------------------------ during a call


def _call() -> Any:
    found = current.get()
    if found is not None:
        return found
    # A thread that the capability started knows no context; with one call in flight there is no doubt.
    return next(iter(calls.values())) if len(calls) == 1 else None


def progress(fraction: float, message: str = "") -> None:
    """Say how far the work is: from 0 to 1, or -1 where that is not known."""
    call = _call()
    if call is not None:
        call.progress(fraction, message)


def is_cancelled() -> bool:
    """Whether this call was asked to stop."""
    call = _call()
    return call is not None and call.cancelled.is_set()


def check_cancel() -> None:
    """Raise `CapabilityCancelledError` if this call was asked to stop."""
    call = _call()
    if call is not None and call.cancelled.is_set():
        raise call.cancellation()


@contextmanager
def on_cancel(callback: Callable[[], object]) -> Generator[None]:
    """Have `callback` called, once and in another thread, if the call is asked to stop in this block."""
    call = _call()
    if call is None:
        yield
        return
    remove = call.on_cancel(callback)
    try:
        yield
    finally:
        remove()


def usage(amounts: Mapping[str, float]) -> None:
    """Say what the call consumed, in units of your own; amounts add up."""
    call = _call()
    if call is not None:
        call.usage(amounts)


@contextmanager
def heartbeat(message: str = "working", interval: float = 0.5) -> Generator[None]:
    """Show signs of progress during one long silent step, so that it is not taken for a stall."""
    call = _call()
    done = threading.Event()

    def beat() -> None:
        waited = 0.0
        while not done.wait(interval):
            waited += interval
            call.progress(None, f"{message} ({waited:.0f} s)")

    thread = threading.Thread(target=beat, name="failwell-heartbeat", daemon=True)
    if call is not None:
        thread.start()
    try:
        yield
    finally:
        done.set()
        if call is not None:
            thread.join()


_Marked = TypeVar("_Marked", bound=Callable[..., Any])


@overload
def capability(marked: _Marked, /) -> _Marked: ...
@overload
def capability(*, name: str | None = None, version: str = "") -> Callable[[_Marked], _Marked]: ...
def capability(marked: Any = None, /, *, name: str | None = None, version: str = "") -> Any:
    """Mark a function or a class as a capability, as `@capability` or `@capability(name=…, version=…)`."""

    def mark(found: Any) -> Any:
        found.__failwell__ = {"name": name or "", "version": version}
        return found

    return mark if marked is None else mark(marked)
