"""Bytes → an exception and what hangs below it. The same bytes always make the same tree.

Fuzzers and property tests both work on bytes, so both shrink what they find to a few of them.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

from failwell.errors.axes import ActionKind
from failwell.errors.context import scene
from failwell.errors.facts import NotBefore, ProviderMetadata, ResourceShortfall, UserAction
from failwell.errors.fault import COMMON_FIELDS, Fault
from failwell.errors.faults import CapabilityError, CapabilityInputError, WorkerOOMError
from failwell.errors.kind_registry import kinds
from failwell.errors.known_libraries import HOMES
from fuzz.zoo import TEXTS, Specimen, a_class, answering, made, specimens, values

_MOST_NODES = 12
_HEAVY = ("10,000", "1,000 groups", "value 11", "megabyte")
"""Specimens that take milliseconds to make; the tests have them one by one."""

BUILT_IN: tuple[type[BaseException], ...] = (
    ValueError, TypeError, KeyError, RuntimeError, OSError, TimeoutError, ConnectionResetError, MemoryError,
    RecursionError, SystemExit, KeyboardInterrupt, StopIteration, AssertionError, ModuleNotFoundError,
)  # fmt: skip
ATTRIBUTES = (
    "status_code", "status", "code", "type", "param", "message", "body", "response", "request", "headers",
    "request_id", "reason", "error", "errors", "details", "errno", "returncode", "timeout", "cmd", "stdout",
    "messages", "create_kwargs", "completion", "last_completion", "failed_attempts", "n_attempts", "cause",
    "litellm_debug_info", "litellm_response_headers", "llm_provider", "model", "response_headers", "retry_after",
    "sqlite_errorname", "absolute_path", "problem_mark", "lineno", "colno", "operation_name", "server_message",
    "original_exception", "in_stream", "phase", "usage", "prompt", "raw_response", "prediction", "name",
)  # fmt: skip
PLAUSIBLE: tuple[Any, ...] = (
    429, 500, 503, 401, 200, 0, -1, "429", "rate_limit_exceeded", "insufficient_quota", "ThrottlingException",
    {"error": {"message": "too many", "type": "rate_limit_error", "code": 1300}}, [{"error": {"code": 429}}],
    {"Error": {"Code": "ThrottlingException"}, "ResponseMetadata": {"HTTPStatusCode": 400, "HTTPHeaders": {}}},
    {"retry-after": "7", "x-request-id": "req_1", "authorization": "Bearer secret-of-mine"}, "7.5", "52s",
    {"error": {"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "52s"}]}},
    "<html>502 Bad Gateway</html>", b'{"error": "x"}', None, 1e308, [], {}, "2026-01-01T00:00:00Z", "SQLITE_BUSY",
)  # fmt: skip


class Choices:
    """Decisions, read off bytes; when they run out, every decision is the first one."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def below(self, limit: int) -> int:
        """A number from zero up to `limit`."""
        size = 1 if limit <= 256 else 2
        taken = self._data[self._at : self._at + size]
        self._at += size
        return int.from_bytes(taken, "big") % limit

    def one(self, options: Any) -> Any:
        """One of the options."""
        return options[self.below(len(options))]

    @property
    def over(self) -> bool:
        """Whether the bytes have run out."""
        return self._at >= len(self._data)


def tree(data: bytes) -> BaseException:
    """The exception that `data` stands for."""
    choices = Choices(data)
    made_so_far: list[BaseException] = []
    while len(made_so_far) < _MOST_NODES and (not made_so_far or not choices.over):
        error = _node(choices, made_so_far)
        _hang(choices, error, made_so_far)
        made_so_far.append(error)
    return made_so_far[-1]


def _node(choices: Choices, below: list[BaseException]) -> BaseException:
    make = choices.one((_plain, _specimen, _fault, _vendor, _capability, _group))
    return make(choices, below)


def _plain(choices: Choices, _below: list[BaseException]) -> BaseException:
    cls = choices.one(BUILT_IN)
    args = [choices.one((choices.one(TEXTS), choices.one(_VALUES)())) for _ in range(choices.below(3))]
    error = cls.__new__(cls, *args)
    return cast("BaseException", error)


