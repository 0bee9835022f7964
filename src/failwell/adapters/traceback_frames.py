"""Where inside a client a failure was raised, read from the frames of its traceback.

A class does not say whether a reply had begun, or whose text was no JSON. The function that was
running does. Only names of modules and functions are read, and a reply's status; no source, and no
other variable.
"""

import sys
from collections.abc import Iterator
from importlib import import_module
from types import FrameType
from typing import Any, NamedTuple

from failwell.adapters.classification import Adapter, Classification
from failwell.errors.causes import below, traceback_of
from failwell.errors.foreign_code import is_installed_file
from failwell.errors.foreign_objects import int_attr, safe_getattr

_PIECEWISE = frozenset(
    {
        ("httpx._models", "iter_raw"), ("httpx._models", "aiter_raw"),
        ("httpx2._models", "iter_raw"), ("httpx2._models", "aiter_raw"),
        ("requests.models", "iter_content"),
        ("urllib3.response", "stream"),
        ("aiohttp.streams", "_wait"),
        ("botocore.eventstream", "_create_raw_event_generator"),
    }
)  # fmt: skip
"""Functions that yield a reply in pieces."""

_WHOLE = frozenset(
    {
        ("httpx._models", "read"), ("httpx._models", "aread"),
        ("httpx2._models", "read"), ("httpx2._models", "aread"),
        ("requests.models", "content"),
        ("botocore.awsrequest", "content"),
        ("aiohttp.client_reqrep", "read"), ("aiohttp.client_reqrep", "start"),
    }
)  # fmt: skip
"""Functions that collect a whole reply before the caller sees any of it."""

_PARSERS = frozenset(
    {"json", "codecs", "encodings", "simplejson", "orjson", "jiter", "pydantic", "pydantic_core"}
)
CLIENTS = frozenset(
    {
        "aiohttp", "anthropic", "azure", "botocore", "cohere", "fal_client", "google", "groq", "httpx", "httpx2", "httpx_sse",
        "huggingface_hub", "linkup", "litellm", "mistralai", "ollama", "openai", "replicate", "requests", "together",
        "urllib3",
    }
)  # fmt: skip
"""Libraries that parse nothing but replies."""
_DEEPEST = 8


class Parsed(NamedTuple):
    """A reply that a client could not parse."""

    client: str
    status: int | None
    headers: Any


def broke_in_stream(error: BaseException) -> bool:
    """Whether the exception was raised while a reply was being streamed to the caller."""
    piecewise = False
    for frame in _all_frames(error):
        place = _place(frame)
        if place in _WHOLE:
            return False
        piecewise = piecewise or place in _PIECEWISE
    return piecewise


def came_through(error: BaseException, module: str) -> bool:
    """Whether code of `module` was running when the exception was raised."""
    return any(_place(frame)[0] == module for frame in _all_frames(error))


def unparsed_reply(error: BaseException) -> Parsed | None:
    """The reply that a client was parsing when `error` was raised; `None` if it was not parsing."""
    frames = list(_frames(error))
    for frame in reversed(frames):
        module, _ = _place(frame)
        top = module.partition(".")[0]
        if top in _PARSERS:
            continue
        if top not in CLIENTS:
            return None
        reply = next(
            (
                candidate
                for client_frame in reversed(frames)
                if (candidate := _reply(client_frame)) is not None
            ),
            None,
        )
        return Parsed(top, int_attr(reply, "status_code", "status"), safe_getattr(reply, "headers"))
    return None


def _reply(frame: FrameType) -> Any:
    """The reply object of a client's frame, where it is the frame's `self`."""
    if _place(frame)[0].partition(".")[0] not in CLIENTS:
        return None
    holder = safe_getattr(frame, "f_locals", default={}).get("self")
    reply = (
        holder
        if int_attr(holder, "status_code", "status") is not None
        else safe_getattr(holder, "response", "http_response")
    )
    return reply if int_attr(reply, "status_code", "status") is not None else None


def _all_frames(error: BaseException) -> Iterator[FrameType]:
    link: BaseException | None = error
    for _ in range(_DEEPEST):
        if link is None:
            return
        yield from _frames(link)
        under = below(link)
        link = under[0] if under is not None else None


def _frames(error: BaseException) -> Iterator[FrameType]:
    trace = traceback_of(error)
    for _ in range(_MOST_FRAMES):
        if trace is None:
            return
        yield trace.tb_frame
        trace = trace.tb_next


