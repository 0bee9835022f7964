"""What attempts cost: every one is priced, the failed ones too, and what is shared is never overspent."""

import asyncio
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import failwell
from failwell.adapters.replies import read_usage
from failwell.calls.budget import Budget
from failwell.calls.chain.chain import Chain, ChainPolicy, Entry
from failwell.calls.cost import Price, Prices, estimate
from failwell.calls.retry import retry
from failwell.calls.shared_budget import BudgetExceeded, SharedBudget
from failwell.testing.builders import make_fault
from failwell.testing.clock import FakeClock
from tests.calls.acting import Scripted, caught, ledger, overloaded

PRICES = Prices({"a": Price.dollars(1, 2), "b": Price.dollars(10, 20)}, public=False)
MILLION = 1_000_000


def a_reply(given: int, answered: int) -> dict[str, Any]:
    return {"usage": {"prompt_tokens": given, "completion_tokens": answered}}


def an_entry(model: str, call: Any, **changes: Any) -> Entry[Any]:
    return Entry(provider=model.upper(), model=model, call=call, **changes)


def a_chain(*entries: Entry[Any], **changes: Any) -> Chain[Any]:
    return Chain(*entries, prices=PRICES, clock=FakeClock(), **changes)


def a_budget(micro_cents: int) -> Budget:
    return Budget(usd=micro_cents / 100_000_000)


@pytest.mark.acceptance("relavium 29")
def test_a_million_tokens_each_way_at_five_and_twenty_five_dollars() -> None:
    price = Price.dollars(5, 25)

    assert price.of({"input_tokens": MILLION, "output_tokens": MILLION}) == 3_000_000_000


@pytest.mark.acceptance("relavium 29")
def test_half_a_micro_cent_rounds_up_in_every_class() -> None:
    price = Price(input=1, output=1, cache_read=1, cache_write=1)
    half = MILLION // 2

    assert price.of({"input_tokens": half}) == 1
    assert price.of({"input_tokens": half - 1}) == 0
    assert price.of({"input_tokens": half, "output_tokens": half, "cache_write_tokens": half}) == 3
    assert price.of({"input_tokens": half + MILLION * 2}) == 3


def test_cached_input_costs_what_other_input_costs_unless_it_has_a_price() -> None:
    cached = {"cache_read_tokens": MILLION}

    assert Price.dollars(5, 25).of(cached) == 500_000_000
    assert Price.dollars(5, 25, cache_read="0.5").of(cached) == 50_000_000


def test_a_negative_price_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        Price.dollars(-1, 1)


@pytest.mark.acceptance("relavium 30")
def test_a_call_that_failed_after_reporting_tokens_is_charged_to_its_own_model() -> None:
    cut_off = make_fault(
        kind="provider.overloaded", details={"usage": {"input_tokens": MILLION, "output_tokens": 0}}
    )
    chain = a_chain(an_entry("a", Scripted(cut_off)), an_entry("b", Scripted(a_reply(0, MILLION))))

    chain.call()

    assert [(row.model, row.usage, row.cost) for row in chain.ledger.attempts] == [
        ("a", {"input_tokens": MILLION, "output_tokens": 0}, 100_000_000),
        ("b", {"input_tokens": 0, "output_tokens": MILLION}, 2_000_000_000),
    ]
    assert chain.ledger.cost == 2_100_000_000
    assert chain.ledger.usd == 21.0


@pytest.mark.acceptance("relavium 30")
def test_a_stream_that_broke_off_is_charged_for_what_it_reported() -> None:
    def breaks() -> Any:
        yield {"type": "message_start", "message": {"usage": {"input_tokens": MILLION, "output_tokens": 1}}}
        yield {"type": "message_delta", "usage": {"output_tokens": MILLION}}
        raise overloaded()

    chain = a_chain(an_entry("a", breaks))

    error = caught(lambda: list(chain.stream()))

    assert ledger(error).cost == 100_000_000 + 200_000_000


@pytest.mark.acceptance("relavium 31")
def test_a_model_without_a_price_answers_all_the_same_and_is_marked() -> None:
    chain = a_chain(an_entry("nameless", Scripted(a_reply(10, 5))))

    chain.call()

    (row,) = chain.ledger.attempts
    assert row.usage == {"input_tokens": 10, "output_tokens": 5}
    assert row.cost is None
    assert chain.ledger.unpriced == 1
    assert "no price" in chain.ledger.table()


def test_a_budget_in_dollars_refuses_a_model_without_a_price_before_anything_is_sent() -> None:
    call = Scripted(a_reply(10, 5))
    budget = SharedBudget(Budget(usd=5))

    error = caught(a_chain(an_entry("nameless", call), budget=budget).call)

    report = failwell.describe(error)
    assert (report.kind, report.retryable, report.certainty) == (
        "validation.config_invalid",
        False,
        "not_sent",
    )
    assert "the price of NAMELESS/nameless is unknown" in report.message
    assert "unpriced='allow'" in report.message
    assert call.count == 0


