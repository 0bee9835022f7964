"""Stopping on purpose: children first, never upwards, and at once."""

import asyncio
from collections.abc import Callable
from threading import Event, Thread

import pytest

import failwell
from failwell.calls.cancel import CancelScope, cancel_scope, current_scope
from failwell.calls.retry import retry
from failwell.calls.suppress import Suppressed, observe
from failwell.errors.faults import Cancellation
from tests.calls.acting import Scripted, rate_limited


def test_children_are_stopped_before_their_parent_and_in_the_order_they_were_made() -> None:
    order: list[str] = []
    session = CancelScope("session")
    turn = session.child("turn")
    tools = [turn.child("tool", name=str(number)) for number in range(3)]
    for name, scope in [("session", session), ("turn", turn), *((tool.name, tool) for tool in tools)]:
        scope.on_cancel(lambda name=name: order.append(name))

    session.cancel()

    assert order == ["0", "1", "2", "turn", "session"]
    assert [scope.reason for scope in (session, turn, tools[0])] == ["user", "parent", "parent"]


def test_a_cancel_never_goes_upwards() -> None:
    session = CancelScope("session")
    turn = session.child("turn")

    turn.cancel()

    assert turn.cancelled
    assert not session.cancelled


def test_a_child_of_a_stopped_scope_is_born_stopped() -> None:
    session = CancelScope("session")
    session.cancel()

    with pytest.raises(Cancellation):
        session.child("turn").check()


def test_stopping_twice_changes_nothing() -> None:
    calls: list[int] = []
    scope = CancelScope("run")
    scope.on_cancel(lambda: calls.append(1))

    scope.cancel("deadline")
    scope.cancel("user")

    assert scope.reason == "deadline"
    assert calls == [1]


def test_a_callback_that_fails_keeps_no_other_from_running_and_is_on_record() -> None:
    seen: list[Suppressed] = []
    calls: list[int] = []
    scope = CancelScope("run")
    scope.on_cancel(lambda: 1 / 0)
    scope.on_cancel(lambda: calls.append(1))

    with observe(seen.append):
        scope.cancel()

    assert calls == [1]
    assert [event.report.error_type for event in seen] == ["ZeroDivisionError"]


def test_a_callback_that_was_taken_back_is_not_called() -> None:
    calls: list[int] = []
    scope = CancelScope("run")

    scope.on_cancel(lambda: calls.append(1))()
    scope.cancel()

    assert calls == []


def test_the_scope_of_a_block_is_below_the_one_around_it_and_forgotten_after_it() -> None:
    with cancel_scope("session") as session:
        with cancel_scope("turn") as turn:
            assert current_scope() is turn
            assert turn.parent is session
        assert current_scope() is session
        session.cancel()

    assert not turn.cancelled
    assert current_scope() is None


@pytest.mark.acceptance("stud-cli 24")
def test_a_real_wait_in_a_thread_ends_when_another_thread_cancels() -> None:
    scope = CancelScope("turn")
    failed_once, ended = Event(), Event()
    call = Scripted(rate_limited())
    raised: list[Exception] = []

    def lucky() -> float:
        failed_once.set()
        return 0.5

    def work() -> None:
        try:
            retry(cancel=scope, jitter=lucky)(call)()
        except Exception as error:
            raised.append(error)
        ended.set()

    thread = Thread(target=work, daemon=True)
    thread.start()
    assert failed_once.wait(10)
    scope.cancel()

    assert ended.wait(4), "a five-second wait was slept to its end"
    assert isinstance(raised[0], Cancellation)
    assert call.count == 1
    thread.join(10)


@pytest.mark.acceptance("stud-cli 24")
def test_a_real_wait_on_a_loop_ends_when_a_thread_cancels() -> None:
    scope = CancelScope("turn")
    failed_once = Event()
    call = Scripted(rate_limited())

    def lucky() -> float:
        failed_once.set()
        return 0.5

    def cancel() -> None:
        failed_once.wait(10)
        scope.cancel()

    thread = Thread(target=cancel, daemon=True)
    thread.start()

    async def work() -> None:
        async with asyncio.timeout(4):
            await retry(cancel=scope, jitter=lucky)(call.on_loop)()

    with pytest.raises(Cancellation):
        asyncio.run(work())

    assert call.count == 1
    thread.join(10)


