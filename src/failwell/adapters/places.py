"""Python's own exceptions, raised by a library that means something of its own by them.

`ValueError` from a PDF reader is a broken file, and `RuntimeError` may be a full graphics card. The
class cannot say so; the frames of the traceback and, for memory, a few fixed words can.
"""

import sys
from collections.abc import Iterator
from importlib import import_module
from types import FrameType
from typing import Any

from failwell.adapters.reading import Adapter, Reading
from failwell.adapters.safe_getattr import int_attr
from failwell.fault.links import traceback_of

PLACES: dict[str, str] = {
    "aiohttp": "aiohttp",
    "docling": "docling",
    "docling_core": "docling",
    "docling_parse": "docling",
    "linkup": "linkup",
    "ollama": "ollama",
    "pydantic_ai": "pydantic_ai",
    "pypdfium2": "pypdfium2",
    "replicate": "replicate",
    "websockets": "websockets",
}
"""Top-level module whose code raises Python's classes → the file here that reads them with `raised`."""

_MOST_FRAMES = 400


def read_placed(error: BaseException) -> Reading | None:
    """What a builtin exception means where it was raised; `None` where it means what it always does."""
    loaded = [top for top in PLACES if top in sys.modules]
    if loaded:
        passed = tops_of(error)
        for top in loaded:
            if top in passed:
                reads: Adapter = import_module(f"failwell.adapters.{PLACES[top]}").raised
                reading = reads(error)
                if reading is not None:
                    return reading
    return memory_in(error) if type(error) is RuntimeError else None


def tops_of(error: BaseException) -> set[str]:
    """The top-level modules that an exception came through."""
    return {_module(frame).partition(".")[0] for frame in _frames(error)}


def innermost(error: BaseException) -> str:
    """The module whose code raised the exception."""
    return next((_module(frame) for frame in reversed(list(_frames(error)))), "")


def reply_in(error: BaseException, top: str) -> Any:
    """The reply that code of `top` held when it raised `error`, for clients that do not hand it on.

    It is found as `response` or `resp` in the client's frames. Only its status and headers may be read.
    """
    for frame in reversed(list(_frames(error))):
        if _module(frame).partition(".")[0] == top:
            for name in ("response", "resp"):
                held = frame.f_locals.get(name)
                if int_attr(held, "status_code") is not None:
                    return held
    return None


def _frames(error: BaseException) -> Iterator[FrameType]:
    trace = traceback_of(error)
    for _ in range(_MOST_FRAMES):
        if trace is None:
            return
        yield trace.tb_frame
        trace = trace.tb_next


def _module(frame: FrameType) -> str:
    name = frame.f_globals.get("__name__")
    return name if isinstance(name, str) else ""


def memory_in(error: BaseException) -> Reading | None:
    """A shortage of memory, told by its words; `None` for anything else.

    Libraries with a native core raise Python's bare class for it, and no frame of theirs is left.
    """
    from failwell.adapters.extract import Extract
    from failwell.adapters.render import render
    from failwell.adapters.sdk import text_of

    said = text_of(error)
    if "memory" not in said.lower() and "ALLOC" not in said:
        return None
    reading = render(Extract(exception_type=type(error).__name__, message=said))
    return reading if reading.kind.startswith("resource.") else None
