"""Mangled workflow files and error files: refused with reasons, never with a crash."""

import random

import pytest

from fuzz.workflow_fuzz import read_anything


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_written_is_read_or_refused_with_a_reason(seed: int) -> None:
    rng = random.Random(seed)

    for _ in range(40):
        read_anything(rng.randbytes(rng.randrange(1, 24)))
