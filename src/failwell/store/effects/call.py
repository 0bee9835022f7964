"""One call of an effect: the steps from the claim to the result, with a blocking and an asynchronous driver.

The steps are a generator, so that both drivers follow the same rules. It yields what has to be done: an
operation of the store, the call of the function or the hook, or a wait.
"""

import os
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import closing, contextmanager
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias, cast

from failwell.adapters.describe import describe
from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.calls.idempotency import keyed
from failwell.calls.suppress import record_suppressed, suppressed
from failwell.errors.axes import Certainty
from failwell.errors.fault import Fault
from failwell.errors.frozen import frozen
from failwell.store.effects.claims import (
    Claim,
    ClaimStore,
    ClaimWatch,
    EffectKey,
    busy_fault,
    lost_fault,
    mismatch_fault,
    unclear_fault,
)
from failwell.store.effects.keys import (
    NotJson,
    differing,
    provider_key,
    result_from_json,
    result_to_json,
)

_NOT_DONE = (Certainty.NOT_SENT, Certainty.REJECTED)
"""Failures after which it is certain that nothing happened."""
_HOOK_FAILED = "a `reconcile` hook failed and counts as no answer"
_CLAIM_LOST = "the claim of an effect was released or settled while the effect ran; its result was not stored"
_NOT_STORED = "an effect happened, and its result could not be stored"
_NO_RESULT = "it is not JSON"


class Done(NamedTuple):
    """What a `reconcile` hook returns for an effect that happened: its result, as JSON values."""

    result: Any = None


@frozen
class EffectOptions:
    """How effects are claimed."""

    store: ClaimStore | None = None
    reconcile: Callable[..., Any] | None = None
    keep: float | None = None
    wait: float = 0.0
    clock: Clock = SYSTEM_CLOCK


class EffectCall(NamedTuple):
    """One call of a function that has an effect."""

    effect: EffectKey
    digests: Mapping[str, str]
    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = {}


class _Store(NamedTuple):
    """An operation of the store."""

    operation: Callable[..., Any]
    args: tuple[Any, ...]


class _Call:
    """A call of the user's function, under the key of the effect. The steps read its end from it."""

    __slots__ = ("error", "function", "has_begun", "value")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.has_begun = False
        self.value: Any = None
        self.error: BaseException | None = None

    @contextmanager
    def run(self) -> Generator[None]:
        """A block that calls the function and sets `value`. What it raises is the end of the call, and is left to the steps."""
        try:
            yield
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001  (the steps record it and raise it again, an interrupt too)
            self.error = error


class _Wait(NamedTuple):
    """Wait for a change of a claim."""

    watch: ClaimWatch
    seconds: float


_Step: TypeAlias = _Store | _Call | _Wait
_Steps: TypeAlias = Generator[_Step, Any, Any]


def run_effect(call: EffectCall, options: EffectOptions) -> Any:
    """The result of `call`, which is made unless its key has one already.

    Raises:
        EffectUnclear: it was begun before, and nobody knows whether it happened.
        EffectBusy: another caller has not ended in time.
        EffectMismatch: the key was used with other arguments.
        Exception: what the function raises.
    """
    key = provider_key(call.effect)

    def perform(step: _Step) -> Any:
        if isinstance(step, _Store):
            return step.operation(*step.args)
        if isinstance(step, _Wait):
            return step.watch.wait(step.seconds)
        with step.run(), keyed(key):
            step.has_begun = True
            step.value = step.function(*call.args, **call.kwargs)
        return None

    with closing(_steps(call, options, options.store or default_store())) as steps:
        try:
            step = next(steps)
            while True:
                try:
                    value = perform(step)
                except Fault as fault:
                    step = steps.throw(fault)
                else:
                    step = steps.send(value)
        except StopIteration as end:
            return end.value


async def run_effect_async(call: EffectCall, options: EffectOptions) -> Any:
    """`run_effect` for an async function. The store is used in a thread, and no wait blocks the event loop."""
    from asyncio import CancelledError, shield

    key = provider_key(call.effect)
    cancelled: list[CancelledError] = []

    async def perform(step: _Step) -> Any:
        if isinstance(step, _Store):
            operation = _in_thread(step)
            try:
                return await shield(operation)
            except CancelledError as error:
                # A claim that is being written must not be forgotten: the next step hears of the cancellation.
                cancelled.append(error)
                return await operation
        if isinstance(step, _Wait):
            if cancelled:
                raise cancelled[0]
            return await _wait_async(step)
        with step.run(), keyed(key):
            if cancelled:
                raise cancelled[0]
            step.has_begun = True
            value = step.function(*call.args, **call.kwargs)
            step.value = await cast("Awaitable[Any]", value) if isinstance(value, Awaitable) else value
        return None

    with closing(_steps(call, options, options.store or default_store())) as steps:
        try:
            step = next(steps)
            while True:
                try:
                    value = await perform(step)
                except Fault as fault:
                    step = steps.throw(fault)
                else:
                    step = steps.send(value)
        except StopIteration as end:
            if cancelled:
                raise cancelled[0] from None
            return end.value


# ---------------------------------------------------------------- the steps


