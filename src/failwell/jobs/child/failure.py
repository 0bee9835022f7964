"""An exception, told so that the host can classify it: names of its classes, words, causes, numbers.

Where failwell is installed the report is made here, by `failwell.describe`; where it is not, the facts
travel and the host makes the report from them. The exception itself stays in this process.
"""

import sys
import traceback
from typing import Any, cast

_ATTRIBUTES = (
    "errno", "strerror", "filename", "winerror", "code", "status_code", "status", "type", "param", "reason",
    "request_id", "name", "path", "returncode", "timeout", "retry_after", "error_code", "body",
)  # fmt: skip
_TYPED = (
    "category", "default_retriable", "fields_invalid", "retry_after_seconds", "capability_name",
    "config_class_name", "timeout_seconds", "process_returncode",
)  # fmt: skip
_DEEPEST = 12
_LONGEST = 4000
_MOST_MEMBERS = 20


def told(error: BaseException, policy: str) -> dict[str, Any]:
    """What the host needs to know of `error`."""
    measured = _measured(error)
    try:
        made = _described(error, policy)
        if made is not None:
            return {"report": made, "measured": measured}
    except Exception:  # noqa: BLE001  (an installed failwell of another version may refuse; the facts still travel)
        return {"exception": _facts(error, 0, set()), "measured": measured}
    return {"exception": _facts(error, 0, set()), "measured": measured}


def is_cancellation(error: BaseException) -> bool:
    """Whether this is how a capability stops that was asked to. One that was not may raise it, too."""
    return any(cls.__name__ in ("CapabilityCancelledError", "CancelledError") for cls in type(error).__mro__)


def _described(error: BaseException, policy: str) -> dict[str, Any] | None:
    if getattr(sys.modules.get("failwell"), "__stand_in__", False):
        return None
    try:
        from failwell.report.describe import describe
    except ImportError:
        return None
    return describe(error, policy=policy).to_dict()


def _facts(error: BaseException, level: int, seen: set[int]) -> dict[str, Any]:
    seen.add(id(error))
    cls = type(error)
    made: dict[str, Any] = {
        "classes": [[one.__module__, one.__qualname__] for one in cls.__mro__ if one is not object],
        "text": _safe(lambda: str(error)),
        "repr": _safe(lambda: repr(error)),
        "attributes": _attributes(error),
    }
    notes = getattr(error, "__notes__", None)
    if isinstance(notes, list):
        made["notes"] = [_words(note) for note in cast("list[Any]", notes)[:_MOST_MEMBERS]]
    if level == 0:
        made["traceback"] = _safe(lambda: "".join(traceback.format_exception(error)), 20_000)
        made["site"] = _site(error)
    typed = _typed(error)
    if typed is not None:
        made["typed"] = typed
    if level < _DEEPEST:
        below = error.__cause__
        via = "cause"
        if below is None and not error.__suppress_context__:
            below, via = error.__context__, "context"
        if below is not None and id(below) not in seen:
            made["below"] = {"via": via, **_facts(below, level + 1, seen)}
        if isinstance(error, BaseExceptionGroup):
            inner = cast("ExceptionGroup[Exception]", error).exceptions[:_MOST_MEMBERS]
            made["members"] = [_facts(one, level + 1, seen) for one in inner if id(one) not in seen]
    return made


def _attributes(error: BaseException) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name in _ATTRIBUTES:
        value = _asked(error, name)
        if value is not None:
            made[name] = value
    response = getattr(error, "response", None)
    if response is not None:
        status = _asked(response, "status_code")
        headers = _safe_headers(response)
        made["response"] = {"status_code": status, "headers": headers}
    return made


def _asked(holder: object, name: str) -> Any:
    try:
        return _plain(getattr(holder, name, None))
    except Exception:  # noqa: BLE001  (a property of somebody else's class may raise anything)
        return None