def _specimen(choices: Choices, _below: list[BaseException]) -> BaseException:
    return choices.one(_SPECIMENS)()


def _fault(choices: Choices, _below: list[BaseException]) -> BaseException:
    fault = Fault() if choices.below(2) else Fault(kind=choices.one(_KINDS))
    for _ in range(choices.below(5)):
        field = choices.one(_FIELDS)
        value = choices.one((choices.one(_VALUES), lambda: choices.one(TEXTS), lambda: _fact(choices)))()
        object.__setattr__(fault, field, value)
    return fault


def _fact(choices: Choices) -> Any:
    value = choices.one(_VALUES)()
    return choices.one(
        (
            {choices.one(TEXTS): value},
            NotBefore(after=value),
            ProviderMetadata(status_code=value, headers={"retry-after": value}),
            ResourceShortfall("disk_mb", value, 1.0),
            UserAction(ActionKind.DECIDE, value),
            [value, choices.one(TEXTS)],
        )
    )


def _vendor(choices: Choices, _below: list[BaseException]) -> BaseException:
    module, name = choices.one(_VENDORS)
    members = {choices.one(ATTRIBUTES): _carried(choices) for _ in range(choices.below(6))}
    text = choices.one(TEXTS)
    cls = a_class(name, Exception, type, **{"__str__": answering(text), **members, "__module__": module})
    return made(cls, text)


def _carried(choices: Choices) -> Any:
    inner = choices.one((choices.one(PLAUSIBLE), choices.one(_VALUES)(), choices.one(TEXTS)))
    if choices.below(3):
        return inner
    # Replies and requests are objects with attributes of their own.
    return type("Reply", (), {choices.one(ATTRIBUTES): inner, "headers": choices.one(PLAUSIBLE)})()


def _capability(choices: Choices, _below: list[BaseException]) -> BaseException:
    text = choices.one(TEXTS)
    return choices.one((CapabilityError(text), CapabilityInputError(text), WorkerOOMError(text)))


def _group(choices: Choices, below: list[BaseException]) -> BaseException:
    held = [choices.one(below) for _ in range(choices.below(4))] if below else []
    return BaseExceptionGroup(choices.one(TEXTS), held or [ValueError("alone")])


def _hang(choices: Choices, error: BaseException, below: list[BaseException]) -> None:
    """Raise it somewhere, give it notes, and hang something below it, or itself."""
    match choices.below(6):
        case 0:
            _link(error, "__cause__", choices.one([*below, error]))
        case 1:
            _link(error, "__context__", choices.one([*below, error]))
        case 2:
            object.__setattr__(
                error, "__notes__", choices.one(([choices.one(TEXTS)], choices.one(_VALUES)()))
            )
        case 3:
            _raise(error, choices.one(TEXTS))
        case _:
            if below and choices.below(2):
                # A circle: what hangs below was raised from what hangs above.
                _link(choices.one(below), "__cause__", error)


def _link(error: BaseException, slot: str, other: BaseException) -> None:
    BaseException.__dict__[slot].__set__(error, other)


def _raise(error: BaseException, text: str) -> None:
    try:
        with scene(run=text, item=text):
            raise error
    except BaseException:  # noqa: BLE001  (raised only to be given a traceback and a place)
        return


def _vendors() -> list[tuple[str, str]]:
    return [
        (top, name)
        for top, home in sorted(HOMES.items())
        for name in sorted(import_module(f"failwell.adapters.vendors.{home}").TABLES.get(top, ()))
    ]


_VALUES: list[Callable[[], Any]] = [make for number, make in enumerate(values()) if number != 11]
_SPECIMENS: list[Specimen] = [
    make for name, make in specimens().items() if not any(heavy in name for heavy in _HEAVY)
]
_FIELDS = sorted(COMMON_FIELDS - {"kind"})
_KINDS = [kind.name for kind in kinds()]
_VENDORS = _vendors()