def test_missing_price_data_is_refused_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    call = Scripted(a_reply(10, 5))
    known = Entry(provider="openai", model="gpt-4o-mini", call=call)

    with SharedBudget(Budget(attempts=100)), SharedBudget(Budget(usd=5), parent=None):
        error = caught(Chain(known).call)

    assert failwell.describe(error).kind == "validation.config_invalid"
    assert call.count == 0


def test_a_budget_may_allow_what_has_no_price() -> None:
    call = Scripted(a_reply(10, 5))
    budget = SharedBudget(Budget(usd=5, unpriced="allow"), parent=SharedBudget(Budget(attempts=3)))

    a_chain(an_entry("nameless", call), budget=budget).call()

    assert (call.count, budget.spent.usd) == (1, 0.0)


def test_a_budget_around_one_that_allows_unpriced_calls_still_refuses_them() -> None:
    outer = SharedBudget(Budget(usd=5))
    inner = SharedBudget(Budget(usd=1, unpriced="allow"), parent=outer)

    error = caught(a_chain(an_entry("nameless", Scripted("answer")), budget=inner).call)

    assert failwell.describe(error).kind == "validation.config_invalid"


def test_a_retry_loop_that_names_a_model_cannot_be_counted_in_dollars() -> None:
    call, other = Scripted("answer"), Scripted("answer")

    with SharedBudget(Budget(usd=5)):
        error = caught(retry(provider="acme", model="large")(call))
        retry(provider="acme")(other)()

    assert "the price of acme/large is unknown" in str(error)
    assert (call.count, other.count) == (0, 1)


def test_an_estimate_counts_positional_messages() -> None:
    messages = [{"role": "user", "content": "x" * 3_000}]

    by_position = estimate(PRICES, "A", "a", {}, (messages,))

    assert by_position == estimate(PRICES, "A", "a", {"messages": messages})


def test_money_is_reserved_and_settled_in_dollars() -> None:
    budget = SharedBudget(Budget(usd=1), spent_usd=0.25)

    budget.reserve(usd=0.5).settle(usd=0.1)

    assert budget.spent.usd == 0.35
    with pytest.raises(BudgetExceeded, match=r"\$0.7, and \$0.65 of \$1 are left"):
        budget.reserve(usd=0.7)


def test_an_attempt_without_a_known_outcome_may_have_been_billed() -> None:
    error = caught(a_chain(an_entry("a", Scripted(make_fault(kind="provider.outcome_unknown")))).call)

    assert ledger(error).may_have_been_billed == 1


def test_a_usage_hook_that_fails_does_not_cost_the_answer() -> None:
    def broken(reply: Any) -> dict[str, int]:
        raise KeyError("tokens")

    chain = a_chain(an_entry("a", Scripted("answer")), policy=ChainPolicy(usage=broken))

    assert chain.call() == "answer"


@pytest.mark.acceptance("relavium 32")
def test_exactly_the_budget_is_allowed_and_one_micro_cent_more_is_not() -> None:
    budget = SharedBudget(a_budget(100))

    budget.reserve(60).settle(60)
    budget.reserve(40).release()
    with pytest.raises(
        BudgetExceeded, match=r"may cost \$0.00000041, and \$0.0000004 of \$0.000001 are left"
    ):
        budget.reserve(41)

    assert budget.spent.cost == 60


@pytest.mark.acceptance("relavium 32")
def test_over_the_budget_no_provider_is_called() -> None:
    call = Scripted("answer")
    chain = a_chain(an_entry("a", call), budget=SharedBudget(a_budget(1)))

    error = caught(lambda: chain.call(prompt="hello", max_tokens=1000))

    report = failwell.describe(error)
    assert (report.kind, report.retryable) == ("limit.budget_exceeded", False)
    assert call.count == 0


