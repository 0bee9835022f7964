"""A failure that crosses into another process is the same failure there."""

import copy
import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from failwell import ErrorReport, Fault, adapters
from failwell.adapters.describe import describe
from tests.boundaries.crossing import CHAINS, LEAVES, agreed, describe_in_child, raise_in_child

pytestmark = pytest.mark.timeout(60)
ROOT = Path(__file__).resolve().parents[2]

ECHO = """
import sys
from failwell import ErrorReport, describe
from failwell.adapters import revive
for line in sys.stdin:
    report = ErrorReport.from_json(line)
    try:
        raise revive(report)
    except Exception as caught:
        print(describe(caught).to_json(), flush=True)
"""


def written(leaf: str, chain: str) -> str:
    return describe(CHAINS[chain](LEAVES[leaf]()), policy="full").to_json()


CASES = [(leaf, chain) for leaf in LEAVES for chain in CHAINS]


def test_a_report_comes_out_of_a_real_process_as_it_went_in() -> None:
    sent = [written(leaf, chain) for leaf, chain in CASES]

    done = subprocess.run(
        [sys.executable, "-c", ECHO],
        input="\n".join(sent) + "\n",
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        env={"PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8", "PATH": ""},
    )

    assert done.stdout.splitlines() == sent


def test_a_report_that_crosses_twice_is_still_the_same() -> None:
    sent = written("foreign", "inherits")

    once = describe_in_child(sent)
    twice = describe_in_child(once)

    assert once == twice == sent


@pytest.fixture(scope="module")
def pool() -> Any:
    # Spawned, so that nothing is inherited by accident.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


@pytest.mark.parametrize(("leaf", "chain"), CASES)
def test_what_a_pools_worker_raises_is_the_same_failure_here(pool: Any, leaf: str, chain: str) -> None:
    expected = describe(CHAINS[chain](LEAVES[leaf]()))

    with pytest.raises(Fault) as caught:
        pool.submit(raise_in_child, leaf, chain).result()
    report = describe(caught.value)

    assert agreed(report) == agreed(expected)
    assert agreed(describe(pickle.loads(pickle.dumps(caught.value)))) == agreed(expected)
    assert agreed(describe(copy.copy(caught.value))) == agreed(expected)


@pytest.mark.parametrize(("leaf", "chain"), [("foreign", "inherits"), ("value", "renames")])
def test_an_old_fashioned_pool_changes_nothing_either(leaf: str, chain: str) -> None:
    expected = describe(CHAINS[chain](LEAVES[leaf]()))

    with multiprocessing.get_context("spawn").Pool(1) as workers, pytest.raises(Fault) as caught:
        workers.apply(raise_in_child, (leaf, chain))

    assert agreed(describe(caught.value)) == agreed(expected)


def test_the_workers_own_traceback_is_there_for_whoever_asks(pool: Any) -> None:
    with pytest.raises(Fault) as caught:
        pool.submit(raise_in_child, "system", "inherits").result()
    internal = describe(caught.value, policy="full").internal

    assert internal is not None
    assert "in raise_in_child" in (internal.traceback or "")
    assert "OSError" in (internal.traceback or "")


def test_a_worker_may_hand_a_report_on(pool: Any) -> None:
    sent = written("fault", "renames")

    assert pool.submit(describe_in_child, sent).result() == sent


@pytest.mark.parametrize(("leaf", "chain"), CASES)
def test_a_fault_comes_through_a_pipe_as_the_same_failure(leaf: str, chain: str) -> None:
    fault = CHAINS[chain](LEAVES[leaf]())
    here, there = multiprocessing.Pipe()

    here.send(fault)
    once: Fault = there.recv()
    there.send(once)
    twice: Fault = here.recv()

    assert agreed(describe(once)) == agreed(describe(fault))
    assert agreed(describe(twice)) == agreed(describe(fault))


def test_a_revived_fault_that_is_wrapped_and_sent_on_keeps_what_it_stands_for() -> None:
    report = ErrorReport.from_json(written("foreign", "inherits"))
    here, there = multiprocessing.Pipe()

    here.send(Fault.wrap(adapters.revive(report), "on the other side"))
    arrived = describe(there.recv())

    kept = {
        **agreed(report),
        "message": "on the other side",
        "error_type": "Fault",
        "caller_facing": False,
        "causes": (),
    }
    assert {**agreed(arrived), "causes": ()} == kept
    assert arrived.causes[0].type == "Fault"
    assert arrived.causes[0].message == "the page was not written"
