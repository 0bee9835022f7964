"""LiteLLM: `completion = reliability(litellm.completion)` and `router = reliability(Router(...))` call under one retry authority.

LiteLLM's own retries, those of the router and those of the SDK below are switched off with each call, so the calls that
arrive at a provider are the attempts in the ledger.

Example:
    >>> from failwell.integrations.litellm import reliability
    >>> def make(litellm):
    ...     return reliability(litellm.completion)
"""

from collections.abc import AsyncGenerator, Callable, Generator
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, TypeVar, Unpack, cast

from failwell.adapters.describe import describe
from failwell.calls.model_calls import ModelCalls
from failwell.calls.retry_options import RetryParameters
from failwell.calls.suppress import call_hook
from failwell.errors.foreign_objects import safe_getattr
from failwell.errors.missing_extra import need
from failwell.errors.report import ErrorReport

__all__ = ["failure_callback", "reliability"]

T = TypeVar("T")
_OFF = {"num_retries": 0, "max_retries": 0, "retry_policy": None}
_OFF_IN_ROUTER = {"num_retries": 0}
"""A number of zero in the request beats those of the router, of its deployments and of its policies."""
_METHODS = (
    "completion", "acompletion", "text_completion", "atext_completion", "responses", "aresponses", "embedding",
    "aembedding",
)  # fmt: skip


def reliability(target: T, **parameters: Unpack[RetryParameters]) -> T:
    """`target` under one retry authority: a function of LiteLLM that calls a model, or a `Router`, which is changed in place.

    A stream is repeated until its first chunk, and never after it. The fallbacks of a router stay its own: the calls that
    they make are part of one attempt. `litellm.num_retries` is set to `None`.

    Args:
        target: `litellm.completion`, `litellm.acompletion`, another function of LiteLLM that calls a model, or a `Router`.
        parameters: Those of `failwell.retry`. A model call is idempotent unless they say otherwise.

    Raises:
        MissingExtra: litellm is not installed.
        TypeError: a parameter has the wrong type, there is none of that name, or `target` cannot be called.
        ValueError: a number makes no sense.
    """
    calls = ModelCalls("litellm", **parameters)
    # LiteLLM does so itself after the first failure.
    cast("Any", need("litellm")).num_retries = None
    if type(target).__name__ == "Router":
        for name in _METHODS:
            method = safe_getattr(target, name)
            if callable(method):
                setattr(target, name, _repeated(method, calls, _OFF_IN_ROUTER))
        return target
    if not callable(target):
        raise TypeError(
            f"`reliability` takes a function of litellm or a `Router`, not {type(target).__name__}"
        )
    return cast("T", _repeated(target, calls, _OFF))


def failure_callback(on_error: Callable[[ErrorReport], object]) -> Any:
    """A callback for `litellm.callbacks`, which calls `on_error` with the report of each call that failed.

    It repeats nothing. It is for calls that another library makes through LiteLLM, where `reliability` cannot be put.

    Raises:
        MissingExtra: litellm is not installed.
        TypeError: `on_error` cannot be called.
    """
    if not callable(on_error):
        raise TypeError(f"`on_error` takes a function, not {type(on_error).__name__}")
    logger: Any = need("litellm.integrations.custom_logger").CustomLogger

    class FailureCallback(logger):
        """Describes the failures of LiteLLM's calls."""

        def log_failure_event(self, kwargs: Any, *_args: Any, **_named: Any) -> None:
            error = kwargs.get("exception")
            if isinstance(error, Exception):
                report = describe(error, origin="call", idempotent=True)
                call_hook(on_error, report, reason="the observer of failed calls failed and was passed over")

        async def async_log_failure_event(self, kwargs: Any, *_args: Any, **_named: Any) -> None:
            self.log_failure_event(kwargs)

    return FailureCallback()


def _repeated(function: Any, calls: ModelCalls, off: dict[str, Any]) -> Any:
    if iscoroutinefunction(function):

        @wraps(function)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            provider, model = _target(args, kwargs)
            kwargs |= off
            if not kwargs.get("stream"):
                return await calls.run_async(provider, model, function, *args, **kwargs)
            stream = calls.astream(provider, model, function, *args, **kwargs)
            return _begun_async(await anext(stream, _END), stream)

        return call_async

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        provider, model = _target(args, kwargs)
        kwargs |= off
        if not kwargs.get("stream"):
            return calls.run(provider, model, function, *args, **kwargs)
        stream = calls.stream(provider, model, function, *args, **kwargs)
        return _begun(next(stream, _END), stream)

    return call


_END = object()


def _begun(first: Any, stream: Generator[Any, Any, Any]) -> Generator[Any]:
    """The stream, whose first chunk was read: what failed before it is raised by the call and not by the reader."""
    try:
        if first is not _END:
            yield first
            yield from stream
    finally:
        stream.close()


async def _begun_async(first: Any, stream: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any]:
    try:
        if first is not _END:
            yield first
            async for chunk in stream:
                yield chunk
    finally:
        await stream.aclose()


def _target(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str | None, str | None]:
    """The provider and the model, as LiteLLM's `provider/model` names them."""
    model = kwargs.get("model", args[0] if args else None)
    if not isinstance(model, str):
        return None, None
    provider, slash, name = model.partition("/")
    return (provider, name) if slash else (None, model)