def _place(frame: FrameType) -> tuple[str, str]:
    name = frame.f_globals.get("__name__")
    return (name if isinstance(name, str) else "", frame.f_code.co_name)


PLACES: dict[str, str] = {
    "aiohttp": "aiohttp",
    "chromadb": "vector_stores",
    "docling": "docling",
    "docling_core": "docling",
    "docling_parse": "docling",
    "exa_py": "http_sdks",
    "linkup": "linkup",
    "ollama": "ollama",
    "pydantic_ai": "pydantic_ai",
    "pypdfium2": "pypdfium2",
    "replicate": "replicate",
    "torch": "torch",
    "websockets": "websockets",
}
"""Top-level module whose code raises Python's classes → the file here that reads them with `raised`."""

_MOST_FRAMES = 400


def read_placed(error: BaseException) -> Classification | None:
    """The reading of a built-in exception by the library that raised it; `None` if that library has no rule."""
    loaded = [top for top in PLACES if top in sys.modules]
    if loaded:
        passed = tops_of(error)
        for top in loaded:
            if top in passed:
                reads: Adapter = import_module(f"failwell.adapters.vendors.{PLACES[top]}").raised
                reading = reads(error)
                if reading is not None:
                    return reading
    return memory_in(error) or device_in(error) or _threads_in(error) if type(error) is RuntimeError else None


def tops_of(error: BaseException) -> set[str]:
    """The top-level modules that an exception came through."""
    return {_module(frame).partition(".")[0] for frame in _frames(error)}


def innermost(error: BaseException) -> str:
    """The module whose code raised the exception."""
    return next((_module(frame) for frame in reversed(list(_frames(error)))), "")


def raised_by_installed(error: BaseException) -> bool:
    """Whether code of an installed package raised the exception."""
    files = [frame.f_code.co_filename for frame in _frames(error)]
    return bool(files) and is_installed_file(files[-1])


_CHECKERS = frozenset({"pydantic", "pydantic_core", "jsonschema", "attr", "attrs"})


def raised_by_client(error: BaseException) -> bool:
    """Whether the exception was raised by code of a client library, or by what checks values for it."""
    homes = (_module(frame).partition(".")[0] for frame in reversed(list(_frames(error))))
    return next((home for home in homes if home not in _CHECKERS), "") in CLIENTS


def reply_in(error: BaseException, top: str) -> Any:
    """The reply that code of `top` held when it raised `error`, for clients that do not hand it on.

    It is found as `response` or `resp` in the client's frames. Only its status and headers may be read.
    """
    for frame in reversed(list(_frames(error))):
        if _module(frame).partition(".")[0] == top:
            for name in ("response", "resp"):
                value = frame.f_locals.get(name)
                if int_attr(value, "status_code") is not None:
                    return value
    return None


def _module(frame: FrameType) -> str:
    name = frame.f_globals.get("__name__")
    return name if isinstance(name, str) else ""


def memory_in(error: BaseException) -> Classification | None:
    """A shortage of memory, recognised by its message; `None` for anything else.

    Libraries with a native core raise Python's bare class for it, and no frame of theirs is left.
    """
    from failwell.adapters.classify import classify
    from failwell.adapters.facts import Facts
    from failwell.adapters.sdk_exceptions import text_of

    text = text_of(error)
    if "memory" not in text.lower() and "ALLOC" not in text:
        return None
    reading = classify(Facts(exception_type=type(error).__name__, message=text))
    return reading if reading.kind.startswith("resource.") else None


_DEVICE_WORDS = ("CUDA", "cuda", "CUDNN", "CUBLAS", "NCCL", "nccl", "HIP", "hip", "NVIDIA")


def device_in(error: BaseException) -> Classification | None:
    """The status of a GPU runtime that the message names; `None` for anything else.

    torch raises Python's bare class out of native code, so that the status is all that is left.
    """
    from failwell.adapters.protocols.devices import device_status
    from failwell.adapters.sdk_exceptions import text_of

    text = text_of(error)
    device = device_status(text) if any(word in text for word in _DEVICE_WORDS) else None
    if device is None:
        return None
    kind, saw = device
    return Classification.from_rule(kind=kind, rule=f"gpu.{saw}", basis="code", saw=saw)


def _threads_in(error: BaseException) -> Classification | None:
    """Python's bare error for a thread that the system did not grant."""
    from failwell.adapters.sdk_exceptions import text_of

    if text_of(error) != "can't start new thread":
        return None
    return Classification.from_rule(
        kind="resource.exhausted", rule="python.RuntimeError.thread", basis="message", saw="thread"
    )
