"""The functions that a capability calls during a call. Authors import them from `failwell.capability`.

An installed `failwell` of any version finds this module by its name, so the name must not change.
"""

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, overload

current: ContextVar[Any] = ContextVar("failwell_call", default=None)
"""The call that this thread or task runs."""
calls: dict[str | None, Any] = {}
"""The calls in flight, for threads that the capability started itself."""
importing: str | None = None
"""The module that this worker imports right now. Nothing may be hosted or submitted meanwhile."""


# ------------------------------------------------------------------ during a call


def _call() -> Any:
    call = current.get()
    if call is not None:
        return call
    # A thread that the capability started has no context. If only one call is in flight, it is that one.
    return next(iter(calls.values())) if len(calls) == 1 else None


def progress(fraction: float, message: str = "") -> None:
    """Report the progress of the job from 0 to 1, or -1 if it is not known."""
    call = _call()
    if call is not None:
        call.progress(fraction, message)


def is_cancelled() -> bool:
    """Whether this call of a capability was cancelled."""
    call = _call()
    return call is not None and call.is_cancelled


def check_cancel() -> None:
    """Raise `CapabilityCancelledError` if this call was cancelled."""
    call = _call()
    if call is not None and call.is_cancelled:
        raise call.cancellation()


@contextmanager
def on_cancel(callback: Callable[[], object]) -> Generator[None]:
    """Within the block, call `callback` once, in another thread, if the call is cancelled."""
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
    """Report what the call consumed, in units of your choice; amounts add up."""
    call = _call()
    if call is not None:
        call.usage(amounts)


@contextmanager
def heartbeat(message: str = "working", interval: float = 0.5) -> Generator[None]:
    """Report progress regularly during a long silent step, so that it is not taken for a stall."""
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
def capability(target: _Marked, /) -> _Marked: ...
@overload
def capability(
    *, name: str | None = None, version: str = "", **manifest: Any
) -> Callable[[_Marked], _Marked]: ...
def capability(target: Any = None, /, *, name: str | None = None, version: str = "", **manifest: Any) -> Any:
    """Mark a function or a class as a capability, as `@capability` or `@capability(name=…, concurrency=…)`.

    Args:
        target: The function or the class.
        name: Its name; the default is its own in lower case.
        version: Its version.
        manifest: Further keys of its manifest, such as `concurrency`.
    """

    def mark(definition: Any) -> Any:
        definition.__failwell__ = {**manifest, "name": name or "", "version": version}
        return definition

    return mark if target is None else mark(target)


class Capability:
    """A base class for capabilities, so that type checkers know the methods that a worker adds.

    It is optional and adds no behaviour: a worker adds the same methods to any class. `on_cancel` is not among
    them, because a method of that name is a hook; import the function instead.
    """

    progress = staticmethod(progress)
    check_cancel = staticmethod(check_cancel)
    is_cancelled = staticmethod(is_cancelled)
    heartbeat = staticmethod(heartbeat)
    usage = staticmethod(usage)
