"""Ignoring an error is possible in one way only: with a reason, and on the record."""

import asyncio
import logging
from typing import Any

import pytest

from failwell import errors, suppress
from failwell.calls import observe
from failwell.calls.suppress import Suppressed

SECRET = "hunter2-and-more"


def open_shop(error: BaseException | None = None) -> str:
    if error is not None:
        raise error
    return "open"


@pytest.mark.acceptance("stud-cli 9")
def test_an_ignored_error_leaves_exactly_one_event_with_a_reason_and_a_cause() -> None:
    seen: list[Suppressed] = []

    with observe(seen.append), suppress(OSError, reason="the cache is only a convenience"):
        open_shop(FileNotFoundError(SECRET))

    [event] = seen
    assert (event.type, event.reason) == ("suppressed", "the cache is only a convenience")
    assert event.cause == "FileNotFoundError (internal.file_unavailable)"
    assert (event.report.kind, event.at) == ("internal.file_unavailable", event.report.occurred_at)
    assert SECRET not in repr(event)


def test_a_block_that_does_not_fail_leaves_no_event() -> None:
    seen: list[Suppressed] = []

    with observe(seen.append), suppress(OSError, reason="a convenience"):
        open_shop()

    assert seen == []


def test_an_error_of_another_type_passes_through() -> None:
    seen: list[Suppressed] = []

    with observe(seen.append), pytest.raises(KeyError), suppress(OSError, ValueError, reason="a convenience"):
        open_shop(KeyError("x"))

    assert seen == []


def test_the_work_goes_on_after_the_block() -> None:
    done: list[str] = []

    with suppress(ValueError, reason="a convenience"):
        open_shop(ValueError("x"))
        done.append("inside")
    done.append("after")

    assert done == ["after"]


def test_without_an_observer_the_event_goes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="failwell"), suppress(OSError, reason="a convenience"):
        open_shop(FileNotFoundError(SECRET))

    assert caplog.messages == ["suppressed FileNotFoundError (internal.file_unavailable): a convenience"]


def test_a_decorated_function_returns_nothing_where_it_failed() -> None:
    seen: list[Suppressed] = []

    @suppress(ValueError, reason="a convenience")
    def shop(error: BaseException | None = None) -> str:
        """Opens."""
        return open_shop(error)

    with observe(seen.append):
        assert (shop(), shop(ValueError("x")), shop()) == ("open", None, "open")

    assert (len(seen), shop.__name__, shop.__doc__) == (1, "shop", "Opens.")


def test_a_decorated_coroutine_returns_nothing_where_it_failed() -> None:
    seen: list[Suppressed] = []

    @suppress(ValueError, reason="a convenience")
    async def shop(error: BaseException | None = None) -> str:
        await asyncio.sleep(0)
        return open_shop(error)

    async def work() -> list[str | None]:
        return [await shop(), await shop(ValueError("x"))]

    with observe(seen.append):
        assert asyncio.run(work()) == ["open", None]
    assert len(seen) == 1


def test_in_asynchronous_code_a_plain_block_is_enough() -> None:
    seen: list[Suppressed] = []

    async def work() -> str:
        with suppress(TimeoutError, reason="the news can wait"):
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        return "done"

    with observe(seen.append):
        assert asyncio.run(work()) == "done"
    assert [event.report.kind for event in seen] == ["provider.outcome_unknown"]


def test_a_cancellation_is_never_ignored() -> None:
    async def work() -> None:
        with suppress(Exception, reason="anything but that"):
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(work())


def test_only_the_named_members_of_a_group_are_ignored() -> None:
    seen: list[Suppressed] = []
    group = ExceptionGroup(
        "several", [ValueError("a"), KeyError("b"), ExceptionGroup("in", [ValueError("c")])]
    )

    with observe(seen.append), pytest.raises(ExceptionGroup) as caught, suppress(ValueError, reason="fine"):
        raise group

    [event] = seen
    left: Any = caught.value
    assert [type(member) for member in left.exceptions] == [KeyError]
    assert [cause.type for cause in event.report.causes] == ["ValueError", "ExceptionGroup", "ValueError"]


def test_a_group_of_nothing_but_named_members_is_ignored_whole() -> None:
    seen: list[Suppressed] = []

    with observe(seen.append), suppress(ValueError, reason="fine"):
        raise ExceptionGroup("several", [ValueError("a"), ValueError("b")])

    assert len(seen) == 1


def test_a_group_without_a_named_member_passes_through_untouched() -> None:
    seen: list[Suppressed] = []
    group = ExceptionGroup("several", [KeyError("a")])

    with observe(seen.append), pytest.raises(ExceptionGroup) as caught, suppress(ValueError, reason="fine"):
        raise group

    assert caught.value is group
    assert seen == []


def test_a_cancellation_inside_a_group_is_not_ignored_with_the_rest() -> None:
    group = BaseExceptionGroup("several", [ValueError("a"), KeyboardInterrupt()])

    with pytest.raises(BaseExceptionGroup) as caught, suppress(ValueError, reason="fine"):
        raise group

    left: Any = caught.value
    assert [type(member) for member in left.exceptions] == [KeyboardInterrupt]


@pytest.mark.parametrize("one", [BaseException, KeyboardInterrupt, asyncio.CancelledError, int, "ValueError"])
def test_what_is_no_error_cannot_be_ignored(one: Any) -> None:
    with pytest.raises(TypeError, match="only subclasses of Exception can"):
        suppress(one, reason="please")


@pytest.mark.parametrize("reason", ["", "   ", "\n"])
def test_a_reason_must_say_something(reason: str) -> None:
    with pytest.raises(ValueError, match="`reason` is empty"):
        suppress(ValueError, reason=reason)


def test_at_least_one_type_must_be_named() -> None:
    with pytest.raises(TypeError, match="name the exception types"):
        suppress(reason="whatever comes")


def test_one_suppression_may_be_used_again_and_inside_itself() -> None:
    seen: list[Suppressed] = []
    quiet = suppress(ValueError, reason="fine")

    with observe(seen.append):
        with quiet, quiet:
            open_shop(ValueError("x"))
        with quiet:
            open_shop(ValueError("y"))

    assert len(seen) == 2


def test_the_event_knows_where_it_happened() -> None:
    seen: list[Suppressed] = []

    quiet = suppress(ValueError, reason="fine")
    with observe(seen.append), errors.scene(run="r1"), quiet, errors.scene(node="sum"):
        open_shop(ValueError("x"))

    assert seen[0].report.scene == errors.Scene(run="r1", node="sum")


def test_a_log_that_raises_does_not_reach_whoever_ignores_an_error() -> None:
    class Raising(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError(record.getMessage())

    logger, handler = logging.getLogger("failwell"), Raising()
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        with suppress(KeyError, reason="it may be missing"):
            raise KeyError("x")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
