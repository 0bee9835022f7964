"""instructor: `client = reliability(instructor.from_openai(OpenAI()))` repeats what the transport fails at, apart from re-asking.

instructor asks the model again where its answer does not fit the schema, `max_retries` times. Failures of the call itself are
repeated by failwell, under that, and count against the policy alone. The retries of the SDK client inside are switched off.

Example:
    >>> from failwell.integrations.instructor import reliability
    >>> def make(instructor, client):
    ...     return reliability(instructor.from_openai(client))
"""

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping
from functools import wraps
from inspect import iscoroutinefunction
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, cast

from failwell.adapters.describe import describe
from failwell.calls.attempt_loop import AttemptFailed, OperationEnded, notify
from failwell.calls.chain.entry import ShortenedCall
from failwell.calls.model_calls import ModelCalls, PluginOptions
from failwell.calls.operation import Operation
from failwell.calls.policy import Decision, GiveUp, Retry
from failwell.calls.retry_options import RetryOptions
from failwell.calls.sdk_retries import RetriesNotSwitchable, without_sdk_retries
from failwell.calls.suppress import catch, catch_async
from failwell.errors.context import attach
from failwell.errors.foreign_objects import safe_getattr

__all__ = ["reliability"]

C = TypeVar("C")
_PARSE_ERRORS = frozenset(
    {"ValidationError", "JSONDecodeError", "AsyncValidationError", "ResponseParsingError"}
)
"""What instructor asks the model again for. It raises them of no call."""
_ASK_AGAIN = Retry(after=0.0, why="the model is asked again for an answer that fits", charged=False)
_ENOUGH = GiveUp(why="the model was asked as often as `max_retries` allows", exhausted=True)


def reliability(client: C, *, options: RetryOptions | None = None, **parameters: Unpack[PluginOptions]) -> C:
    """The instructor client, changed in place, whose calls are repeated as their failures allow.

    `max_retries=2` of a call still says how often the model is asked again for an answer that fits. A tenacity object in its
    place is left alone: then that object decides about everything, and nothing is repeated here. Streams end on time with
    `stream=StreamTimeouts(...)` and are not repeated once they are open. A plain client reads partial objects to their end before
    it returns them: give it a `timeout`.

    Args:
        client: What `instructor.from_openai`, `from_provider` and the others return, plain or async.
        options: All parameters as one value. A parameter beside it wins.
        parameters: Those of `failwell.retry`. A model call is idempotent unless they say otherwise.

    Raises:
        RetriesNotSwitchable: the SDK client inside repeats by itself and cannot be stopped from outside.
        TypeError: it is no instructor client, a parameter has the wrong type, or there is none of that name.
        ValueError: a number makes no sense.
    """
    calls = ModelCalls("instructor", options, **parameters)
    own: Any = client
    create = safe_getattr(own, "create_fn")
    if not callable(create):
        raise TypeError(f"`reliability` takes a client of instructor, not {type(client).__name__}")
    _switch_off(own.client)
    own.create_fn = _repeated(create, calls, str(safe_getattr(own.provider, "value") or own.provider))
    return client


def _switch_off(sdk: Any) -> None:
    """Switch the retries of the SDK client off. It is changed in place: instructor holds a method of it."""
    if sdk is None:
        # A function of LiteLLM, which the caller can pass through its own plugin.
        return
    if isinstance(safe_getattr(sdk, "max_retries"), int):
        sdk.max_retries = 0
    elif without_sdk_retries(sdk) is not sdk:
        raise RetriesNotSwitchable(
            client=type(sdk).__name__, instead="switch them off where the client is made"
        )


def _repeated(create: Any, calls: ModelCalls, provider: str) -> Any:
    if iscoroutinefunction(create):

        @wraps(create)
        async def create_async(*args: Any, **kwargs: Any) -> Any:
            if not _has_schema(kwargs):
                return await calls.run_async(provider, _model(kwargs), create, *args, **kwargs)
            attempts = _begin(create, calls, provider, args, kwargs)
            if attempts is None:
                result = await create(*args, **kwargs)
            else:
                await attempts.operation.hold_async()
                result = await attempts.create_async()
            if calls.timeouts is None or not isinstance(result, AsyncGenerator):
                return result
            from failwell.calls.streams.asynchronous import limit_astream

            stream = cast("AsyncGenerator[Any]", result)
            return limit_astream(stream, calls.timeouts, clock=calls.options(provider, None).clock)

        return create_async

    @wraps(create)
    def create_plain(*args: Any, **kwargs: Any) -> Any:
        if not _has_schema(kwargs):
            return calls.run(provider, _model(kwargs), create, *args, **kwargs)
        attempts = _begin(create, calls, provider, args, kwargs)
        if attempts is None:
            result = create(*args, **kwargs)
        else:
            attempts.operation.hold()
            result = attempts.create()
        if calls.timeouts is None or not isinstance(result, Generator):
            return result
        from failwell.calls.streams.plain import limit_stream

        stream = cast("Generator[Any]", result)
        return limit_stream(stream, calls.timeouts, clock=calls.options(provider, None).clock)

    return create_plain


