"""Effects: one key, one call of the function, whoever calls it and however it ends."""

import asyncio
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import failwell
from failwell.calls import observe
from failwell.calls.suppress import Suppressed
from failwell.errors.context import scene
from failwell.store import (
    Claim,
    ClaimStore,
    Done,
    EffectBusy,
    EffectKeyInvalid,
    EffectMismatch,
    EffectResultLost,
    EffectUnclear,
    SqliteClaims,
    effect_policy,
)
from failwell.store.effects.claims import EffectKey
from failwell.testing.clock import FakeClock

HOUR = 3600.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(tmp_path: Path, clock: FakeClock) -> Iterator[SqliteClaims]:
    claims = SqliteClaims(tmp_path, clock=clock)
    yield claims
    claims.close()


class Payments:
    """A function with an effect, which counts its calls and then does what the test says."""

    def __init__(self, *ends: object) -> None:
        self.calls: list[str] = []
        self._ends = list(ends)

    def pay(self, order: str, amount: int = 1, memo: str = "") -> Any:
        self.calls.append(failwell.idempotency_key())
        end = self._ends.pop(0) if self._ends else {"order": order, "amount": amount}
        if isinstance(end, BaseException):
            raise end
        return end


def paying(store: ClaimStore, payments: Payments, **options: Any) -> Callable[..., Any]:
    chosen: dict[str, Any] = {"key": "order", "name": "pay", "store": store, **options}
    return failwell.effect(**chosen)(payments.pay)


# ---------------------------------------------------------------- one effect


def test_a_repeated_call_gets_the_first_result(store: SqliteClaims) -> None:
    payments = Payments()
    pay = paying(store, payments)

    assert pay("o1", 5) == pay("o1", amount=5) == {"order": "o1", "amount": 5}
    assert pay("o2", 5) == {"order": "o2", "amount": 5}

    assert payments.calls == ["pay/o1", "pay/o2"]


def test_another_connection_gets_the_first_result_too(
    store: SqliteClaims, tmp_path: Path, clock: FakeClock
) -> None:
    payments = Payments()
    paying(store, payments)("o1")
    other = SqliteClaims(tmp_path, clock=clock)

    assert paying(other, payments)("o1") == {"order": "o1", "amount": 1}
    other.close()

    assert len(payments.calls) == 1
    assert stat.S_IMODE((tmp_path / "journal.db").stat().st_mode) == 0o600


def test_an_async_function_runs_once_for_all_its_callers(store: SqliteClaims) -> None:
    began: list[str] = []

    @failwell.effect(key="order", store=store)
    async def pay(order: str) -> list[str]:
        began.append(failwell.idempotency_key())
        await asyncio.sleep(0)
        return [order]

    async def many() -> list[list[str]]:
        return await asyncio.gather(*(pay("o1") for _ in range(20)))

    assert asyncio.run(many()) == [["o1"]] * 20
    assert len(began) == 1


def test_threads_wait_for_the_one_that_runs_the_effect(store: SqliteClaims) -> None:
    entered, leave = threading.Event(), threading.Event()
    calls: list[str] = []

    @failwell.effect(key="order", store=store)
    def pay(order: str) -> int:
        calls.append(order)
        entered.set()
        leave.wait(30)
        return len(calls)

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(pay, "o1")
        entered.wait(30)
        others = [pool.submit(pay, "o1") for _ in range(3)]
        leave.set()

        assert [first.result(30), *(other.result(30) for other in others)] == [1, 1, 1, 1]


def test_a_caller_that_does_not_want_to_wait_is_told_that_it_is_busy(store: SqliteClaims) -> None:
    @failwell.effect(key="order", name="pay", store=store, wait=0)
    def pay(order: str, again: bool = True) -> int:
        return pay(order, again) if again else 1

    with pytest.raises(EffectBusy) as caught:
        pay("o1")

    report = failwell.describe(caught.value)
    assert (report.kind, report.retryable, report.certainty) == ("tool.busy", True, "not_sent")


