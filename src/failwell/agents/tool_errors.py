"""What the exception of a tool becomes for the model: the model's view as JSON, never the exception's text.

A run goes on after it. A cancellation is no failure of the tool and is raised again.
"""

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial, wraps
from inspect import iscoroutine, iscoroutinefunction
from typing import Any

from failwell.adapters.describe import describe
from failwell.agents.tool_loop import ToolCallRepeated, ToolLoopBreaker
from failwell.calls.suppress import Suppressed, call_hook, catch, catch_async, record_suppressed
from failwell.delivery.plain_text import finite, json_text
from failwell.errors.axes import Category
from failwell.errors.frozen import frozen
from failwell.errors.report import ErrorReport, Scene

_REASON = "the exception of a tool was returned to the model as a typed result"


@frozen
class ToolFailure:
    """A failed tool call: the report for us, and what the model may see of it."""

    report: ErrorReport
    content: dict[str, Any]
    """The model's view: kind, title, category, retryable, the wait, an action and advice."""
    text: str
    """The same as JSON."""

    @property
    def is_input(self) -> bool:
        """Whether the arguments were at fault, so that a corrected call may succeed."""
        return self.report.category is Category.USER_INPUT


class ToolCalls:
    """Turns the exceptions of tools into results, and records each of them."""

    __slots__ = ("_breaker", "_observer")

    def __init__(
        self,
        *,
        observer: Callable[[ErrorReport], object] | None = None,
        breaker: ToolLoopBreaker | None = None,
    ) -> None:
        """Read the parameters of a plugin.

        Args:
            observer: Called with the report of each failed tool call. Without it the observers of
                `failwell.calls.observe` get it, or the log.
            breaker: Refuses calls that fail in the same way again; one of its own by default.

        Raises:
            TypeError: the observer cannot be called.
        """
        if observer is not None and not callable(observer):
            raise TypeError(f"`on_tool_error` takes a function, not {type(observer).__name__}")
        self._observer = observer
        self._breaker = breaker or ToolLoopBreaker()

    def refused(self, tool: str, arguments: object, *, run: Hashable = None) -> ToolFailure | None:
        """The result of a call that is not made, because it failed in the same way before; `None` if it may be made."""
        repeated = self._breaker.refuses(tool, arguments, run=run)
        if repeated is None:
            return None
        return _failure(describe(repeated, origin="tool", scene=Scene(tool=tool)), repeated)

    def succeeded(self, tool: str, arguments: object, *, run: Hashable = None) -> None:
        """Take note of a call that worked."""
        self._breaker.succeeded(tool, arguments, run=run)

    def failed(
        self,
        error: Exception,
        *,
        tool: str | None = None,
        arguments: object = None,
        run: Hashable = None,
        idempotent: bool | None = None,
    ) -> ToolFailure:
        """The result of a tool call that raised `error`.

        Args:
            error: What the tool raised.
            tool: Its name.
            arguments: What it was called with, a dictionary or its JSON. With them, a call that failed in the same way before
                is told to the model as such.
            run: What the calls of one run have in common, where the framework knows it.
            idempotent: Whether a repeat is harmless although the outcome is unknown, where the tool says so.

        Raises:
            Exception: `error`, where it says that the work was cancelled.
        """
        scene = None if tool is None else Scene(tool=tool)
        report = describe(error, origin="tool", scene=scene, idempotent=idempotent)
        if report.category is Category.CANCELLED:
            raise error
        # The model gets it, and the run goes on: nobody is called for it.
        report = replace(report, handled=True)
        if self._observer is not None:
            call_hook(self._observer, report, reason="the observer of tool errors failed and was passed over")
        else:
            cause = f"{report.error_type} ({report.kind})"
            record_suppressed(Suppressed(reason=_REASON, cause=cause, report=report, at=report.occurred_at))
        repeated = None
        if tool is not None and arguments is not None:
            repeated = self._breaker.failed(tool, arguments, report, run=run)
        return _failure(report, repeated)

    def guarded(
        self,
        function: Callable[..., Any],
        *,
        tool: str | None = None,
        answer: Callable[[ToolFailure], Any] = lambda failure: failure.text,
    ) -> Callable[..., Any]:
        """The function of a tool, plain or async, whose exceptions become its results; harmless twice.

        Args:
            function: What runs the tool.
            tool: The name of the tool, for reports.
            answer: What is returned of a failure; by default its text.
        """
        if hasattr(function, "failwell_tool"):
            return function

        def ended(result: Any, error: Exception | None) -> Any:
            # The model gets every failure of a tool.
            return result if error is None else answer(self.failed(error, tool=tool))

        async def finish(result: Any) -> Any:
            return ended(*await catch_async(lambda: result))

        def call(*args: Any, **kwargs: Any) -> Any:
            result = ended(*catch(partial(function, *args, **kwargs)))
            return finish(result) if iscoroutine(result) else result

        async def call_async(*args: Any, **kwargs: Any) -> Any:
            return await finish(function(*args, **kwargs))

        # Frameworks ask whether a function has to be awaited.
        outer = wraps(function)(call_async if iscoroutinefunction(function) else call)
        outer.__dict__["failwell_tool"] = True
        return outer


def _failure(report: ErrorReport, repeated: ToolCallRepeated | None) -> ToolFailure:
    content = finite(report.view("model") if repeated is None else repeated.result(report))
    return ToolFailure(report=report, content=content, text=json_text(content))
