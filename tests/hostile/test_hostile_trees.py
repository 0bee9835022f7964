"""Whatever hangs below whatever: any tree of exceptions is described, and so is any letter read."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwell.adapters.describe import describe
from failwell.errors.report import ErrorReport
from fuzz.describe_fuzz import describe_anything
from fuzz.driver import try_many
from fuzz.letters import letter
from fuzz.trees import tree
from fuzz.wire_fuzz import read_anything

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(60)
@given(data=st.binary(max_size=300))
def test_any_tree_of_exceptions_is_described_within_bounds(data: bytes) -> None:
    describe_anything(data)


@pytest.mark.timeout(60)
@given(data=st.binary(max_size=60))
def test_any_letter_is_read_or_refused_by_name(data: bytes) -> None:
    read_anything(data)


@pytest.mark.slow
@pytest.mark.timeout(30)
@pytest.mark.parametrize("target", [describe_anything, read_anything])
def test_a_short_run_of_the_fuzzer_finds_nothing(target: object) -> None:
    ran = try_many(target, runs=2_000, seed=20, seconds=2.5)  # pyright: ignore[reportArgumentType]

    assert ran.inputs > 10


def test_the_fuzzer_names_the_input_that_failed() -> None:
    def picky(data: bytes) -> None:
        assert b"\x07" not in data

    with pytest.raises(AssertionError, match=r"again with: --input [0-9a-f]*07"):
        try_many(picky, runs=1_000, seed=1)


def test_the_same_bytes_make_the_same_tree_and_the_same_letter() -> None:
    data = random.Random(3).randbytes(200)

    assert describe(tree(data)).fingerprint == describe(tree(data)).fingerprint
    assert letter(data) == letter(data)


def test_letters_are_sometimes_good_and_sometimes_not() -> None:
    dice = random.Random(4)
    letters = [letter(dice.randbytes(dice.randint(0, 40))) for _ in range(300)]

    readable = sum(1 for one in letters if _is_report(one))

    assert 5 < readable < 200


@pytest.mark.parametrize("name", ["describe_fuzz", "wire_fuzz", "secrets_fuzz"])
def test_a_fuzzer_runs_from_the_command_line(name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / f"fuzz/{name}.py"), "--runs", "5", "--seed", "1"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("5 inputs in ")


def _is_report(written: bytes) -> bool:
    try:
        ErrorReport.read(written)
    except Exception:
        return False
    return True
