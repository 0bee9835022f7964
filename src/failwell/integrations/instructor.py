"""instructor: `client = reliability(instructor.from_openai(OpenAI()))` repeats what the transport fails at, apart from re-asking.

instructor asks the model again where its answer does not fit the schema, `max_retries` times. Failures of the call itself are
repeated by failwell around that, and the question is then asked from its beginning. The retries of the SDK client inside are
switched off.

Example:
    >>> from failwell.integrations.instructor import reliability
    >>> def make(instructor, client):
    ...     return reliability(instructor.from_openai(client))
"""

from collections.abc import AsyncGenerator, Generator
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, TypeVar, Unpack, cast

from failwell.calls.model_calls import ModelCalls
from failwell.calls.retry_options import RetryParameters
from failwell.calls.sdk_retries import RetriesNotSwitchable, without_sdk_retries
from failwell.errors.foreign_objects import safe_getattr

__all__ = ["reliability"]

C = TypeVar("C")


def reliability(client: C, **parameters: Unpack[RetryParameters]) -> C:
    """The instructor client, changed in place, whose calls are repeated as their failures allow.

    `max_retries=2` of a call still says how often the model is asked again for an answer that fits. A tenacity object in its
    place is left alone: then that object decides about everything, and nothing is repeated here. Streams end on time with
    `stream=StreamTimeouts(...)` and are not repeated once they are open. A plain client reads partial objects to their end before
    it returns them: give it a `timeout`.

    Args:
        client: What `instructor.from_openai`, `from_provider` and the others return, plain or async.
        parameters: Those of `failwell.retry`. A model call is idempotent unless they say otherwise.

    Raises:
        RetriesNotSwitchable: the SDK client inside repeats by itself and cannot be stopped from outside.
        TypeError: it is no instructor client, a parameter has the wrong type, or there is none of that name.
        ValueError: a number makes no sense.
    """
    calls = ModelCalls("instructor", **parameters)
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
            if _repeats_itself(kwargs):
                result = await create(*args, **kwargs)
            else:
                result = await calls.run_async(provider, _model(kwargs), create, *args, **kwargs)
            if calls.timeouts is None or not isinstance(result, AsyncGenerator):
                return result
            from failwell.calls.streams.asynchronous import limit_astream

            stream = cast("AsyncGenerator[Any]", result)
            return limit_astream(stream, calls.timeouts, clock=calls.options(provider, None).clock)

        return create_async

    @wraps(create)
    def create_plain(*args: Any, **kwargs: Any) -> Any:
        if _repeats_itself(kwargs):
            result = create(*args, **kwargs)
        else:
            result = calls.run(provider, _model(kwargs), create, *args, **kwargs)
        if calls.timeouts is None or not isinstance(result, Generator):
            return result
        from failwell.calls.streams.plain import limit_stream

        stream = cast("Generator[Any]", result)
        return limit_stream(stream, calls.timeouts, clock=calls.options(provider, None).clock)

    return create_plain


def _repeats_itself(kwargs: dict[str, Any]) -> bool:
    """Whether the caller passed a tenacity object."""
    return not isinstance(kwargs.get("max_retries", 1), int)


def _model(kwargs: dict[str, Any]) -> str | None:
    model = kwargs.get("model")
    return model if isinstance(model, str) else None
