"""Observers are told, never asked, and cannot break what they observe."""

import logging
import threading

import pytest

import failwell
from failwell import Backoff, suppress
from failwell.calls import observe, watch
from failwell.calls.attempt_loop import AttemptEvent
from failwell.calls.suppress import Suppressed


def ignore_something(reason: str = "fine") -> None:
    with suppress(ValueError, reason=reason):
        raise ValueError("x")


def broken(_event: Suppressed) -> None:
    raise RuntimeError("the observer itself")


def test_every_observer_is_told_while_its_block_runs() -> None:
    first: list[Suppressed] = []
    second: list[Suppressed] = []

    with observe(first.append):
        ignore_something("one")
        with observe(second.append):
            ignore_something("two")
        ignore_something("three")
    ignore_something("four")

    assert [event.reason for event in first] == ["one", "two", "three"]
    assert [event.reason for event in second] == ["two"]


def test_an_observer_is_told_no_more_when_its_block_fails() -> None:
    seen: list[Suppressed] = []

    with pytest.raises(KeyError), observe(seen.append):
        raise KeyError("x")
    ignore_something()

    assert seen == []


def test_an_observer_that_fails_breaks_neither_the_work_nor_the_others() -> None:
    before: list[Suppressed] = []
    after: list[Suppressed] = []

    with observe(before.append), observe(broken), observe(after.append):
        ignore_something()

    for seen in (before, after):
        told = {event.reason: event.cause for event in seen}
        assert told == {
            "fine": "ValueError (internal.bug)",
            "an observer failed and was passed over": "RuntimeError (internal.bug)",
        }


def test_what_the_only_observer_fails_to_hear_goes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="failwell"), observe(broken):
        ignore_something()

    assert caplog.messages == [
        "suppressed RuntimeError (internal.bug): an observer failed and was passed over",
        "suppressed ValueError (internal.bug): fine",
    ]


def test_observers_that_all_fail_do_not_tell_each_other_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    def broken_too(_event: Suppressed) -> None:
        raise OSError("this one as well")

    with caplog.at_level(logging.INFO, logger="failwell"), observe(broken), observe(broken_too):
        ignore_something()

    assert len(caplog.messages) == 3
    assert caplog.messages[-1] == "suppressed ValueError (internal.bug): fine"


def test_an_observer_that_stops_the_program_stops_it() -> None:
    def stop(_event: Suppressed) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), observe(stop):
        ignore_something()


def test_an_observer_does_not_hear_what_it_ignores_itself() -> None:
    seen: list[str] = []
    others: list[str] = []

    def curious(event: Suppressed) -> None:
        seen.append(event.reason)
        ignore_something("while observing")

    with observe(curious), observe(lambda event: others.append(event.reason)):
        ignore_something()

    assert seen == ["fine"]
    assert others == ["while observing", "fine"]


def test_a_watcher_that_retries_does_not_hear_itself() -> None:
    seen: list[str] = []

    @failwell.retry(attempts=3, backoff=Backoff(first=0.0))
    def send() -> None:
        raise failwell.Fault(kind="provider.overloaded")

    def forward(event: AttemptEvent) -> None:
        seen.append(event.type)
        with suppress(failwell.Fault, reason="the collector is down"):
            send()

    with watch(forward), pytest.raises(failwell.Fault):
        failwell.retry(attempts=2, backoff=Backoff(first=0.0))(send)()

    assert seen == ["tried", "tried", "tried", "ended", "tried", "ended"]


def test_a_plain_call_observes_from_then_on() -> None:
    seen: list[str] = []

    subscription = observe(lambda event: seen.append(event.reason))
    try:
        ignore_something("one")
    finally:
        subscription.close()
    subscription.close()
    ignore_something("two")
    with subscription:
        ignore_something("three")
    ignore_something("four")

    assert seen == ["one", "three"]


def test_what_cannot_be_called_is_no_observer() -> None:
    for subscribe in (observe, watch):
        with pytest.raises(TypeError, match="pass a function that is called with each event, not str"):
            subscribe("x")  # type: ignore[arg-type]


def test_what_happens_in_other_threads_is_heard_too() -> None:
    seen: list[Suppressed] = []

    with observe(seen.append):
        threads = [threading.Thread(target=ignore_something) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert len(seen) == 8
