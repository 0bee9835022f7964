"""Builds the report of an exception that a capability raised, once, inside its worker.

It uses the `failwell.errors` that is installed beside the capability, or else the host's, which needs only the
standard library. The exception itself stays in this process.
"""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

VARIABLE = "FAILWELL_TRACEBACK"
"""Says how much foreign text is recorded. The host sends the policy, and the worker sets the variable."""
_LONGEST = 4000
_arguments_of: Any = BaseException.__dict__["args"].__get__
_T = TypeVar("_T")


def attempt(work: Callable[[], _T], otherwise: _T, failed: Callable[[Exception], object] | None = None) -> _T:
    """Call foreign code and return its result, or `otherwise` if it raises; interrupts and exits pass."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001  (a hook, a property or a library of an author may raise anything at all)
        if failed is not None:
            failed(error)
        return otherwise


class InvalidCall(Exception):
    """A call names an action or arguments that the capability does not have."""

    def __init__(self, message: str, fields: list[str]) -> None:
        super().__init__(message)
        self.fields = fields


class Unsendable(Exception):
    """A result cannot be sent to the host, and a retry would not help."""


def describe_failure(error: BaseException, *, policy: str, scene: dict[str, Any]) -> dict[str, Any]:
    """The report of `error` as JSON, or its class names and text if no report can be built."""
    memory = _free_memory(error)
    try:
        return {"report": _report(error, policy, scene, memory).to_dict()}
    except Exception:  # noqa: BLE001  (an installed failwell of another version may refuse; the call is answered all the same)
        return {"exception": class_names_and_text(error), "memory": memory}


def _report(error: BaseException, policy: str, scene: dict[str, Any], memory: dict[str, float]) -> Any:
    from failwell.adapters.describe import describe
    from failwell.errors.report import Scene

    report = describe(_own_error(error), policy=policy, origin="input", scene=Scene(**scene))
    if report.kind == "internal.bug" and scene["job"] is not None:
        return _blame_capability(report, scene)
    if memory and report.resource_shortfall is None:
        return _with_memory(report, memory, _words(error))
    return report


def failure_text(error: BaseException) -> str:
    """The type, the place and the message of an exception in a worker, in one line; the message as far as the policy allows."""
    return attempt(lambda: _failure_text(error), type(error).__name__)


def _failure_text(error: BaseException) -> str:
    from failwell.adapters.describe import describe

    report = describe(error)
    return f"{report.error_type}{_place(error)}: {report.message}"


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    code = trace.tb_frame.f_code
    return f" at {code.co_filename}:{trace.tb_lineno} in {code.co_name}"


def traceback_text(error: BaseException) -> str:
    """The traceback of an exception in a worker, with its messages and source lines as far as the policy allows."""
    return attempt(lambda: _traceback_text(error), type(error).__name__)


def _traceback_text(error: BaseException) -> str:
    from failwell.adapters.describe import describe

    report = describe(error)
    trace = None if report.internal is None else report.internal.traceback
    return (trace or report.error_type).rstrip("\n")


def _own_error(error: BaseException) -> BaseException:
    """The capability error for a mistake that this worker itself found."""
    from failwell.errors.faults import CapabilityFatalError, CapabilityInputError

    if isinstance(error, InvalidCall):
        return CapabilityInputError(str(error), fields_invalid=error.fields)
    return CapabilityFatalError(str(error)) if isinstance(error, Unsendable) else error


def _blame_capability(report: Any, scene: dict[str, Any]) -> Any:
    """The report of a program error in a job, which is a defect of the capability, not of failwell."""
    from dataclasses import replace

    from failwell.errors.axes import ActionKind, Blame
    from failwell.errors.facts import UserAction

    advice = f"see where with `failwell jobs show {scene['job']}`, and fix it, or tell the author of `{scene['capability']}`"
    return replace(report, blame=Blame.WORKER, user_action=UserAction(ActionKind.CONTACT_SUPPORT, advice))


def _with_memory(report: Any, memory: dict[str, float], text: str) -> Any:
    """The report with the memory that was free when it ran out, if the error itself did not say."""
    from dataclasses import replace

    from failwell.adapters.classify import needed_mb
    from failwell.errors.facts import ResourceShortfall

    if report.kind == "resource.gpu_memory":
        free, resource = memory.get("gpu_free_mb"), "gpu_vram_mb"
    elif report.kind == "resource.system_memory":
        free, resource = memory.get("ram_available_mb"), "system_ram_mb"
    else:
        return report
    needed = report.details.get("needed_mb") or needed_mb(text)
    details = {**report.details, **{name: round(value, 1) for name, value in memory.items()}}
    if free is None or not isinstance(needed, int | float):
        return replace(report, details=details)
    shortfall = ResourceShortfall(resource, float(needed), round(free, 1))
    return replace(report, resource_shortfall=shortfall, details=details)


def class_names_and_text(error: BaseException) -> dict[str, Any]:
    """The class names and the text of an error in a worker, with invalid characters replaced, so that it can always be sent."""
    classes = [
        [_sendable(cls.__module__), _sendable(cls.__qualname__)]
        for cls in type(error).__mro__
        if cls is not object
    ]
    return {"classes": classes, "text": _sendable(_words(error))}


def _words(error: BaseException) -> str:
    """What an exception says, without running code of an author who is not known."""
    # An installed failwell of another version may have no such function.
    texts = (value for value in _arguments_of(error) if type(value) is str)
    return attempt(lambda: _printed(error), " ".join(texts))


def _printed(error: BaseException) -> str:
    from failwell.errors.safe_str import words_of

    return words_of(error)


def _sendable(text: str) -> str:
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST - 200]}…{text[-199:]}"
    return text.encode("utf-8", "replace").decode()


def _free_memory(error: BaseException) -> dict[str, float]:
    """Free memory at the moment it ran out, as reported by torch, jax or the system."""
    names = {cls.__name__ for cls in type(error).__mro__}
    text = _words(error)[:2000].lower()
    if (
        isinstance(error, MemoryError)
        or "OutOfMemoryError" in names
        or "out of memory" in text
        or "resource_exhausted" in text
    ):
        # Each is asked by itself: a system without /proc still has a graphics card.
        return {**attempt(lambda: _gpu(error), {}), **attempt(_system, {})}
    return {}


def _gpu(error: BaseException) -> dict[str, float]:
    """Graphics memory as the library sees it whose memory ran out: jax reserves most of a card for itself."""
    roots = {cls.__module__.partition(".")[0] for cls in type(error).__mro__}
    libraries = (_jax, _torch) if roots & {"jax", "jaxlib"} else (_torch, _jax)
    return libraries[0]() or libraries[1]()


def _torch() -> dict[str, float]:
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
        limit, used = mps.recommended_max_memory(), mps.driver_allocated_memory()
        return {"gpu_free_mb": max(0.0, (limit - used) / 1048576), "gpu_total_mb": limit / 1048576}
    return {}


def _jax() -> dict[str, float]:
    jax: Any = sys.modules.get("jax")
    stats = None if jax is None else jax.local_devices()[0].memory_stats()
    if not stats:
        return {}
    limit, used = stats["bytes_limit"], stats["bytes_in_use"]
    return {"gpu_free_mb": max(0.0, (limit - used) / 1048576), "gpu_total_mb": limit / 1048576}


def _system() -> dict[str, float]:
    with open("/proc/meminfo", encoding="ascii") as file:
        for row in file:
            if row.startswith("MemAvailable:"):
                return {"ram_available_mb": int(row.split()[1]) / 1024}
    return {}