def test_a_loop_in_a_stopped_scope_makes_no_call() -> None:
    call = Scripted("never")

    with cancel_scope("turn") as turn:
        turn.cancel()
        with pytest.raises(Cancellation):
            retry(call)()

    assert call.count == 0


def test_an_answer_that_came_after_the_cancel_is_not_handed_out() -> None:
    with cancel_scope("turn") as turn:

        def answers() -> str:
            turn.cancel()
            return "too late"

        with pytest.raises(Cancellation) as stopped:
            retry(answers)()

    assert failwell.describe(stopped.value).kind == "cancel.turn"


def test_many_children_born_while_their_parent_is_stopped_are_all_stopped() -> None:
    parent = CancelScope("session")
    born: list[CancelScope] = []
    begun = Event()

    def bear() -> None:
        while not parent.cancelled or len(born) < 200:
            born.append(parent.child("turn"))
            begun.set()

    threads = [Thread(target=bear, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    begun.wait(10)
    parent.cancel()
    for thread in threads:
        thread.join(10)

    assert all(child.cancelled for child in born)


def stopped_while_awaiting(stop: Callable[[CancelScope], object]) -> tuple[list[str], str | None]:
    seen: list[str] = []

    async def work() -> str | None:
        try:
            with cancel_scope("turn") as scope:
                stop(scope)
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    seen.append("interrupted")
                    raise
        except Cancellation as stopped:
            seen.append("stopped")
            await asyncio.sleep(0)
            return stopped.kind
        return None

    return seen, asyncio.run(work())


def test_what_a_task_awaits_in_a_scope_is_interrupted_when_the_scope_is_stopped() -> None:
    seen, kind = stopped_while_awaiting(lambda scope: scope.cancel())

    assert (seen, kind) == (["interrupted", "stopped"], "cancel.turn")


def test_another_thread_may_interrupt_what_a_task_awaits() -> None:
    seen, kind = stopped_while_awaiting(lambda scope: Thread(target=scope.cancel).start())

    assert (seen, kind) == (["interrupted", "stopped"], "cancel.turn")


def test_a_cancel_from_outside_stays_a_cancel_although_the_scope_was_stopped_too() -> None:
    async def work() -> bool:
        ready = asyncio.Event()

        async def inner() -> None:
            with cancel_scope("run") as scope:
                ready.set()
                task = asyncio.current_task()
                assert task is not None
                asyncio.get_running_loop().call_soon(task.cancel)
                scope.cancel()
                await asyncio.Event().wait()

        task = asyncio.create_task(inner())
        await ready.wait()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(work())


def test_scopes_in_scopes_end_as_the_outermost_that_was_stopped() -> None:
    async def work() -> str | None:
        try:
            with cancel_scope("session") as outer, cancel_scope("turn"):
                outer.cancel()
                await asyncio.Event().wait()
        except Cancellation as stopped:
            return stopped.kind
        return None

    assert asyncio.run(work()) == "cancel.session"


def test_a_stop_after_the_block_interrupts_nothing() -> None:
    async def work() -> str:
        with cancel_scope("turn") as scope:
            scope.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return "went on"

    assert asyncio.run(work()) == "went on"


def test_a_stop_that_the_block_swallows_does_not_count_as_a_cancel_of_the_task() -> None:
    async def swallows() -> tuple[int, bool, str]:
        task = asyncio.current_task()
        assert task is not None
        with cancel_scope("turn") as scope:
            scope.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.Event().wait()
        left = task.cancelling()
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            return left, scope.cancelled, "timed out"
        return left, scope.cancelled, "went on"

    assert asyncio.run(swallows()) == (0, True, "timed out")


def test_a_stop_that_becomes_another_error_does_not_count_as_a_cancel_of_the_task() -> None:
    async def replaces() -> int:
        task = asyncio.current_task()
        assert task is not None
        with pytest.raises(KeyError), cancel_scope("turn") as scope:
            scope.cancel()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise KeyError("x") from None
        return task.cancelling()

    assert asyncio.run(replaces()) == 0