def _plain(value: object, level: int = 0) -> Any:
    if isinstance(value, bool | int) or (isinstance(value, float) and abs(value) < 1e300):
        return value if not isinstance(value, int) or abs(value) < 2**63 else None
    if isinstance(value, str):
        return value[:_LONGEST]
    if isinstance(value, dict) and level < 4:
        pairs = list(cast("dict[Any, Any]", value).items())[:50]
        return {str(k)[:200]: _plain(v, level + 1) for k, v in pairs}
    if isinstance(value, list | tuple) and level < 4:
        return [_plain(one, level + 1) for one in cast("list[Any]", value)[:50]]
    return None


def _safe_headers(response: Any) -> dict[str, str]:
    try:
        held: dict[Any, Any] = dict(response.headers)
        pairs = list(held.items())[:60]
        return {str(key)[:100]: str(value)[:500] for key, value in pairs}
    except Exception:  # noqa: BLE001  (a foreign reply may be anything)
        return {}


def _typed(error: BaseException) -> dict[str, Any] | None:
    """The fields of an error made from the stand-in classes."""
    names = [cls.__name__ for cls in type(error).__mro__ if cls.__module__ == "failwell.capability"]
    if not names:
        return None
    fields = {name: value for name in _TYPED if (value := _asked(error, name)) is not None}
    short = getattr(error, "resource_shortfall", None)
    if short is not None:
        fields["resource_shortfall"] = {
            name: _asked(short, name) for name in ("resource", "needed", "available")
        }
    return {"class": names[0], "fields": fields}


def _site(error: BaseException) -> list[str] | None:
    step = error.__traceback__
    if step is None:
        return None
    while step.tb_next is not None:
        step = step.tb_next
    code = step.tb_frame.f_code
    return [str(step.tb_frame.f_globals.get("__name__", "")), code.co_qualname]


def _words(thing: object) -> str:
    return _safe(lambda: str(thing))


def _safe(make: Any, limit: int = _LONGEST) -> str:
    try:
        made = make()
        return made if len(made) <= limit else f"{made[: limit - 200]}…{made[-199:]}"
    except Exception:  # noqa: BLE001  (a foreign `__str__` may raise anything at all)
        return ""


def _measured(error: BaseException) -> dict[str, float]:
    """Free memory at the moment it ran out, from whichever library holds it."""
    try:
        names = {cls.__name__ for cls in type(error).__mro__}
        said = str(error)[:2000].lower()
        if not (
            isinstance(error, MemoryError)
            or "OutOfMemoryError" in names
            or "out of memory" in said
            or "resource_exhausted" in said
        ):
            return {}
        return {**_gpu(), **_system()}
    except Exception:  # noqa: BLE001  (measuring is a courtesy; the failure is told without it)
        return {}


def _gpu() -> dict[str, float]:
    torch: Any = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is not None and cuda.is_available() and cuda.is_initialized():
        free, total = cuda.mem_get_info()
        return {"gpu_free_mb": free / 1048576, "gpu_total_mb": total / 1048576}
    mps = getattr(torch, "mps", None)
    if (
        mps is not None
        and getattr(torch.backends, "mps", None) is not None
        and torch.backends.mps.is_available()
    ):
        most, held = mps.recommended_max_memory(), mps.driver_allocated_memory()
        return {"gpu_free_mb": max(0.0, (most - held) / 1048576), "gpu_total_mb": most / 1048576}
    jax: Any = sys.modules.get("jax")
    if jax is not None:
        stats = jax.local_devices()[0].memory_stats()
        if stats:
            most, held = stats["bytes_limit"], stats["bytes_in_use"]
            return {"gpu_free_mb": (most - held) / 1048576, "gpu_total_mb": most / 1048576}
    return {}


def _system() -> dict[str, float]:
    with open("/proc/meminfo", encoding="ascii") as file:
        for row in file:
            if row.startswith("MemAvailable:"):
                return {"ram_available_mb": int(row.split()[1]) / 1024}
    return {}


def plain_words(error: BaseException) -> dict[str, Any]:
    """The least that can always be sent: class names, and the text with everything odd replaced."""
    return {
        "classes": [
            [_sendable(one.__module__), _sendable(one.__qualname__)]
            for one in type(error).__mro__
            if one is not object
        ],
        "text": _sendable(error),
    }


def _sendable(thing: object) -> str:
    return _words(thing).encode("utf-8", "replace").decode()
