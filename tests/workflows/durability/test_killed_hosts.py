"""Hosts that are killed with `kill -9` in the middle of a run, and runs that are resumed after it."""

import os
from pathlib import Path

import pytest

from tests.workflows.durability.campaign import round_of

ROUNDS = int(os.environ.get("FAILWELL_ROUNDS", "6"))
"""A campaign has 300: `python -m tests.workflows.durability.campaign 300`."""


@pytest.mark.acceptance("relavium 59")
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, ROUNDS))]
)
def test_a_run_whose_host_is_killed_ends_as_if_nothing_had_happened(seed: int, tmp_path: Path) -> None:
    round_of(seed, tmp_path)
