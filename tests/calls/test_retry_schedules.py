"""Which failures are repeated, how often, and after which waits."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest

import failwell
from failwell.calls.attempt_loop import AttemptEvent, AttemptFailed, OperationEnded, Parked
from failwell.calls.backoff import Backoff
from failwell.calls.budget import Budget
from failwell.calls.cancel import CancelScope
from failwell.calls.chain.entry import ChainPolicy, Entry
from failwell.calls.circuit_breaker import BreakerPolicy, Bucket
from failwell.calls.policy import Match, Policy, Rule, Schedule
from failwell.calls.retry import retry, retrying
from failwell.calls.suppress import catch
from failwell.errors.axes import ActionKind
from failwell.errors.context import ledger_of
from failwell.errors.faults import Cancellation
from failwell.testing.builders import make_fault
from failwell.testing.clock import FakeClock
from tests.calls.acting import Scripted, caught, even, ledger, overloaded, rate_limited, told


def a_timeout() -> failwell.Fault:
    return make_fault(kind="provider.timeout")


def a_reply(status: int, headers: dict[str, str] | None = None) -> httpx.HTTPStatusError:
    """What httpx raises for a reply with a bad status."""
    request = httpx.Request("POST", "https://api.example.com/v1")
    reply = httpx.Response(status, headers=headers, request=request)
    return httpx.HTTPStatusError("no", request=request, response=reply)


@pytest.mark.acceptance("stud-cli 11")
def test_a_rate_limit_without_a_requested_delay_makes_six_calls_over_five_growing_waits() -> None:
    clock = FakeClock()
    call = Scripted(rate_limited())

    error = caught(retry(clock=clock)(call))

    assert call.count == 6
    assert len(clock.slept) == 5
    for slept, nominal in zip(clock.slept, [5, 10, 20, 40, 80], strict=True):
        assert nominal * 0.8 <= slept <= nominal * 1.2
    assert failwell.describe(error).kind == "provider.rate_limited"
    assert ledger(error).stopped == "giving up, all 6 attempts are spent"


def test_the_jitter_spreads_a_wait_over_a_fifth_in_both_directions() -> None:
    lowest, highest = FakeClock(), FakeClock()

    caught(retry(clock=lowest, jitter=lambda: 0.0)(Scripted(rate_limited())))
    caught(retry(clock=highest, jitter=lambda: 1.0)(Scripted(rate_limited())))

    assert lowest.slept == pytest.approx([4, 8, 16, 32, 64])
    assert highest.slept == pytest.approx([6, 12, 24, 48, 96])


@pytest.mark.acceptance("stud-cli 12", "pipelex 48")
def test_a_requested_delay_is_slept_exactly_and_never_jittered() -> None:
    clock = FakeClock()
    call = Scripted(rate_limited(not_before=told(7)), "answer")

    answer = retry(clock=clock, jitter=lambda: 0.99)(call)()

    assert answer == "answer"
    assert clock.slept == [7.0]
    assert call.count == 2


def test_a_requested_delay_of_nothing_is_not_slept_at_all() -> None:
    clock = FakeClock()
    call = Scripted(rate_limited(not_before=told(0)), "answer")

    retry(clock=clock)(call)()

    assert clock.slept == []


@pytest.mark.acceptance("stud-cli 15", "pipelex 47")
@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (a_reply(503), "provider.overloaded"),
        (make_fault(kind="provider.unavailable"), "provider.unavailable"),
    ],
)
def test_a_server_failure_makes_three_calls_after_about_one_and_two_seconds(
    failure: Exception, kind: str
) -> None:
    clock = FakeClock()
    call = Scripted(failure)

    error = caught(retry(clock=clock)(call))

    assert call.count == 3
    assert clock.slept[0] == pytest.approx(1, rel=0.2)
    assert clock.slept[1] == pytest.approx(2, rel=0.2)
    assert failwell.describe(error).kind == kind


def test_a_store_is_tried_three_times_with_linear_waits() -> None:
    clock = FakeClock()
    call = Scripted(make_fault(kind="session.store_unavailable"))

    caught(retry(clock=clock)(call))

    assert call.count == 3
    assert clock.slept == [2.0, 4.0]


def a_read_timeout() -> httpx.ReadTimeout:
    return httpx.ReadTimeout("no answer", request=httpx.Request("POST", "https://api.example.com/v1"))


@pytest.mark.acceptance("stud-cli 13")
def test_a_date_thirty_seconds_ahead_is_slept_for_thirty_seconds_and_a_past_one_for_none() -> None:
    sent = datetime.now(UTC).replace(microsecond=0)
    dates = [sent + timedelta(seconds=30), sent - timedelta(days=400)]
    replies = [
        a_reply(
            429,
            {"date": format_datetime(sent, usegmt=True), "retry-after": format_datetime(date, usegmt=True)},
        )
        for date in dates
    ]
    clock, seen = FakeClock(), list[AttemptEvent]()

    answer = retry(clock=clock, jitter=lambda: 0.99, watcher=seen.append)(Scripted(*replies, "answer"))()

    assert answer == "answer"
    assert clock.slept == [30.0]
    assert [one.attempt.wait for one in seen if isinstance(one, AttemptFailed)] == [30.0, 0.0]


@pytest.mark.acceptance("pipelex 48")
def test_without_a_requested_delay_the_wait_is_jittered() -> None:
    waits: list[float] = []
    for luck in (0.0, 0.5, 0.99):
        clock = FakeClock()
        retry(clock=clock, jitter=lambda luck=luck: luck)(Scripted(a_reply(429), "answer"))()
        waits += clock.slept

    assert waits == pytest.approx([4.0, 5.0, 5.98])


@pytest.mark.acceptance("pipelex 48")
def test_a_retry_after_of_five_seconds_is_slept_for_exactly_five() -> None:
    clock = FakeClock()

    retry(clock=clock, jitter=lambda: 0.99)(Scripted(a_reply(429, {"retry-after": "5"}), "answer"))()

    assert clock.slept == [5.0]


@pytest.mark.acceptance("pipelex 49")
@pytest.mark.parametrize(
    ("failure", "calls"),
    [
        (a_reply(503), 1), (a_reply(409), 1), (a_read_timeout(), 1), (a_reply(408), 1),
        (a_reply(429), 2), (httpx.ConnectError("refused"), 2),
    ],
    ids=["503", "409", "ReadTimeout", "408", "429", "ConnectError"],
)  # fmt: skip
def test_a_submission_is_repeated_only_where_it_was_certainly_not_accepted(
    failure: Exception, calls: int
) -> None:
    call = Scripted(failure, "answer")

    outcome = catch(retry(clock=FakeClock(), idempotent=False)(call))

    assert call.count == calls
    assert outcome == (("answer", None) if calls == 2 else (None, failure))


@pytest.mark.acceptance("stud-cli 16")
def test_two_read_timeouts_and_then_an_answer_are_three_attempts_in_the_audit() -> None:
    seen: list[AttemptEvent] = []
    call = Scripted(a_read_timeout(), a_read_timeout(), "answer")

    answer = retry(clock=FakeClock(), idempotent=True, watcher=seen.append)(call)()

    assert answer == "answer"
    ended = seen[-1]
    assert isinstance(ended, OperationEnded)
    assert [(one.number, one.kind) for one in ended.ledger.attempts] == [
        (1, "provider.timeout"),
        (2, "provider.timeout"),
        (3, None),
    ]


@pytest.mark.acceptance("stud-cli 16")
def test_a_success_after_two_timeouts_is_a_success_and_all_three_attempts_are_on_record() -> None:
    seen: list[AttemptEvent] = []
    call = Scripted(a_timeout(), a_timeout(), "answer")

    answer = retry(clock=FakeClock(), watcher=seen.append)(call)()

    assert answer == "answer"
    ended = seen[-1]
    assert isinstance(ended, OperationEnded)
    assert ended.succeeded
    assert [one.number for one in ended.ledger.attempts] == [1, 2, 3]
    assert [one.kind for one in ended.ledger.attempts] == ["provider.timeout", "provider.timeout", None]


@pytest.mark.acceptance("stud-cli 17")
def test_refused_credentials_are_tried_once_and_new_ones_are_asked_for() -> None:
    call = Scripted(make_fault(kind="provider.auth"))

    error = caught(retry(clock=FakeClock())(call))

    assert call.count == 1
    assert failwell.describe(error).user_action.kind is ActionKind.CHECK_CREDENTIALS


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (a_reply(404), "provider.rejected"),
        (a_reply(400), "provider.bad_request"),
        (make_fault(kind="provider.model_not_found"), "provider.model_not_found"),
        (make_fault(kind="provider.content_refused"), "provider.content_refused"),
    ],
)
@pytest.mark.acceptance("stud-cli 18", "pipelex 47")
def test_what_a_repeat_does_not_cure_is_called_once_and_keeps_its_kind(failure: Exception, kind: str) -> None:
    call = Scripted(failure)

    error = caught(retry(clock=FakeClock())(call))

    assert call.count == 1
    assert failwell.describe(error).kind == kind


@pytest.mark.acceptance("stud-cli 19")
def test_a_policy_of_ones_own_replaces_the_default() -> None:
    clock = FakeClock()
    fixed = Schedule(max_attempts=2, backoff=Backoff(curve="fixed", first=3.0))
    call = Scripted(rate_limited())

    caught(retry(clock=clock, policy=Policy(rules=(Rule(match=Match(), schedule=fixed),)))(call))

    assert call.count == 2
    assert clock.slept == [3.0]


@pytest.mark.acceptance("stud-cli 20")
def test_a_tool_that_timed_out_is_not_run_again_unless_somebody_says_that_it_may() -> None:
    call = Scripted(make_fault(kind="tool.timeout"))

    error = caught(retry(clock=FakeClock())(call))

    assert call.count == 1
    assert failwell.describe(error).kind == "tool.timeout"


@pytest.mark.acceptance("stud-cli 21")
def test_a_tool_may_say_which_of_its_failures_are_repeated() -> None:
    call = Scripted(make_fault(kind="tool.busy"), make_fault(kind="tool.timeout"), "answer")

    error = caught(retry(attempts=3, on="tool.busy", clock=FakeClock())(call))

    assert call.count == 2
    assert failwell.describe(error).kind == "tool.timeout"


def test_a_repeated_tool_asks_for_approval_once_because_the_loop_is_below_the_question() -> None:
    asked: list[str] = []
    run = retry(clock=FakeClock())(
        Scripted(make_fault(kind="tool.busy"), make_fault(kind="tool.busy"), "done")
    )

    def approved_call() -> object:
        asked.append("may I?")
        return run()

    assert approved_call() == "done"
    assert asked == ["may I?"]


@pytest.mark.acceptance("stud-cli 23")
def test_the_audit_of_any_retry_holds_number_kind_delay_and_reason_of_each_attempt() -> None:
    def retried() -> object:
        return retry(clock=FakeClock(), jitter=even)(Scripted(overloaded()))()

    def retried_async() -> object:
        return asyncio.run(retry(clock=FakeClock(), jitter=even)(Scripted(overloaded()).on_loop)())

    def chained() -> object:
        entry = Entry(
            provider="A", model="m", call=Scripted(overloaded()), attempts=3, backoff=Backoff(first=1.0)
        )
        return failwell.Chain(entry, clock=FakeClock(), jitter=even).call()

    def looped() -> object:
        for attempt in retrying(clock=FakeClock(), jitter=even):
            with attempt:
                raise overloaded()
        raise AssertionError

    for run in (retried, retried_async, chained, looped):
        written = failwell.describe(caught(run)).to_json()
        audited = failwell.ErrorReport.read(written).view("audit")["attempts"]

        assert [(one["number"], one["kind"], one.get("wait")) for one in audited] == [
            (1, "provider.overloaded", 1.0),
            (2, "provider.overloaded", 2.0),
            (3, "provider.overloaded", None),
        ], run
        assert [one["reason"] for one in audited[:2]] == [
            "retrying in 1.0 s, after a back-off",
            "retrying in 2.0 s, after a back-off",
        ], run
        assert audited[2]["reason"].startswith("giving up, "), run


@pytest.mark.acceptance("stud-cli 23")
def test_every_attempt_is_on_record_with_its_number_kind_wait_and_reason() -> None:
    seen: list[AttemptEvent] = []

    error = caught(retry(clock=FakeClock(), jitter=even, watcher=seen.append)(Scripted(overloaded())))

    assert [(one.number, one.kind, one.wait, one.reason) for one in ledger(error).attempts] == [
        (1, "provider.overloaded", 1.0, "retrying in 1.0 s, after a back-off"),
        (2, "provider.overloaded", 2.0, "retrying in 2.0 s, after a back-off"),
        (3, "provider.overloaded", None, "giving up, all 3 attempts are spent"),
    ]
    assert [one.attempt.number for one in seen if isinstance(one, AttemptFailed)] == [1, 2, 3]
    assert failwell.describe(error).attempts == ledger(error).attempts


@pytest.mark.acceptance("stud-cli 24")
def test_a_cancel_during_a_wait_ends_it_at_once_and_beats_the_failure() -> None:
    clock = FakeClock()
    scope = CancelScope("turn")
    clock.at(3.0, lambda: scope.cancel() or True)
    call = Scripted(rate_limited())

    error = caught(retry(clock=clock, cancel=scope)(call))

    assert isinstance(error, Cancellation)
    assert failwell.describe(error).kind == "cancel.turn"
    assert call.count == 1
    assert clock.monotonic() == 3.0
    assert ledger(error).stopped == "it was cancelled"


@pytest.mark.acceptance("stud-cli 25")
def test_a_stream_that_fails_after_its_first_item_is_not_begun_again() -> None:
    began: list[int] = []

    @retry(clock=FakeClock())
    def words():
        began.append(1)
        yield "once"
        raise overloaded()

    seen: list[str] = []
    error = caught(lambda: seen.extend(words()))

    assert seen == ["once"]
    assert began == [1]
    assert ledger(error).stopped == "giving up, part of the result has already been seen"


def test_a_stream_that_fails_before_its_first_item_is_begun_again_unseen() -> None:
    began: list[int] = []

    @retry(clock=FakeClock())
    def words():
        began.append(1)
        if len(began) < 3:
            raise overloaded()
        yield "once"
        yield "upon"

    assert list(words()) == ["once", "upon"]
    assert len(began) == 3


def test_an_async_stream_keeps_the_same_rules() -> None:
    began: list[int] = []

    @retry(clock=FakeClock())
    async def words():
        began.append(1)
        if len(began) < 2:
            raise overloaded()
        yield "once"
        raise overloaded()

    async def read() -> list[str]:
        seen: list[str] = []
        with pytest.raises(failwell.Fault):
            async for word in words():
                seen += [word]
        return seen

    assert asyncio.run(read()) == ["once"]
    assert len(began) == 2


def test_leaving_an_async_stream_early_closes_the_source_at_once() -> None:
    closed: list[bool] = []

    @retry(clock=FakeClock())
    async def words():
        try:
            yield "once"
            yield "upon"
        finally:
            closed.append(True)

    async def read() -> None:
        stream = words()
        assert await anext(stream) == "once"
        await stream.aclose()
        assert closed == [True]

    asyncio.run(read())


@pytest.mark.acceptance("pipelex 48")
def test_a_requested_delay_beyond_a_minute_is_parked_with_a_time_to_come_back_and_not_slept() -> None:
    clock = FakeClock()
    call = Scripted(rate_limited(not_before=told(3600)))

    error = caught(retry(clock=clock)(call))

    assert isinstance(error, Parked)
    assert (error.resume_at - clock.now()).total_seconds() == 3600
    assert clock.slept == []
    assert call.count == 1
    report = failwell.describe(error)
    assert report.kind == "provider.rate_limited"
    assert report.not_before is not None
    assert report.not_before.after == 3600


def test_parking_spends_no_attempt_so_the_sixth_call_may_still_be_parked() -> None:
    call = Scripted(*[rate_limited()] * 5, rate_limited(not_before=told(3600)))

    error = caught(retry(clock=FakeClock())(call))

    assert isinstance(error, Parked)
    assert call.count == 6


def test_a_used_up_quota_with_a_known_reset_is_parked_until_then() -> None:
    call = Scripted(make_fault(kind="provider.quota_exhausted", not_before=told(5)))

    error = caught(retry(clock=FakeClock())(call))

    assert isinstance(error, Parked)
    assert call.count == 1


def test_a_used_up_quota_without_a_known_reset_is_raised_as_it_is() -> None:
    original = make_fault(kind="provider.quota_exhausted")

    error = caught(retry(clock=FakeClock())(Scripted(original)))

    assert error is original


def test_a_loop_around_a_loop_does_not_park_what_is_parked() -> None:
    inner = retry(clock=FakeClock())(Scripted(rate_limited(not_before=told(3600))))

    error = caught(retry(clock=FakeClock())(inner))

    assert isinstance(error, Parked)
    assert error.__cause__ is not None
    assert not isinstance(error.__cause__, Parked)


def test_the_callers_own_exception_comes_out_and_not_a_wrapper() -> None:
    original = ConnectionRefusedError(111, "refused")

    error = caught(retry(clock=FakeClock())(Scripted(original)))

    assert error is original
    assert ledger_of(error) is not None


@pytest.mark.parametrize("attempts", [0, -1, float("nan"), float("inf"), 2.0, True, "3", None])
def test_a_number_of_attempts_that_makes_no_sense_is_refused_at_once(attempts: Any) -> None:
    makers: list[Callable[[], object]] = [
        lambda: Schedule(max_attempts=attempts, backoff=Backoff()),
        lambda: Entry(provider="acme", model="m", call=print, attempts=attempts),
    ]
    if attempts is not None:
        makers += [lambda: retry(attempts=attempts), lambda: retrying(attempts=attempts)]

    for make in makers:
        with pytest.raises(ValueError, match=r"attempts`.* must be a whole number of at least 1, not "):
            make()


@pytest.mark.parametrize("value", [-1, float("nan"), True, "3", b"3"])
def test_other_numbers_that_make_no_sense_are_refused_too(value: Any) -> None:
    for make in (
        lambda: retry(timeout=value),
        lambda: Backoff(first=value),
        lambda: Backoff(longest=value),
        lambda: Backoff(jitter=value),
        lambda: Budget(attempts=value),
        lambda: Budget(seconds=value),
        lambda: Budget(usd=value),
        lambda: Policy(in_process_limit=value),
        lambda: BreakerPolicy(failures=value),
        lambda: BreakerPolicy(rest=value),
        lambda: Bucket(tokens=value),
        lambda: ChainPolicy(cooldown=value),
    ):
        with pytest.raises(ValueError, match=r"` must be a (whole )?number "):
            make()


def test_a_deadline_counts_the_calls_and_not_only_the_waits() -> None:
    clock = FakeClock()

    def slow() -> None:
        clock.advance(4)
        raise overloaded()

    error = caught(retry(clock=clock, jitter=even, timeout=7)(slow))

    assert clock.slept == [1.0]
    assert "deadline" in ledger(error).stopped


def test_a_deadline_of_an_outer_loop_holds_for_the_loops_inside() -> None:
    clock = FakeClock()
    inner = retry(clock=clock, jitter=even, attempts=50, backoff=Backoff(curve="fixed", first=1.0))(
        Scripted(overloaded())
    )

    caught(retry(clock=clock, jitter=even, timeout=5, attempts=50)(inner))

    assert clock.monotonic() <= 5
