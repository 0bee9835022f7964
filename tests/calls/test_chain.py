"""A call with alternatives: who is tried, in which order, and what stops it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import failwell
from failwell.calls.attempt_loop import Parked
from failwell.calls.backoff import Backoff
from failwell.calls.cancel import CancelScope
from failwell.calls.chain.chain import Chain, ChainPolicy, Entry
from failwell.calls.circuit_breaker import BreakerPolicy
from failwell.calls.guard import Guard
from failwell.calls.idempotency import idempotency_key
from failwell.errors.faults import Cancellation
from failwell.testing.builders import make_fault
from failwell.testing.clock import FakeClock
from tests.calls.acting import Scripted, caught, even, ledger, overloaded, rate_limited, told


def an_entry(name: str, call: Callable[..., Any], **changes: Any) -> Entry[Any]:
    return Entry(provider=name, model=f"{name}-model", call=call, **changes)


def a_chain(*entries: Entry[Any], clock: FakeClock | None = None, **changes: Any) -> Chain[Any]:
    return Chain(*entries, clock=clock or FakeClock(), jitter=even, **changes)


def tried(chain: Chain[Any]) -> list[tuple[str | None, str | None]]:
    return [(row.provider, row.kind) for row in chain.ledger.attempts]


def skipped(chain: Chain[Any]) -> list[str]:
    return [one.provider for one in chain.ledger.skipped]


@pytest.mark.acceptance("relavium 10")
def test_a_failure_that_passes_hands_over_to_the_next_entry() -> None:
    first, second = Scripted(overloaded()), Scripted("from B")
    chain = a_chain(an_entry("A", first), an_entry("B", second))

    assert chain.call("hello") == "from B"

    assert second.calls == [(("hello",), {})]
    assert tried(chain) == [("A", "provider.overloaded"), ("B", None)]


@pytest.mark.parametrize(
    "kind",
    [
        "provider.auth",
        "provider.bad_request",
        "provider.content_refused",
        "provider.context_too_long",
        "provider.model_not_found",
        "provider.outcome_unknown",
        "provider.unknown",
        "internal.bug",
    ],
)
@pytest.mark.acceptance("relavium 11")
def test_a_call_that_is_itself_at_fault_stops_the_chain(kind: str) -> None:
    original = make_fault(kind=kind)
    second = Scripted("from B")

    error = caught(a_chain(an_entry("A", Scripted(original)), an_entry("B", second)).call)

    assert error is original
    assert second.count == 0


@pytest.mark.acceptance("relavium 12")
def test_an_entry_backs_off_between_its_own_attempts_and_not_before_the_next_entry() -> None:
    clock = FakeClock()
    patient = an_entry("A", Scripted(overloaded()), attempts=3, backoff=Backoff(first=0.1, longest=8))
    chain = a_chain(patient, an_entry("B", Scripted("from B")), clock=clock)

    chain.call()

    assert clock.slept == pytest.approx([0.1, 0.2])


@pytest.mark.acceptance("relavium 13")
def test_linear_waits_grow_evenly_up_to_their_cap() -> None:
    clock = FakeClock()
    linear = Backoff(curve="linear", first=0.1, longest=0.25)
    chain = a_chain(an_entry("A", Scripted(overloaded()), attempts=4, backoff=linear), clock=clock)

    caught(chain.call)

    assert clock.slept == pytest.approx([0.1, 0.2, 0.25])


@pytest.mark.acceptance("relavium 14")
def test_when_every_entry_failed_the_last_failure_comes_out() -> None:
    last = make_fault(kind="provider.timeout")
    chain = a_chain(an_entry("A", Scripted(overloaded())), an_entry("B", Scripted(last)))

    error = caught(chain.call)

    assert error is last
    assert error.__cause__ is None
    assert [row.kind for row in failwell.describe(error).attempts] == [
        "provider.overloaded",
        "provider.timeout",
    ]


@pytest.mark.acceptance("relavium 15")
def test_refused_credentials_without_a_way_to_renew_them_are_tried_once() -> None:
    call = Scripted(make_fault(kind="provider.auth"))

    caught(a_chain(an_entry("A", call, attempts=5)).call)

    assert call.count == 1


@pytest.mark.acceptance("relavium 16")
def test_credentials_are_renewed_once_and_that_attempt_is_extra() -> None:
    renewed: list[str] = []
    call = Scripted(make_fault(kind="provider.auth"))

    def renew(provider: str) -> bool:
        renewed.append(provider)
        return True

    error = caught(a_chain(an_entry("A", call), policy=ChainPolicy(refresh=renew)).call)

    assert call.count == 2
    assert renewed == ["A"]
    assert failwell.describe(error).kind == "provider.auth"


@pytest.mark.acceptance("relavium 16")
def test_a_renewal_that_fails_counts_as_none() -> None:
    call = Scripted(make_fault(kind="provider.auth"))

    def renew(provider: str) -> bool:
        raise RuntimeError("sk-secret")

    error = caught(a_chain(an_entry("A", call), policy=ChainPolicy(refresh=renew)).call)

    assert call.count == 1
    assert "sk-secret" not in repr(failwell.describe(error).to_dict())


def test_a_renewal_takes_nothing_from_the_attempts_of_its_entry() -> None:
    call = Scripted(make_fault(kind="provider.auth"), overloaded(), "answer")
    chain = a_chain(an_entry("A", call, attempts=2), policy=ChainPolicy(refresh=lambda provider: True))

    assert chain.call() == "answer"


def test_credentials_may_be_renewed_again_after_they_worked() -> None:
    refused = make_fault(kind="provider.auth")
    call = Scripted(refused, "one", refused, "two")
    chain = a_chain(an_entry("A", call), policy=ChainPolicy(refresh=lambda provider: True))

    assert [chain.call(), chain.call()] == ["one", "two"]


@pytest.mark.acceptance("relavium 17")
def test_a_rate_limited_provider_is_passed_over_while_it_cools_down() -> None:
    clock = FakeClock()
    first = Scripted(rate_limited(), "from A")
    chain = a_chain(
        an_entry("A", first),
        an_entry("B", Scripted("from B")),
        clock=clock,
        policy=ChainPolicy(cooldown=1000),
    )

    assert chain.call() == "from B"
    clock.advance(500)
    assert chain.call() == "from B"
    assert first.count == 1
    assert [one.reason for one in chain.ledger.skipped] == ["A cools down for 500.0 s"]
    clock.advance(1500)
    assert chain.call() == "from A"


def test_a_cool_down_lasts_as_long_as_the_provider_says_where_that_is_longer() -> None:
    clock = FakeClock()
    first = Scripted(rate_limited(not_before=told(300)), "from A")
    chain = a_chain(an_entry("A", first), an_entry("B", Scripted("from B")), clock=clock)

    chain.call()
    clock.advance(299)

    assert chain.call() == "from B"


@pytest.mark.acceptance("relavium 18")
def test_an_entry_that_cannot_do_what_the_call_needs_is_passed_over_and_spends_nothing() -> None:
    first = Scripted("from A")
    chain = a_chain(
        an_entry("A", first, capabilities=frozenset({"streaming"})),
        an_entry("B", Scripted("from B"), capabilities=frozenset({"streaming", "tools"})),
    )

    assert chain.call(needs=["tools"]) == "from B"

    assert first.count == 0
    assert tried(chain) == [("B", None)]
    assert [one.reason for one in chain.ledger.skipped] == ["cannot do tools"]
    assert chain.last_provider == "B"


@pytest.mark.acceptance("relavium 19")
def test_when_every_entry_is_passed_over_nobody_is_called_and_that_is_said() -> None:
    first, second = Scripted("from A"), Scripted("from B")
    chain = a_chain(
        an_entry("A", first, capabilities=frozenset()), an_entry("B", second, capabilities=frozenset())
    )

    error = caught(lambda: chain.call(needs=["tools"]))

    report = failwell.describe(error)
    assert (report.kind, report.retryable) == ("provider.unknown", False)
    assert (first.count, second.count) == (0, 0)


@pytest.mark.acceptance("relavium 20", "relavium 22")
@pytest.mark.parametrize("first_chunk", [{"text": "Once"}, {"type": "tool_call_start", "id": "1"}])
def test_after_the_first_chunk_nobody_else_is_called(first_chunk: dict[str, str]) -> None:
    def breaks(*args: Any) -> Any:
        yield first_chunk
        raise overloaded()

    second = Scripted([{"text": "other"}])
    chain = a_chain(an_entry("A", breaks, attempts=3), an_entry("B", second))
    seen: list[Any] = []

    error = caught(lambda: seen.extend(chain.stream("hello")))

    assert seen == [first_chunk]
    assert failwell.describe(error).kind == "provider.overloaded"
    assert [row.certainty for row in ledger(error).attempts] == ["partial"]
    assert second.count == 0


@pytest.mark.acceptance("relavium 21")
def test_a_stream_that_fails_before_its_first_chunk_is_handed_over_unseen() -> None:
    def breaks(*args: Any) -> Any:
        raise overloaded()
        yield

    chain = a_chain(an_entry("A", breaks), an_entry("B", lambda *args: iter(["from", "B"])))

    assert list(chain.stream("hello")) == ["from", "B"]
    assert tried(chain) == [("A", "provider.overloaded"), ("B", None)]


def test_a_stream_needs_an_entry_that_can_stream() -> None:
    chain = a_chain(
        an_entry("A", Scripted(["never"]), capabilities=frozenset({"tools"})),
        an_entry("B", lambda: iter(["from B"])),
    )

    assert list(chain.stream()) == ["from B"]
    assert skipped(chain) == ["A"]


@pytest.mark.acceptance("relavium 23")
def test_a_cancelled_call_that_comes_back_as_a_broken_connection_was_cancelled() -> None:
    scope = CancelScope("turn")
    second = Scripted("from B")

    def breaks() -> None:
        scope.cancel()
        raise ConnectionResetError(104, "reset")

    error = caught(a_chain(an_entry("A", breaks), an_entry("B", second), cancel=scope).call)

    assert isinstance(error, Cancellation)
    assert second.count == 0


def test_an_answer_that_came_after_the_cancel_is_not_handed_out() -> None:
    scope = CancelScope("turn")

    def answers() -> str:
        scope.cancel()
        return "too late"

    error = caught(a_chain(an_entry("A", answers), cancel=scope).call)

    assert isinstance(error, Cancellation)


@pytest.mark.acceptance("relavium 24")
def test_after_a_cancel_neither_a_provider_nor_a_credential_is_asked_for() -> None:
    scope = CancelScope("turn")
    scope.cancel()
    call, lookup = Scripted("from A"), Scripted("key")

    error = caught(a_chain(an_entry("A", call, credential=lookup), cancel=scope).call)

    assert isinstance(error, Cancellation)
    assert (call.count, lookup.count) == (0, 0)


@pytest.mark.acceptance("relavium 25")
def test_a_credential_lookup_that_fails_says_nothing_of_what_it_saw() -> None:
    def lookup() -> str:
        raise RuntimeError("keychain entry sk-live-12345678 is broken")

    call = Scripted("from A")

    error = caught(a_chain(an_entry("A", call, credential=lookup)).call)

    report = failwell.describe(error, policy="full")
    assert report.kind == "provider.auth"
    assert "sk-live" not in report.to_json()
    assert error.__cause__ is None
    assert call.count == 0


def test_a_credential_is_looked_up_for_every_attempt_and_handed_to_the_call() -> None:
    lookup = Scripted("old", "new")
    call = Scripted(overloaded(), "answer")

    a_chain(an_entry("A", call, attempts=2, credential=lookup)).call()

    assert [kwargs["credential"] for _, kwargs in call.calls] == ["old", "new"]


@pytest.mark.acceptance("relavium 26")
@pytest.mark.parametrize("text", ["Error: overloaded", ""])
def test_what_an_answer_says_is_never_taken_for_a_failure(text: str) -> None:
    second = Scripted("from B")

    assert a_chain(an_entry("A", Scripted(text)), an_entry("B", second)).call() == text
    assert second.count == 0


def test_what_a_failure_says_does_not_change_what_it_is() -> None:
    chatty = make_fault(kind="provider.bad_request", message="overloaded, please retry")
    second = Scripted("from B")

    caught(a_chain(an_entry("A", Scripted(chatty)), an_entry("B", second)).call)

    assert second.count == 0


def a_conversation() -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": [{"type": "thinking", "signature": "A's"}]},
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": [{"type": "thinking"}, {"type": "text", "text": "three"}]},
    ]


@pytest.mark.acceptance("relavium 27")
def test_reasoning_that_one_provider_signed_is_not_shown_to_another() -> None:
    first, second = Scripted(overloaded()), Scripted("from B")

    a_chain(an_entry("A", first), an_entry("B", second)).call(messages=a_conversation())

    assert first.calls[0][1]["messages"] == a_conversation()
    assert second.calls[0][1]["messages"] == [
        {"role": "user", "content": "one\n\ntwo"},
        {"role": "assistant", "content": [{"type": "text", "text": "three"}]},
    ]


@pytest.mark.acceptance("relavium 27")
def test_the_next_call_knows_who_answered_last() -> None:
    first = Scripted(overloaded(), "from A", "from A")
    chain = a_chain(an_entry("A", first), an_entry("B", Scripted("from B")))

    chain.call(messages=a_conversation())
    chain.call(messages=a_conversation())
    chain.call(messages=a_conversation())

    assert "thinking" not in str(first.calls[1])
    assert "thinking" in str(first.calls[2])


def test_an_entry_that_was_passed_over_is_no_change_of_hands() -> None:
    third = Scripted("from A")
    chain = a_chain(
        an_entry("A", Scripted(overloaded())),
        an_entry("B", Scripted("never"), capabilities=frozenset()),
        an_entry("A", third),
    )

    chain.call(messages=a_conversation(), needs=["tools"])

    assert third.calls[0][1]["messages"] == a_conversation()


@pytest.mark.acceptance("relavium 28")
def test_a_chain_of_nothing_and_an_entry_without_attempts_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one entry"):
        Chain()
    with pytest.raises(ValueError, match="at least 1"):
        an_entry("A", Scripted("x"), attempts=0)


def test_a_used_up_quota_hands_over_at_once() -> None:
    spent = make_fault(kind="provider.quota_exhausted", not_before=told(86_400))
    chain = a_chain(an_entry("A", Scripted(spent), attempts=3), an_entry("B", Scripted("from B")))

    assert chain.call() == "from B"


def test_a_long_requested_delay_is_not_waited_for_while_there_is_another_entry() -> None:
    clock = FakeClock()
    slow = overloaded(not_before=told(20))
    chain = a_chain(an_entry("A", Scripted(slow), attempts=3), an_entry("B", Scripted("b")), clock=clock)

    assert chain.call() == "b"
    assert clock.slept == []


def test_the_last_entry_waits_as_told_and_parks_what_is_too_long_to_sleep() -> None:
    clock = FakeClock()
    call = Scripted(overloaded(not_before=told(20)), overloaded(not_before=told(3600)))
    chain = a_chain(an_entry("A", call, attempts=3), clock=clock)

    error = caught(chain.call)

    assert clock.slept == [20.0]
    assert isinstance(error, Parked)
    assert failwell.describe(error).kind == "provider.overloaded"


def test_entries_that_would_be_passed_over_are_no_reason_to_leave_an_entry() -> None:
    clock = FakeClock()
    call = Scripted(overloaded(not_before=told(20)), "from A")
    chain = a_chain(
        an_entry("A", call, attempts=2), an_entry("B", Scripted("b"), capabilities=frozenset()), clock=clock
    )

    assert chain.call(needs=["tools"]) == "from A"
    assert clock.slept == [20.0]


def test_an_unknown_outcome_is_neither_repeated_nor_handed_over_unless_that_is_harmless() -> None:
    lost = make_fault(kind="provider.stream_interrupted")
    second = Scripted("from B")

    caught(a_chain(an_entry("A", Scripted(lost)), an_entry("B", second)).call)
    assert second.count == 0

    harmless = ChainPolicy(idempotent=True)
    assert a_chain(an_entry("A", Scripted(lost)), an_entry("B", second), policy=harmless).call() == "from B"


def test_every_entry_sends_the_same_key() -> None:
    keys: list[str] = []

    def fails() -> None:
        keys.append(idempotency_key())
        raise overloaded()

    caught(a_chain(an_entry("A", fails, attempts=2), an_entry("B", fails)).call)

    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_a_hook_before_each_attempt_can_stop_the_chain_with_an_error_of_its_own() -> None:
    class OverLimit(Exception):
        pass

    def check(entry: Entry[Any]) -> None:
        if entry.provider == "B":
            raise OverLimit

    second = Scripted("from B")
    chain = a_chain(
        an_entry("A", Scripted(overloaded())), an_entry("B", second), policy=ChainPolicy(before=check)
    )

    error = caught(chain.call)

    assert isinstance(error, OverLimit)
    assert second.count == 0
    assert [row.kind for row in ledger(error).attempts] == ["provider.overloaded"]


def test_a_breaker_that_is_open_passes_over_its_entry() -> None:
    clock = FakeClock()
    guard = Guard(breaker=BreakerPolicy(failures=1, rest=60), clock=clock)
    first = Scripted(overloaded(), "from A")
    chain = a_chain(an_entry("A", first), an_entry("B", Scripted("from B")), clock=clock, guard=guard)

    assert [chain.call(), chain.call()] == ["from B", "from B"]
    assert first.count == 1
    assert skipped(chain) == ["A"]
    clock.advance(60)
    assert chain.call() == "from A"


def test_async_entries_keep_the_same_rules() -> None:
    clock = FakeClock()
    first, second = Scripted(overloaded()), Scripted("from B")
    chain = a_chain(an_entry("A", first.on_loop, attempts=2), an_entry("B", second.on_loop), clock=clock)

    assert asyncio.run(chain.acall("hello")) == "from B"

    assert (first.count, second.count) == (2, 1)
    assert clock.slept == [0.25]


def test_async_streams_keep_the_same_rules() -> None:
    async def breaks() -> Any:
        raise overloaded()
        yield

    async def answers() -> Any:
        yield "from"
        yield "B"

    chain = a_chain(an_entry("A", breaks), an_entry("B", answers))

    async def read() -> list[str]:
        return [chunk async for chunk in chain.astream()]

    assert asyncio.run(read()) == ["from", "B"]


def test_an_async_renewal_is_awaited() -> None:
    async def renew(provider: str) -> bool:
        await asyncio.sleep(0)
        return True

    call = Scripted(make_fault(kind="provider.auth"), "answer")
    chain = a_chain(an_entry("A", call.on_loop), policy=ChainPolicy(refresh=renew))

    assert asyncio.run(chain.acall()) == "answer"
