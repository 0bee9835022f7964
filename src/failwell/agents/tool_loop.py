"""Stop an agent that makes the same failing tool call again and again.

A failure that does not go away by itself, of the same kind and with the same arguments, is not worth a third call. Other
arguments are another call, and failures that pass (a busy service, a lost connection) are not counted.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial, wraps
from hashlib import blake2b
from threading import Lock
from typing import Any, ParamSpec, TypeVar, cast

from failwell.adapters.describe import describe
from failwell.calls.argument_checks import check_count
from failwell.calls.suppress import OnRaise
from failwell.errors.axes import Category, Certainty
from failwell.errors.context import current_scene
from failwell.errors.fault import Fault
from failwell.errors.foreign_objects import safe_call, safe_getattr
from failwell.errors.report import ErrorReport

_P = ParamSpec("_P")
_R = TypeVar("_R")
_PASSING = frozenset(
    {Category.TRANSIENT, Category.RESOURCE, Category.AMBIGUOUS, Category.CAPACITY, Category.CANCELLED}
)
"""Failures after which the same call may succeed, or may have succeeded."""
_ADVICE = {
    Category.USER_INPUT: "Change the arguments, or stop and say what is missing.",
    Category.CONTENT: "Change the arguments, or stop and say what is missing.",
    Category.DENIED: "Other arguments will not change that. Do without it, or stop and say so.",
    Category.CONFIGURATION: "Other arguments will not change that. Do without it, or stop and say so.",
    Category.LIMIT: "Other arguments will not change that. Do without it, or stop and say so.",
}
_OTHER_ADVICE = "Change the arguments, do it another way, or stop and say so."
_MOST_KINDS = 16
_DEEPEST = 32
_LARGEST = 10**18


class ToolCallRepeated(Fault):
    """A tool call failed the same way so often that it is not made again. It has the kind of the failure."""

    tool: str
    failures: int
    """How often this call failed this way."""
    executed: bool
    """Whether it was made once more; if not, it was refused."""

    def summary(self) -> str:
        end = "" if self.executed else " and was not made again"
        return f"the call of `{self.tool}` failed the same way {_times(self.failures)}{end}"

    def result(self, report: ErrorReport | None = None) -> dict[str, Any]:
        """What the model gets as the result of the call: its view of `report`, or of this, and what it should do instead."""
        report = report or describe(self, origin="tool")
        end = "" if self.executed else " and was not made again"
        advice = _ADVICE.get(report.category, _OTHER_ADVICE)
        return {
            **report.view("model"),
            "advice": f"This call failed the same way {_times(self.failures)}{end}. {advice}",
            "failures": self.failures,
        }

    @property
    def text(self) -> str:
        """The same as JSON."""
        return json.dumps(self.result(), ensure_ascii=False)


@dataclass(slots=True)
class _Failures:
    """The failures of one call: how many of each kind, and what had succeeded before the latest."""

    kinds: dict[str, int] = field(default_factory=dict[str, int])
    successes: int = 0


class ToolLoopBreaker:
    """Counts the failures of each tool call by its arguments and its kind, and refuses a call that failed alike before.

    A call that has failed `limit` times in the same way is refused. After a success of another call it may be made once more,
    because that may have changed what was missing, but no call fails in the same way more than twice `limit` times. A
    success of the call itself forgets its failures. Threads and tasks may share it. It keeps hashes of the arguments only.

    Args:
        limit: Failures of one kind after which the same call is refused.
        most: Calls that it remembers; of more the latest.

    Raises:
        ValueError: a number is not at least 1.

    Example:
        >>> from failwell import Fault, describe
        >>> from failwell.agents import ToolLoopBreaker
        >>> breaker = ToolLoopBreaker()
        >>> for _ in range(2):
        ...     failure = breaker.failed("search", {"query": ""}, describe(Fault(kind="tool.input_invalid")))
        >>> breaker.refuses("search", {"query": ""}).result()["advice"]
        'This call failed the same way twice and was not made again. Change the arguments, or stop and say what is missing.'
        >>> breaker.refuses("search", {"query": "cats"}) is None
        True
    """

    def __init__(self, *, limit: int = 2, most: int = 1_000) -> None:
        check_count("limit", limit)
        check_count("most", most)
        self._limit = limit
        self._most = most
        self._lock = Lock()
        self._calls: OrderedDict[tuple[Hashable, str, bytes], _Failures] = OrderedDict()
        self._successes: OrderedDict[Hashable, int] = OrderedDict()

    def refuses(self, tool: str, arguments: object, *, run: Hashable = None) -> ToolCallRepeated | None:
        """Why the call is not made, or `None` if it may be.

        Args:
            tool: The name of the tool.
            arguments: A dictionary, or its JSON. The order of members and those that are `null` do not count.
            run: What the calls of one run have in common; by default the run or session of the `scene` around this.
        """
        if not self._calls:
            return None
        run = _run(run)
        with self._lock:
            failures = self._calls.get((run, tool, _digest(arguments)))
            if failures is None:
                return None
            kind, count = max(failures.kinds.items(), key=lambda pair: pair[1])
            if count < self._limit:
                return None
            if failures.successes != self._successes.get(run, 0) and count < 2 * self._limit:
                return None
        return _repeated(tool, kind, count, executed=False)

    def failed(
        self, tool: str, arguments: object, report: ErrorReport, *, run: Hashable = None
    ) -> ToolCallRepeated | None:
        """Count a failure; what to tell the model instead of it, once the same call will be refused."""
        if report.retryable or report.category in _PASSING:
            return None
        run = _run(run)
        key = (run, tool, _digest(arguments))
        with self._lock:
            failures = self._calls.setdefault(key, _Failures())
            self._calls.move_to_end(key)
            if report.kind in failures.kinds or len(failures.kinds) < _MOST_KINDS:
                failures.kinds[report.kind] = failures.kinds.get(report.kind, 0) + 1
            failures.successes = self._successes.get(run, 0)
            count = failures.kinds.get(report.kind, 0)
            while len(self._calls) > self._most:
                self._calls.popitem(last=False)
        return None if count < self._limit else _repeated(tool, report.kind, count, executed=True)

    def succeeded(self, tool: str, arguments: object, *, run: Hashable = None) -> None:
        """Forget the failures of this call, and let the others be made once more."""
        if not self._calls:
            return
        run = _run(run)
        with self._lock:
            self._calls.pop((run, tool, _digest(arguments)), None)
            self._successes[run] = self._successes.get(run, 0) + 1
            self._successes.move_to_end(run)
            while len(self._successes) > self._most:
                self._successes.popitem(last=False)

    def wrap(self, function: Callable[_P, _R], *, name: str | None = None) -> Callable[_P, _R]:
        """The tool `function`, plain or async, which raises `ToolCallRepeated` instead of failing the same way again.

        Args:
            function: The tool.
            name: Its name; that of the function by default.
        """
        from inspect import iscoroutinefunction, signature

        tool = name or getattr(function, "__name__", type(function).__name__)
        shape = signature(function)

        def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            arguments = dict(shape.bind_partial(*args, **kwargs).arguments)
            refusal = self.refuses(tool, arguments)
            if refusal is not None:
                raise refusal
            return arguments

        def fail(arguments: Any, error: Exception) -> None:
            if not isinstance(error, ToolCallRepeated):
                self.failed(tool, arguments, describe(error, origin="tool"))

        if iscoroutinefunction(function):

            @wraps(function)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                arguments = begin(args, kwargs)
                with OnRaise(partial(fail, arguments)):
                    result = await cast("Any", function)(*args, **kwargs)
                self.succeeded(tool, arguments)
                return result

            return cast("Callable[_P, _R]", call_async)

        @wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            arguments = begin(args, kwargs)
            with OnRaise(partial(fail, arguments)):
                result = function(*args, **kwargs)
            self.succeeded(tool, arguments)
            return result

        return call


def _repeated(tool: str, kind: str, failures: int, *, executed: bool) -> ToolCallRepeated:
    certainty = None if executed else Certainty.NOT_SENT
    return ToolCallRepeated(
        kind=kind, tool=tool, failures=failures, executed=executed, certainty=certainty, retryable=False
    )


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _run(run: Hashable) -> Hashable:
    if run is not None:
        return run
    scene = current_scene()
    return scene.run or scene.session


def _digest(arguments: object) -> bytes:
    """A hash of the arguments that is the same for calls that mean the same."""
    if isinstance(arguments, str):
        parsed = safe_call(json.loads, None, arguments)
        arguments = arguments if parsed is None else parsed
    text = json.dumps(_normal(arguments, _DEEPEST), sort_keys=True, ensure_ascii=True)
    return blake2b(text.encode(), digest_size=16).digest()


def _normal(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, int):
        # Python refuses to print what is much larger.
        return value if abs(value) < _LARGEST else hex(value)
    if depth <= 0:
        return "…"
    if isinstance(value, Mapping):
        members = cast("Mapping[Any, Any]", value)
        return {
            name if isinstance(name, str) else safe_call(repr, "", name): _normal(member, depth - 1)
            for name, member in members.items()
            if member is not None
        }
    if isinstance(value, list | tuple):
        return [_normal(item, depth - 1) for item in cast("list[Any]", value)]
    dump = safe_getattr(value, "model_dump")
    if callable(dump):
        return _normal(safe_call(cast("Any", dump), None), depth - 1)
    if is_dataclass(value) and not isinstance(value, type):
        return _normal({each.name: getattr(value, each.name) for each in fields(value)}, depth - 1)
    # Two objects that cannot be compared are two calls: their addresses differ.
    return safe_call(repr, str(id(value)), value)
