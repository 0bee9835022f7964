"""Effects, guards and budgets over a real Redis: shared while it is there, and the process's own while it is not."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import failwell
from bench._pauses import PROCESSES, delays
from failwell import Budget
from failwell.calls import Guard, SharedBudget, observe
from failwell.calls.circuit_breaker import CallTarget
from failwell.calls.suppress import Suppressed
from failwell.delivery import PageWindow
from failwell.errors import NotBefore
from failwell.store import Done, EffectBusy, EffectUnclear, RedisClaims, RedisLimits
from failwell.testing.builders import make_report
from tests.sdks.stores.servers import free_port, redis_server, start_redis
from tests.store.test_pauses_of_processes import GENEROUS

pytestmark = pytest.mark.slow

redis: Any = pytest.importorskip("redis")
ACME = CallTarget("acme", "team")
_PATIENCE = 20.0


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with redis_server() as started:
        yield started


@pytest.fixture(params=[False, True], ids=["bytes", "texts"])
def client(port: int, request: pytest.FixtureRequest) -> Any:
    link = redis.Redis(host="127.0.0.1", port=port, socket_timeout=2, decode_responses=request.param)
    link.flushall()
    return link


def rate_limit(after: float = 30.0) -> failwell.ErrorReport:
    return make_report(
        kind="provider.rate_limited", not_before=NotBefore(after=after, source="header retry-after")
    )


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


# ---------------------------------------------------------------- effects


def test_an_effect_runs_once_and_its_result_is_kept(client: Any) -> None:
    calls: list[str] = []

    @failwell.effect(key="order", name="pay", store=RedisClaims(client))
    def pay(order: str, amount: int) -> dict[str, Any]:
        calls.append(failwell.idempotency_key())
        return {"order": order, "amount": amount, "none": None}

    assert pay("ö1", 5) == pay("ö1", 5) == {"order": "ö1", "amount": 5, "none": None}
    with pytest.raises(failwell.Fault, match="another amount"):
        pay("ö1", 6)

    assert len(calls) == 1
    [claim] = RedisClaims(client).claims(["done"])
    assert (claim.effect.key, claim.expires is not None) == ("ö1", True)


def test_failures_keep_or_release_the_claim_and_the_hook_decides(client: Any) -> None:
    store = RedisClaims(client)
    ends: list[Any] = [
        ConnectionRefusedError(111, "refused"),
        TimeoutError("the read operation timed out"),
        "again",
    ]
    answers: list[Any] = [None, Done("found")]

    def pay(order: str) -> str:
        end = ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end

    def was_paid(order: str) -> Any:
        return answers.pop(0)

    careful = failwell.effect(key="order", name="pay", store=store)(pay)
    knowing = failwell.effect(key="order", name="pay", store=store, reconcile=was_paid)(pay)
    for failure in (ConnectionRefusedError, TimeoutError, EffectUnclear):
        with pytest.raises(failure):
            careful("o1")
    with pytest.raises(EffectUnclear):
        knowing("o1")

    assert knowing("o1") == "found"
    assert careful("o1") == "found"
    assert ends == ["again"]
    [claim] = store.claims()
    assert store.release(claim)
    assert careful("o1") == "again"


def test_a_process_that_dies_leaves_an_unclear_claim_after_its_lease(port: int, tmp_path: Path) -> None:
    client = redis.Redis(host="127.0.0.1", port=port)
    client.flushall()
    ledger = tmp_path / "ledger"
    script = f"""
import os, redis, signal, failwell
from failwell.store import RedisClaims
@failwell.effect(key="order", name="pay", store=RedisClaims(redis.Redis(port={port}), lease=1.0))
def pay(order: str) -> str:
    os.write(os.open({str(ledger)!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND), b"paid\\n")
    os.kill(os.getpid(), signal.SIGKILL)
pay("o1")
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    store = RedisClaims(client, lease=1.0)

    @failwell.effect(key="order", name="pay", store=store, wait=_PATIENCE)
    def pay(order: str) -> str:
        raise AssertionError("a second payment")

    with pytest.raises(EffectUnclear):
        pay("o1")

    assert ledger.read_text() == "paid\n"


def test_a_lease_is_renewed_while_the_effect_runs(client: Any) -> None:
    store, other = RedisClaims(client, lease=0.3), RedisClaims(client, lease=0.3)

    @failwell.effect(key="order", name="pay", store=other, wait=0)
    def again(order: str) -> str:
        raise AssertionError("a second payment")

    @failwell.effect(key="order", name="pay", store=store)
    def pay(order: str) -> str:
        time.sleep(1.0)  # longer than the lease
        with pytest.raises(EffectBusy):
            again(order)
        return "paid"

    assert pay("o1") == "paid"


def test_an_asynchronous_client_is_refused() -> None:
    from redis.asyncio import Redis  # pyright: ignore[reportMissingImports, reportUnknownVariableType]

    for store in (RedisClaims, RedisLimits):
        with pytest.raises(TypeError, match="blocking client"):
            store(Redis())


# ---------------------------------------------------------------- limits


def test_guards_and_budgets_share_what_they_know(client: Any) -> None:
    stores = [RedisLimits(client) for _ in range(3)]
    guards = [Guard(store=store) for store in stores]
    for guard in guards:
        assert guard.paused(ACME) is None

    guards[0].failed(ACME, rate_limit())

    assert eventually(lambda: all(guard.paused(ACME) is not None for guard in guards))
    budgets = [SharedBudget(Budget(attempts=3), store=store, name="day") for store in stores]
    assert [budget.take() is None for budget in (*budgets, *budgets)] == [True] * 3 + [False] * 3
    windows = [PageWindow(60, store=store) for store in stores]
    assert [window.severity(make_report(kind="provider.auth")) for window in windows] == [
        "critical",
        "error",
        "error",
    ]
    for store in stores:
        store.close()


def test_one_rate_limit_pauses_eight_processes_through_redis(client: Any, port: int) -> None:
    seen = delays(f"redis:{port}")

    assert len(seen) == PROCESSES - 1
    assert max(seen) < GENEROUS


def test_a_redis_that_is_killed_leaves_local_limits_and_is_used_again_when_it_is_back() -> None:
    port = free_port()

    def guard() -> tuple[RedisLimits, Guard]:
        store = RedisLimits(redis.Redis(host="127.0.0.1", port=port, socket_timeout=1, retry=None))
        return store, Guard(store=store)

    server = start_redis(port)
    (store, one), (other_store, two) = guard(), guard()
    events: list[Suppressed] = []
    try:
        one.failed(ACME, make_report(kind="provider.overloaded"))
        assert eventually(lambda: bool(two.states()))
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
        assert eventually(lambda: store.version() < 0)

        with observe(events.append):
            one.failed(ACME, rate_limit(after=600))
            assert one.paused(ACME) is not None
            assert one.refuses(ACME) is None
            for _ in range(100):
                one.succeeded(ACME)
        assert [event.report.kind for event in events] == ["session.store_unavailable"]
        assert two.paused(ACME) is None

        server = start_redis(port)
        assert eventually(lambda: one.refuses(ACME) is None and two.paused(ACME) is not None)
    finally:
        store.close()
        other_store.close()
        server.kill()
        server.wait()
