"""Processes that are killed around an effect: the agent plans again, and the effect has happened once."""

import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from failwell.store import EffectUnclear, SqliteClaims
from tests.store.paying import POINTS, payer, payments


@pytest.fixture
def run_process() -> Iterator[Callable[..., int]]:
    """Calls the effect in a process of its own, and returns how that ended."""
    command = [sys.executable, "-m", "tests.store.paying"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        requests, replies = server.stdin, server.stdout

        def run(*arguments: object) -> int:
            print(*arguments, file=requests, flush=True)
            return int(replies.readline())

        yield run
        requests.close()


def killed_and_planned_again(
    folder: Path, run_process: Callable[..., int], points: list[tuple[str, float]]
) -> None:
    """Let a process die at each point, then call the same effect again, first without and then with a hook."""
    ledger = folder / "ledger"
    state = folder / "state"
    store = SqliteClaims(state)
    careful = payer(ledger, store)
    knowing = payer(ledger, store, reconcile=True)
    for number, (point, delay) in enumerate(points):
        order = f"o{number}"
        assert run_process(state, ledger, order, point, delay) == -signal.SIGKILL
        paid = payments(ledger)[f"pay/{order}"]
        try:
            assert careful(order) == {"paid": order}
        except EffectUnclear:
            assert payments(ledger)[f"pay/{order}"] == paid
        assert knowing(order) == {"paid": order}
        assert knowing(order) == {"paid": order}

    assert set(payments(ledger).values()) == {1}
    assert len(payments(ledger)) == len(points)
    store.close()


def test_a_process_that_is_killed_at_any_step_leaves_one_effect(
    tmp_path: Path, run_process: Callable[..., int]
) -> None:
    killed_and_planned_again(tmp_path, run_process, [(point, 0.001) for point in POINTS])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_hundred_processes_that_are_killed_after_the_effect_leave_one_effect_each(
    tmp_path: Path, run_process: Callable[..., int]
) -> None:
    # The effect has happened, and nothing in the store says so.
    killed_and_planned_again(tmp_path, run_process, [("after_effect", 0.0), ("before_result", 0.0)] * 100)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_hundred_processes_that_are_killed_at_any_step_leave_one_effect_each(
    tmp_path: Path, run_process: Callable[..., int]
) -> None:
    dice = random.Random(16)

    killed_and_planned_again(
        tmp_path, run_process, [(dice.choice(POINTS), dice.uniform(0.0, 0.006)) for _ in range(200)]
    )


def test_without_a_hook_a_lost_outcome_is_a_typed_failure(
    tmp_path: Path, run_process: Callable[..., int]
) -> None:
    ledger = tmp_path / "ledger"
    state = tmp_path / "state"
    assert run_process(state, ledger, "o1", "after_effect", 0) == -signal.SIGKILL

    store = SqliteClaims(state)
    with pytest.raises(EffectUnclear) as caught:
        payer(ledger, store)("o1")

    assert "its process died" in str(caught.value)
    assert payments(ledger) == {"pay/o1": 1}
    [claim] = store.claims(["unclear"])
    assert claim.kind is None
    store.close()