def test_a_retry_inside_the_effect_sends_the_key_of_the_effect(store: SqliteClaims) -> None:
    payments = Payments(TimeoutError("the read operation timed out"))
    pay = failwell.effect(key="order", name="pay", store=store)(
        failwell.retry(keyed=True, clock=FakeClock())(payments.pay)
    )

    assert pay("o1") == {"order": "o1", "amount": 1}
    assert payments.calls == ["pay/o1", "pay/o1"]


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize(
    "failure",
    [
        ConnectionRefusedError(111, "Connection refused"),
        failwell.Fault(kind="tool.input_invalid"),
        failwell.Fault(kind="provider.rate_limited"),
    ],
    ids=["not sent", "refused by the tool", "rejected"],
)
def test_a_failure_that_did_nothing_releases_the_claim(store: SqliteClaims, failure: Exception) -> None:
    payments = Payments(failure)
    pay = paying(store, payments)

    with pytest.raises(type(failure)):
        pay("o1", 5)
    assert store.claims() == []

    assert pay("o1", 6) == {"order": "o1", "amount": 6}


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (TimeoutError("the read operation timed out"), "provider.outcome_unknown"),
        (ValueError("no such field"), "tool.failed"),
        (KeyboardInterrupt(), "cancel.tool"),
    ],
    ids=["lost reply", "bug after the call", "interrupt"],
)
def test_any_other_failure_keeps_it(store: SqliteClaims, failure: BaseException, kind: str) -> None:
    payments = Payments(failure)
    pay = paying(store, payments)
    with pytest.raises(type(failure)):
        pay("o1")

    with pytest.raises(EffectUnclear) as caught:
        pay("o1")

    assert len(payments.calls) == 1
    report = failwell.describe(caught.value, origin="tool")
    assert (report.kind, report.category, report.certainty) == (
        "tool.interrupted",
        "ambiguous",
        "unknown",
    )
    assert (report.blame, report.retryable) == ("tool", False)
    assert f"failed with {kind}" in report.message
    assert "failwell effects release" in report.user_action.detail


def test_the_hook_says_what_happened(store: SqliteClaims) -> None:
    lost = TimeoutError("the read operation timed out")
    asked: list[str] = []

    def was_paid(order: str) -> object:
        asked.append(failwell.idempotency_key())
        return {"done": Done({"order": order, "amount": 7}), "not done": False, "unknown": None}[order]

    payments = Payments(lost, lost, lost)
    pay = paying(store, payments, reconcile=was_paid)
    for order in ("done", "not done", "unknown"):
        with pytest.raises(TimeoutError):
            pay(order)

    assert pay("done") == pay("done") == {"order": "done", "amount": 7}
    assert pay("not done") == {"order": "not done", "amount": 1}
    with pytest.raises(EffectUnclear):
        pay("unknown")
    assert len(asked) == 3
    assert len(payments.calls) == 4


def test_a_hook_that_fails_counts_as_no_answer(store: SqliteClaims) -> None:
    def was_paid(order: str) -> bool:
        raise RuntimeError("the service is down")

    pay = paying(store, Payments(TimeoutError("the read operation timed out")), reconcile=was_paid)
    with pytest.raises(TimeoutError):
        pay("o1")

    events: list[Suppressed] = []
    with observe(events.append), pytest.raises(EffectUnclear):
        pay("o1")

    assert [event.cause for event in events] == ["RuntimeError (internal.bug)"]
    assert [claim.status for claim in store.claims()] == ["unclear"]


def test_a_cancelled_task_leaves_an_unclear_claim(store: SqliteClaims) -> None:
    @failwell.effect(key="order", store=store)
    async def pay(order: str) -> str:
        began.set()
        await asyncio.Event().wait()
        return order

    began = asyncio.Event()

    async def cancelled() -> None:
        task = asyncio.create_task(pay("o1"))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())

    assert [(claim.status, claim.kind) for claim in store.claims()] == [("unclear", "cancel.tool")]


