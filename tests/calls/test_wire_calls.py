"""Real clients against the laboratory: calls on the wire are as many as attempts on record."""

from collections.abc import Iterator
from typing import Any

import pytest

import failwell
from failwell.calls.attempt_loop import Parked
from failwell.calls.chain.chain import Chain, ChainPolicy, Entry
from failwell.calls.retry import retry
from failwell.calls.sdk_retries import without_sdk_retries
from failwell.errors.axes import ActionKind
from failwell.testing.clock import FakeClock
from failwell.testing.laboratory.server import Lab, lab
from tests.calls.acting import caught, ledger

httpx: Any = pytest.importorskip("httpx")
ASKED: dict[str, Any] = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture(scope="module")
def fake() -> Iterator[Lab]:
    with lab(stall=0.4) as running:
        yield running


def a_post(fake: Lab, scenario: str, dialect: str = "openai", timeout: float = 5.0) -> Any:
    """A call with plain httpx, which repeats nothing by itself."""
    url = f"{fake.url(dialect, scenario)}/chat/completions"

    def post(**_: Any) -> Any:
        reply = httpx.post(url, json=ASKED, headers={"authorization": "Bearer lab"}, timeout=timeout)
        reply.raise_for_status()
        return reply.json()

    return post


_open_clients: list[Any] = []


@pytest.fixture(autouse=True)
def _close_clients() -> Iterator[None]:
    yield
    while _open_clients:
        _open_clients.pop().close()


def an_openai_call(fake: Lab, scenario: str, **changes: Any) -> Any:
    """A call with the vendor's own client, its retries switched off by `without_sdk_retries`."""
    openai: Any = pytest.importorskip("openai")
    client = without_sdk_retries(
        openai.OpenAI(api_key="sk-lab", base_url=fake.url("openai", scenario), **changes)
    )
    _open_clients.append(client)

    def create(**_: Any) -> Any:
        return client.chat.completions.create(**ASKED)

    return create


CLIENTS = [pytest.param(a_post, id="httpx"), pytest.param(an_openai_call, id="openai")]


@pytest.mark.acceptance("stud-cli 26", "stud-cli 15", "pipelex 47")
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("scenario", "calls"),
    [
        ("server_error", 3),
        ("overloaded", 3),
        ("html_502", 3),
        ("bad_schema", 1),
        ("missing_model", 1),
        ("bad_key", 1),
        ("no_permission", 1),
        ("content_refused_in", 1),
        ("context_too_long", 1),
        ("empty_balance", 1),
        ("gateway_timeout", 1),
        ("reset_after_read", 1),
    ],
)
def test_calls_on_the_wire_are_as_many_as_attempts_on_record(
    fake: Lab, client: Any, scenario: str, calls: int
) -> None:
    clock = FakeClock()
    fake.reset()

    error = caught(retry(clock=clock)(client(fake, scenario)))

    assert fake.calls("openai", scenario) == calls
    assert len(ledger(error).attempts) == calls
    assert {row.kind for row in ledger(error).attempts} == {fake.truth("openai", scenario).kind}


@pytest.mark.acceptance("stud-cli 11", "stud-cli 26")
@pytest.mark.parametrize("client", CLIENTS)
def test_a_rate_limit_without_a_requested_delay_is_six_calls_on_the_wire(fake: Lab, client: Any) -> None:
    clock = FakeClock()
    fake.reset()

    error = caught(retry(clock=clock)(client(fake, "rate_limited@none")))

    assert fake.calls("openai", "rate_limited") == 6
    assert len(ledger(error).attempts) == 6
    assert clock.slept == pytest.approx([5, 10, 20, 40, 80], rel=0.2)


@pytest.mark.acceptance("stud-cli 12")
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("form", "seconds"), [("seconds", 7.0), ("float", 7.5), ("ms", 6.5)])
def test_a_requested_delay_is_slept_exactly_as_the_header_says(
    fake: Lab, client: Any, form: str, seconds: float
) -> None:
    clock = FakeClock()

    caught(retry(clock=clock)(client(fake, f"rate_limited@{form}")))

    assert clock.slept == [seconds] * 5


@pytest.mark.acceptance("stud-cli 13")
def test_a_told_date_is_slept_until_then(fake: Lab) -> None:
    clock = FakeClock()

    caught(retry(clock=clock)(a_post(fake, "rate_limited@date")))

    assert clock.slept == pytest.approx([30.0] * 5, abs=2)