def _steps(call: EffectCall, options: EffectOptions, store: ClaimStore) -> _Steps:
    """What one call does, from the claim to the result."""
    claim: Claim = yield _Store(store.claim, (call.effect, call.digests))
    deadline = options.clock.monotonic() + options.wait
    while True:
        if claim.is_own:
            return (yield from _run(call, options, store, claim))
        names = differing(claim.arguments, call.digests)
        if names:
            raise mismatch_fault(claim, names)
        if claim.status == "done":
            if claim.result is None:
                raise lost_fault(claim, _NO_RESULT)
            return result_from_json(claim.result)
        if claim.status == "unclear":
            if options.reconcile is None:
                raise unclear_fault(claim)
            own: Claim | None = yield _Store(store.take_over, (claim,))
            if own is not None:
                return (yield from _reconcile(call, options, store, own))
        else:
            yield from _wait_for(options, store, claim, deadline)
        claim = yield _Store(store.claim, (call.effect, call.digests))


def _wait_for(options: EffectOptions, store: ClaimStore, claim: Claim, deadline: float) -> _Steps:
    """Wait until another caller's claim has changed.

    Raises:
        EffectBusy: it has not until `deadline`.
    """
    with store.watch() as watch:
        while True:
            stored: Claim | None = yield _Store(store.get, (claim.id,))
            if stored is None or stored.token != claim.token or stored.status != "running":
                return
            rest = deadline - options.clock.monotonic()
            if rest <= 0:
                raise busy_fault(claim)
            yield _Wait(watch, min(rest, watch.interval))


def _reconcile(call: EffectCall, options: EffectOptions, store: ClaimStore, claim: Claim) -> _Steps:
    """Ask the hook what happened, while nobody else can: the claim is this caller's."""
    assert options.reconcile is not None
    hook = _Call(options.reconcile)
    yield hook
    if isinstance(hook.error, Exception):
        # It counts as no answer.
        record_suppressed(suppressed(hook.error, _HOOK_FAILED))
    elif hook.error is not None:
        # An interrupt or a cancellation: the hook gave no answer.
        yield _Store(store.mark_unclear, (claim, claim.kind))
        raise hook.error
    answer = hook.value
    if answer is False:
        return (yield from _run(call, options, store, claim))
    if isinstance(answer, Done) or answer is True:
        result = answer.result if isinstance(answer, Done) else None
        return (yield from _complete(options, store, claim, result))
    yield _Store(store.mark_unclear, (claim, claim.kind))
    raise unclear_fault(claim)


def _run(call: EffectCall, options: EffectOptions, store: ClaimStore, claim: Claim) -> _Steps:
    """Call the function under a claim of this caller's, and record how it ended."""
    step = _Call(call.function)
    yield step
    error = step.error
    if error is None:
        return (yield from _complete(options, store, claim, step.value))
    # Whatever ended the call decides about the claim, and is raised again.
    if not step.has_begun:
        yield _Store(store.release, (claim,))
        raise error
    if isinstance(error, Exception):
        report = describe(error, origin="tool", idempotent=False)
        kind, is_released = report.kind, report.certainty in _NOT_DONE
    else:
        # An interrupt or a cancellation: the call was under way.
        kind, is_released = "cancel.tool", False
    record = _Store(store.release, (claim,)) if is_released else _Store(store.mark_unclear, (claim, kind))
    yield from _keeping(error, record)
    raise error


def _keeping(error: BaseException, record: _Store) -> _Steps:
    """Record how the effect failed. A store that fails now must not replace the failure itself."""
    try:
        yield record
    except Fault as fault:
        error.add_note(f"the claim of the effect could not be updated: {fault}")
        record_suppressed(suppressed(fault, "an effect failed, and its claim stays as it was"))


def _complete(options: EffectOptions, store: ClaimStore, claim: Claim, result: Any) -> _Steps:
    problem: NotJson | None = None
    text: str | None = None
    try:
        text = result_to_json(result)
    except NotJson as error:
        problem = error
    try:
        is_stored = yield _Store(store.complete, (claim, text, options.keep))
    except Fault as fault:
        # The effect happened, and its caller gets the result. The claim keeps others from a second one.
        record_suppressed(suppressed(fault, _NOT_STORED))
    else:
        if not is_stored:
            record_suppressed(suppressed(busy_fault(claim), _CLAIM_LOST))
    if problem is not None:
        raise lost_fault(claim, str(problem)) from None
    return result


# ---------------------------------------------------------------- driving


def _in_thread(step: _Store) -> Any:
    """Run an operation of the store in the thread for these. Waits never take place there."""
    from asyncio import get_running_loop
    from contextvars import copy_context

    operation = partial(copy_context().run, step.operation, *step.args)
    return get_running_loop().run_in_executor(_executor(os.getpid()), operation)


@cache
def _executor(_pid: int) -> Any:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(1, thread_name_prefix="failwell-effects")


async def _wait_async(step: _Wait) -> None:
    from asyncio import Event, get_running_loop, sleep, timeout

    loop = get_running_loop()
    number = step.watch.fileno()
    changed = Event()
    if number is None or not _add_reader(loop, number, changed.set):
        await sleep(step.seconds)
        return
    try:
        async with timeout(step.seconds):
            await changed.wait()
    except TimeoutError:
        return
    finally:
        loop.remove_reader(number)
        step.watch.drain()


def _add_reader(loop: Any, number: int, callback: Callable[[], object]) -> bool:
    """Let the event loop wait on a socket; `False` if it cannot."""
    try:
        loop.add_reader(number, callback)
    except NotImplementedError:
        return False
    return True


@cache
def _store_of(_pid: int, folder: str) -> ClaimStore:
    from failwell.store.effects.sqlite import SqliteClaims

    return SqliteClaims(folder)


def default_store() -> ClaimStore:
    """The claims of the state folder. Each process has a connection of its own."""
    from failwell.store.folder import state_folder

    return _store_of(os.getpid(), str(state_folder()))