def test_a_task_that_is_cancelled_while_its_claim_is_written_leaves_none(tmp_path: Path) -> None:
    writing, written = threading.Event(), threading.Event()

    class SlowClaims(SqliteClaims):
        def claim(self, effect: EffectKey, arguments: Mapping[str, str]) -> Claim:
            claim = super().claim(effect, arguments)
            writing.set()
            written.wait(30)
            return claim

    store = SlowClaims(tmp_path)
    calls: list[str] = []

    @failwell.effect(key="order", store=store)
    async def pay(order: str) -> None:
        calls.append(order)

    async def cancelled() -> None:
        task = asyncio.create_task(pay("o1"))
        await asyncio.to_thread(writing.wait, 30)
        task.cancel()
        await asyncio.sleep(0)
        written.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())

    assert calls == []
    assert store.claims() == []
    store.close()


def test_a_store_that_cannot_be_used_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file, and no folder")
    payments = Payments()

    with pytest.raises(failwell.Fault) as caught:
        paying(SqliteClaims(tmp_path / "state"), payments)("o1")

    assert failwell.describe(caught.value).kind == "session.store_unavailable"
    assert payments.calls == []


# ---------------------------------------------------------------- keys, arguments, scopes, results


def test_the_same_key_with_other_arguments_is_refused_by_name(store: SqliteClaims) -> None:
    pay = paying(store, Payments())
    pay("o1", 5, memo="tea")

    with pytest.raises(EffectMismatch, match="another amount, memo"):
        pay("o1", 6, memo="coffee")

    lenient = paying(store, Payments(), ignore=("memo",))
    assert lenient("o1", 5, memo="coffee") == {"order": "o1", "amount": 5}


def test_a_key_is_names_a_template_or_a_function(store: SqliteClaims) -> None:
    def own_key(order: str, amount: int, memo: str) -> str:
        return f"{order}{amount}{memo}"

    forms: list[Any] = [
        "order",
        "order-{order}",
        ("order", "amount"),
        own_key,
    ]
    for number, key in enumerate(forms):
        paying(store, Payments(), key=key, name=f"pay{number}")("o1", 5)

    keys = {claim.effect.name: claim.effect.key for claim in store.claims()}
    assert keys == {"pay0": "o1", "pay1": "order-o1", "pay2": '["o1",5]', "pay3": "o15"}


@pytest.mark.parametrize("order", [None, ""])
@pytest.mark.parametrize("key", ["order", "x-{order}"])
def test_a_key_of_nothing_is_refused(store: SqliteClaims, key: str, order: str | None) -> None:
    payments = Payments()

    with pytest.raises(EffectKeyInvalid, match="needs `order`"):
        paying(store, payments, key=key)(order)

    assert payments.calls == []