@pytest.mark.acceptance("relavium 39")
def test_what_one_branch_reserved_another_cannot_spend() -> None:
    expected = estimate(PRICES, "A", "a", {"max_tokens": 1000})
    assert expected is not None
    budget = SharedBudget(a_budget(expected + expected // 2))
    calls: list[int] = []

    async def answers(**request: Any) -> dict[str, Any]:
        calls.append(1)
        await asyncio.sleep(0)
        return a_reply(0, 1000)

    async def branch() -> str:
        try:
            await a_chain(an_entry("a", answers), budget=budget).acall(max_tokens=1000)
        except BudgetExceeded:
            return "refused"
        return "done"

    async def both() -> list[str]:
        return [*await asyncio.gather(branch(), branch())]

    assert sorted(asyncio.run(both())) == ["done", "refused"]
    assert calls == [1]


def test_a_thousand_tasks_never_spend_more_than_there_is() -> None:
    budget = SharedBudget(a_budget(100 * 7))
    highest = 0

    async def task(number: int) -> int:
        nonlocal highest
        try:
            reserved = budget.reserve(7)
        except BudgetExceeded:
            return 0
        await asyncio.sleep(0)
        highest = max(highest, budget.spent.cost)
        reserved.settle(5 if number % 2 else 7)
        return 1

    async def everybody() -> list[int]:
        return await asyncio.gather(*(task(number) for number in range(1000)))

    done = sum(asyncio.run(everybody()))

    assert done >= 100
    assert highest <= 700
    assert budget.spent.cost <= 700


def test_what_a_call_that_nobody_heard_of_again_reserved_stays_spent() -> None:
    budget = SharedBudget(a_budget(10**12))
    lost = a_chain(an_entry("a", Scripted(make_fault(kind="provider.outcome_unknown"))), budget=budget)
    refused = a_chain(an_entry("a", Scripted(make_fault(kind="provider.bad_request"))), budget=budget)

    caught(lambda: refused.call(max_tokens=10))
    assert budget.spent.cost == 0
    caught(lambda: lost.call(max_tokens=10))
    assert budget.spent.cost == estimate(PRICES, "A", "a", {"max_tokens": 10})


def test_a_budget_in_a_budget_takes_from_both() -> None:
    outer = SharedBudget(a_budget(100))
    inner = SharedBudget(a_budget(80), parent=outer)

    inner.reserve(50).keep()
    outer.reserve(40).keep()
    with pytest.raises(BudgetExceeded, match=r"\$0.0000001 of \$0.000001 are left"):
        inner.reserve(11)

    assert inner.spent.cost == 50


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (
            {
                "usage": {
                    "prompt_tokens": 100,
                    "completion_tokens": 5,
                    "prompt_tokens_details": {"cached_tokens": 60},
                }
            },
            {"input_tokens": 40, "output_tokens": 5, "cache_read_tokens": 60},
        ),
        (
            {
                "usage": {
                    "input_tokens": 100,
                    "output_tokens": 5,
                    "input_tokens_details": {"cached_tokens": 60},
                }
            },
            {"input_tokens": 40, "output_tokens": 5, "cache_read_tokens": 60},
        ),
        (
            {
                "usage": {
                    "input_tokens": 40,
                    "output_tokens": 5,
                    "cache_read_input_tokens": 60,
                    "cache_creation_input_tokens": 7,
                }
            },
            {"input_tokens": 40, "output_tokens": 5, "cache_read_tokens": 60, "cache_write_tokens": 7},
        ),
        (
            {
                "usageMetadata": {
                    "promptTokenCount": 100,
                    "cachedContentTokenCount": 60,
                    "candidatesTokenCount": 5,
                    "thoughtsTokenCount": 3,
                    "toolUsePromptTokenCount": 2,
                }
            },
            {"input_tokens": 42, "output_tokens": 8, "cache_read_tokens": 60},
        ),
        (
            {"usage": {"inputTokens": 40, "outputTokens": 5, "cacheReadInputTokens": 60}},
            {"input_tokens": 40, "output_tokens": 5, "cache_read_tokens": 60},
        ),
        ({"prompt_eval_count": 7, "eval_count": 3}, {"input_tokens": 7, "output_tokens": 3}),
        (
            {"usage": {"tokens": {"input_tokens": 7, "output_tokens": 3}}},
            {"input_tokens": 7, "output_tokens": 3},
        ),
        (
            SimpleNamespace(usage=SimpleNamespace(prompt_tokens=7, completion_tokens=3)),
            {"input_tokens": 7, "output_tokens": 3},
        ),
        ("an answer", {}),
        ({"usage": {"prompt_tokens": -1, "completion_tokens": True}}, {}),
    ],
    ids=[
        "chat",
        "responses",
        "anthropic",
        "gemini",
        "bedrock",
        "ollama",
        "cohere",
        "object",
        "text",
        "nonsense",
    ],
)
def test_every_token_is_in_one_class_whoever_counted_it(reply: object, expected: dict[str, int]) -> None:
    assert read_usage(reply) == expected


def test_the_public_list_is_asked_where_it_is_installed_and_own_prices_come_first() -> None:
    pytest.importorskip("genai_prices")
    usage = {"input_tokens": MILLION, "output_tokens": 0}

    listed = Prices().cost("openai", "gpt-4o-mini", usage)
    own = Prices({"openai/gpt-4o-mini": Price.dollars(1, 1)}).cost("openai", "gpt-4o-mini", usage)

    assert listed == 15_000_000
    assert own == 100_000_000
    assert Prices().cost("openai", "no-such-model", usage) is None