@pytest.mark.acceptance("stud-cli 13")
def test_a_told_date_that_has_passed_is_no_wait() -> None:
    clock = FakeClock()
    reply = httpx.Response(
        429,
        headers={"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT", "date": "Sun, 01 Mar 2026 12:00:00 GMT"},
        request=httpx.Request("POST", "https://api.example.com/v1"),
    )

    def call() -> None:
        reply.raise_for_status()

    caught(retry(clock=clock)(call))

    assert clock.slept == []


@pytest.mark.acceptance("stud-cli 14")
def test_a_requested_delay_that_makes_no_sense_leaves_the_default_and_is_on_record(fake: Lab) -> None:
    clock = FakeClock()

    error = caught(retry(clock=clock)(a_post(fake, "rate_limited@garbage")))

    assert clock.slept == pytest.approx([5, 10, 20, 40, 80], rel=0.2)
    metadata = failwell.describe(error).provider_metadata
    assert metadata is not None
    assert metadata.headers["retry-after"] == "soon"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_wait_of_days_is_parked_after_one_call(fake: Lab, client: Any) -> None:
    clock = FakeClock()
    fake.reset()

    error = caught(retry(clock=clock)(client(fake, "rate_limited@days")))

    assert isinstance(error, Parked)
    assert fake.calls("openai", "rate_limited") == 1
    assert (error.resume_at - clock.now()).total_seconds() == pytest.approx(274_579, abs=1)


@pytest.mark.acceptance("stud-cli 16")
def test_a_reply_that_never_came_is_asked_for_again_only_if_that_is_harmless(fake: Lab) -> None:
    fake.reset()
    caught(retry(clock=FakeClock())(a_post(fake, "slow_headers", timeout=0.1)))
    assert fake.calls("openai", "slow_headers") == 1

    fake.reset()
    caught(retry(clock=FakeClock(), idempotent=True)(a_post(fake, "slow_headers", timeout=0.1)))
    assert fake.calls("openai", "slow_headers") == 3


@pytest.mark.acceptance("pipelex 49")
@pytest.mark.parametrize(
    ("scenario", "calls"), [("server_error", 1), ("slow_headers", 1), ("rate_limited@none", 6)]
)
def test_a_submission_is_repeated_only_where_nothing_was_done(fake: Lab, scenario: str, calls: int) -> None:
    fake.reset()

    caught(retry(clock=FakeClock(), idempotent=False)(a_post(fake, scenario, timeout=0.1)))

    assert fake.calls("openai", scenario.partition("@")[0]) == calls


@pytest.mark.acceptance("pipelex 49")
def test_a_refused_connection_was_never_sent_and_is_tried_again(fake: Lab) -> None:
    error = caught(retry(clock=FakeClock(), idempotent=False)(a_post(fake, "refused")))

    assert [row.certainty for row in ledger(error).attempts] == ["not_sent"] * 3


@pytest.mark.acceptance("stud-cli 17")
def test_a_wrong_key_is_one_call_and_asks_for_another(fake: Lab) -> None:
    fake.reset()

    error = caught(retry(clock=FakeClock())(an_openai_call(fake, "bad_key")))

    assert fake.calls("openai", "bad_key") == 1
    assert failwell.describe(error).user_action.kind is ActionKind.CHECK_CREDENTIALS


@pytest.mark.acceptance("stud-cli 26", "relavium 10")
def test_a_chain_over_real_clients_makes_the_calls_that_its_ledger_shows(fake: Lab) -> None:
    fake.reset()
    chain = Chain(
        Entry(provider="openai", model="gpt-4o", call=an_openai_call(fake, "overloaded"), attempts=2),
        Entry(provider="other", model="gpt-4o-mini", call=a_post(fake, "ok")),
        policy=ChainPolicy(idempotent=True),
        clock=FakeClock(),
    )

    chain.call()

    assert fake.calls() == len(chain.ledger.attempts) == 3
    assert chain.ledger.attempts[-1].usage["output_tokens"] > 0


def test_an_sdk_that_is_not_quieted_makes_calls_that_no_ledger_knows(fake: Lab) -> None:
    openai: Any = pytest.importorskip("openai")
    client = openai.OpenAI(api_key="sk-lab", base_url=fake.url("openai", "server_error"), max_retries=1)
    fake.reset()

    error = caught(retry(clock=FakeClock())(lambda: client.chat.completions.create(**ASKED)))

    assert len(ledger(error).attempts) == 3
    assert fake.calls("openai", "server_error") == 6
