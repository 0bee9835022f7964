"""`effect`: a function with a side effect runs once for each key, also if the process dies or an agent plans anew.

A claim is stored before the function is called, and its result after it. A later call with the same key gets
that result. If the process died in between, nobody knows whether the effect happened: then the caller's
`reconcile` hook decides, or a typed failure is raised. The function is not called a second time without an answer.
`effect_policy` reads what the annotations of an MCP tool say about repeating it.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import (
    isasyncgenfunction,
    iscoroutinefunction,
    isgeneratorfunction,
    signature,
)
from typing import Any, Literal, TypeVar, cast

from failwell.calls.argument_checks import check_callable, check_number
from failwell.errors.foreign_objects import safe_getattr
from failwell.store.effects.call import EffectCall, EffectOptions, run_effect, run_effect_async
from failwell.store.effects.claims import ClaimStore
from failwell.store.effects.keys import (
    KeySource,
    argument_digests,
    check_return_type,
    effect_key,
    function_name,
    key_function,
)

F = TypeVar("F", bound=Callable[..., Any])
ScopeSource = Literal["run", "session"] | Callable[[], str]
KEEP = 30 * 86_400.0
"""Seconds for which results are kept by default: thirty days."""
WAIT = 60.0
"""Seconds for which a second caller waits by default."""


def effect(
    *,
    key: KeySource,
    name: str | None = None,
    scope: ScopeSource | None = None,
    store: ClaimStore | None = None,
    reconcile: Callable[..., Any] | None = None,
    keep: float | None = KEEP,
    wait: float = WAIT,
    ignore: tuple[str, ...] = (),
) -> Callable[[F], F]:
    """Run the decorated function once for each key; later calls with the key get the first result.

    Inside the function, `failwell.idempotency_key()` returns the key, so that a provider can be given it.

    Args:
        key: What makes two calls the same effect: the names of arguments, a template such as
            `"order-{order_id}"`, or a function of the arguments that returns a text.
        name: The name of the effect in the store. By default module and name of the function: set it
            where the function may move.
        scope: `"run"` or `"session"` limits the key to the run or session that the call is made in, a function
            to the text that it returns. Without one the key counts everywhere.
        store: Where claims are kept: `SqliteClaims` or `RedisClaims`. By default the state folder.
        reconcile: Called with the arguments where an earlier call may have had its effect. It returns
            `Done(result)`, or `False` if nothing happened, which runs the function. Anything else means that it
            cannot tell.
        keep: Seconds for which a result is kept; `None` for ever.
        wait: Seconds to wait for another caller with the same key, before `EffectBusy` is raised.
        ignore: Arguments that may differ between two calls with the same key.

    Raises:
        TypeError: the function cannot be an effect, or an option has the wrong type.
        ValueError: the key names an argument that the function does not have, or a number makes no sense.
    """
    if keep is not None:
        check_number("keep", keep)
    check_number("wait", wait)
    if reconcile is not None:
        check_callable("reconcile", reconcile)
    if scope not in (None, "run", "session") and not callable(scope):
        raise ValueError("`scope` takes 'run', 'session', or a function that returns a text")

    def decorate(function: F) -> F:
        check_callable("function", function)
        if isgeneratorfunction(function) or isasyncgenfunction(function):
            raise TypeError("an effect returns one result: a generator cannot be repeated from a store")
        own_name = name or function_name(function)
        check_return_type(function, own_name)
        parameters = signature(function)
        unknown = [other for other in ignore if other not in parameters.parameters]
        if unknown:
            raise ValueError(f"`ignore` names `{unknown[0]}`, which `{own_name}` does not take")
        key_of = key_function(key, parameters, own_name)
        options = EffectOptions(store=store, reconcile=reconcile, keep=keep, wait=wait)
        ignored = frozenset(ignore)

        def prepare(args: tuple[Any, ...], kwargs: dict[str, Any]) -> EffectCall:
            bound = parameters.bind(*args, **kwargs)
            bound.apply_defaults()
            own_key = effect_key(own_name, scope_text(scope), key_of(bound.arguments))
            return EffectCall(own_key, argument_digests(bound.arguments, ignored), function, args, kwargs)

        if iscoroutinefunction(function) or iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004  (an object with an async `__call__`)

            @wraps(function)
            async def once_async(*args: Any, **kwargs: Any) -> Any:
                return await run_effect_async(prepare(args, kwargs), options)

            return once_async  # pyright: ignore[reportReturnType]  (the same signature, which `wraps` cannot say)

        @wraps(function)
        def once(*args: Any, **kwargs: Any) -> Any:
            return run_effect(prepare(args, kwargs), options)

        return once  # pyright: ignore[reportReturnType]  (as above)

    return decorate


def scope_text(scope: ScopeSource | None) -> str:
    """The text of a scope for the call at hand.

    Raises:
        ValueError: there is no run, or no session, here.
        TypeError: a function returned no text.
    """
    if scope is None:
        return ""
    if callable(scope):
        text = cast("object", scope())
        if not isinstance(text, str):
            raise TypeError(f"the `scope` function returned {type(text).__name__}, and a scope is a text")
        return text
    import os

    from failwell.errors.context import current_scene

    place = current_scene()
    value = place.run or os.environ.get("FAILWELL_RUN_ID") if scope == "run" else place.session
    if not value:
        raise ValueError(
            f"the effect is limited to a {scope}, and there is none here: name it with `with scene({scope}=…)`"
        )
    return f"{scope}-{value}"


EffectPolicy = Literal["none", "repeat", "claim"]
"""`none`: it changes nothing. `repeat`: a repeat changes nothing more. `claim`: it must not be run twice."""


def effect_policy(tool: object) -> EffectPolicy:
    """How calls of an MCP tool are protected, by its `readOnlyHint` and `idempotentHint`.

    A hint that is missing, or is not exactly `True`, protects more. Annotations of a server that you do not trust are
    claims of that server.

    Args:
        tool: A tool, its annotations, or either as a mapping.
    """
    annotations = _member(tool, "annotations")
    hints = tool if annotations is None else annotations
    if is_read_only(hints):
        return "none"
    return "repeat" if is_idempotent(hints) else "claim"


def is_read_only(annotations: object) -> bool | None:
    """The `readOnlyHint` of a tool's annotations; `None` if they have none."""
    # Releases of the library from 2 on have other names than the protocol, and FastMCP warns about those of the protocol.
    return _hint(annotations, "read_only_hint", "readOnlyHint")


def is_idempotent(annotations: object) -> bool | None:
    """The `idempotentHint` of a tool's annotations; `None` if they have none."""
    return _hint(annotations, "idempotent_hint", "idempotentHint")


def _hint(annotations: object, *names: str) -> bool | None:
    value = _member(annotations, *names)
    return value if isinstance(value, bool) else None


def _member(holder: object, *names: str) -> Any:
    if isinstance(holder, Mapping):
        mapping = cast("Mapping[str, Any]", holder)
        return next((mapping[name] for name in names if name in mapping), None)
    return safe_getattr(holder, *names)