def _has_schema(kwargs: dict[str, Any]) -> bool:
    """Whether instructor's own loop runs. Without a schema it only calls the model."""
    return kwargs.get("response_model") is not None or not isinstance(kwargs.get("max_retries", 1), int)


def _begin(
    create: Any, calls: ModelCalls, provider: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> "_Attempts | None":
    """What replaces `max_retries`; `None` where a tenacity object decides."""
    repeats = kwargs.get("max_retries", 1)
    if not isinstance(repeats, int):
        return None
    operation = calls.operation(provider, _model(kwargs))
    attempts = kwargs["max_retries"] = _Attempts(operation, repeats)
    attempts.call = ShortenedCall(create, args, kwargs, operation.options.shrink).under(operation)
    return attempts


def _model(kwargs: dict[str, Any]) -> str | None:
    model = kwargs.get("model")
    return model if isinstance(model, str) else None


class _Attempts:
    """What instructor takes in place of a tenacity object: an iterable of attempts, each a context manager.

    A failed call is left to the operation. An answer that does not fit is repeated at once, and starts the count of
    failed calls again: it is another question. instructor makes its request of the messages before the first attempt, so
    it is called again with messages that were shortened.
    """

    call: ShortenedCall

    def __init__(self, operation: Operation, repeats: int) -> None:
        self.operation = operation
        self._repeats = max(repeats, 0)
        """How often the model may still be asked again."""
        self._delay: float | None = None
        self._error: Exception | None = None
        self.attempt_number = 0
        self._sent: Mapping[str, Any] = {}
        """The arguments with which instructor was called last."""

    def create(self) -> Any:
        """Call instructor, and again where the messages were shortened meanwhile."""
        while True:
            self._sent = self.call.kwargs
            response, error = catch(self.call)
            if error is None:
                return response
            # Whatever ended the call is raised again, unless there are shorter messages to call with.
            if not self._is_shortened:
                raise error

    async def create_async(self) -> Any:
        """`create` of an async client."""
        while True:
            self._sent = self.call.kwargs
            response, error = await catch_async(self.call)
            if error is None:
                return response
            # As in `create`.
            if not self._is_shortened:
                raise error

    @property
    def _is_shortened(self) -> bool:
        return self.call.kwargs is not self._sent

    @property
    def retry_state(self) -> Self:
        """As in tenacity: it holds the number of the attempt."""
        return self

    def __iter__(self) -> Iterator[Self]:
        while True:
            self._begin()
            yield self
            self._conclude_parse()
            error, self._error = self._error, None
            if error is not None:
                self._delay = self.operation.failed(error)
                if self._delay is None:
                    raise error
            self.operation.wait(self._delay)
            if error is not None and self._is_shortened:
                raise error

    async def __aiter__(self) -> AsyncIterator[Self]:
        while True:
            self._begin()
            yield self
            self._conclude_parse()
            error, self._error = self._error, None
            if error is not None:
                self._delay = await self.operation.failed_async(error)
                if self._delay is None:
                    raise error
            await self.operation.wait_async(self._delay)
            if error is not None and self._is_shortened:
                raise error

    def __enter__(self) -> Self:
        self.operation.enter()
        return self

    def __exit__(
        self, cls: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> bool:
        self.operation.detach()
        if error is None:
            self.operation.succeeded()
            return False
        if not isinstance(error, Exception):
            self.operation.abandoned()
            return False
        self._error = error
        return True

    def _begin(self) -> None:
        self.attempt_number += 1
        self._delay = 0.0

    def _conclude_parse(self) -> None:
        """Raise an answer that does not fit if the model was asked often enough, and forget it otherwise."""
        error = self._error
        if error is None or type(error).__name__ not in _PARSE_ERRORS:
            return
        self._error = None
        decision = _ASK_AGAIN if self._repeats else _ENOUGH
        self._record(error, decision)
        if decision is _ENOUGH:
            raise error
        self._repeats -= 1

    def _record(self, error: Exception, decision: Decision) -> None:
        """Write the row of a call that worked and whose answer does not fit."""
        options, loop = self.operation.options, self.operation.failing_loop()
        if options.guard is not None:
            # The provider has answered.
            options.guard.succeeded(self.operation.called)
        loop.attempts = 0
        loop.tries += 1
        report = describe(error, provider=options.provider, model=options.model, origin="call")
        wait = decision.after if isinstance(decision, Retry) else None
        row = loop.record(report, decision, wait=wait, called=(options.provider, options.model))
        notify(AttemptFailed(layer=loop.name, attempt=row, report=report), options.watcher)
        if wait is None:
            attach(error, loop.ledger())
            notify(OperationEnded(ledger=loop.ledger(), succeeded=False), options.watcher)