def test_a_key_whose_text_differs_between_processes_is_refused(store: SqliteClaims) -> None:
    for key in ("order", "x-{order}"):
        with pytest.raises(TypeError, match="may differ between processes"):
            paying(store, Payments(), key=key)(object())


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"key": "number"}, ValueError, "names `number`, and the arguments are `order`, `amount`, `memo`"),
        ({"key": "x-{number}"}, ValueError, "names `number`"),
        ({"key": "{{}}"}, ValueError, "the same for every call"),
        ({"key": ()}, TypeError, "`key` takes"),
        ({"scope": "turn"}, ValueError, "`scope` takes"),
        ({"keep": -1}, ValueError, "keep"),
        ({"wait": "long"}, ValueError, "wait"),
        ({"reconcile": 5}, TypeError, "reconcile"),
        ({"ignore": ("sum",)}, ValueError, "`ignore` names `sum`"),
    ],
)
def test_wrong_options_are_named_when_the_function_is_decorated(
    store: SqliteClaims, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        paying(store, Payments(), **options)


def test_a_scope_limits_a_key_to_a_run_or_session(store: SqliteClaims) -> None:
    payments = Payments()
    pay = paying(store, payments, scope="session")

    for session in ("s1", "s2", "s1"):
        with scene(session=session):
            pay("o1")
    with pytest.raises(ValueError, match="limited to a session, and there is none here"):
        pay("o1")

    assert payments.calls == ["pay/session-s1/o1", "pay/session-s2/o1"]


def test_a_result_is_returned_exactly_or_not_at_all(store: SqliteClaims) -> None:
    exact: dict[str, Any] = {"text": "ä\ud800", "numbers": [1, -2.5, True, None], "empty": {}}
    pay = paying(store, Payments(exact, ("a", "tuple")))
    assert pay("o1") == exact
    assert pay("o1") == exact

    with pytest.raises(EffectResultLost):
        pay("o2")
    with pytest.raises(EffectResultLost) as caught:
        pay("o2")

    report = failwell.describe(caught.value)
    assert (report.kind, report.certainty) == ("tool.output_malformed", "done_but_lost")


def test_a_function_that_says_it_returns_no_json_is_refused_when_it_is_decorated() -> None:
    @dataclass
    class Receipt:
        number: int

    def as_class() -> Receipt: ...
    def as_bytes() -> dict[str, bytes]: ...
    def as_number() -> Decimal | None: ...
    def as_generator() -> Iterator[int]:
        yield 1

    for function in (as_class, as_bytes, as_number, as_generator):
        with pytest.raises(TypeError):
            failwell.effect(key=lambda: "k")(function)


def test_results_expire_and_open_questions_do_not(store: SqliteClaims, clock: FakeClock) -> None:
    payments = Payments({"n": 1}, TimeoutError("the read operation timed out"))
    pay = paying(store, payments, keep=HOUR)
    pay("o1")
    with pytest.raises(TimeoutError):
        pay("o2")

    clock.advance(2 * HOUR)
    pay("o1")

    assert len(payments.calls) == 3
    with pytest.raises(EffectUnclear):
        pay("o2")


# ---------------------------------------------------------------- MCP


@pytest.mark.parametrize(
    ("tool", "policy"),
    [
        ({"annotations": {"readOnlyHint": True}}, "none"),
        ({"annotations": {"readOnlyHint": False, "idempotentHint": True}}, "repeat"),
        ({"annotations": {"destructiveHint": True}}, "claim"),
        ({"annotations": None}, "claim"),
        ({"readOnlyHint": "yes"}, "claim"),
        (None, "claim"),
    ],
)
def test_the_annotations_of_a_tool_set_the_policy(tool: object, policy: str) -> None:
    assert effect_policy(tool) == policy


def test_the_annotations_of_the_real_library_are_read() -> None:
    types = pytest.importorskip("mcp.types")
    schema = {"type": "object"}

    def tool(**hints: bool) -> Any:
        return types.Tool(name="t", inputSchema=schema, annotations=types.ToolAnnotations(**hints))

    assert effect_policy(tool(readOnlyHint=True)) == "none"
    assert effect_policy(tool(idempotentHint=True).annotations) == "repeat"
    assert effect_policy(types.Tool(name="t", inputSchema=schema)) == "claim"


def test_stores_that_begin_at_the_same_moment_do_not_delete_each_others_folders(tmp_path: Path) -> None:
    def claim(folder: Path, number: int) -> bool:
        return (
            SqliteClaims(folder)
            .claim(EffectKey(id=f"id-{number}", name="n", scope="s", key=str(number)), {})
            .is_own
        )

    with ThreadPoolExecutor(8) as pool:
        for round_ in range(20):
            folder = tmp_path / str(round_)
            assert list(pool.map(claim, [folder] * 8, range(8))) == [True] * 8
