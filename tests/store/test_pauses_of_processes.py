"""Eight processes, one rate limit: all of them pause."""

from pathlib import Path

import pytest

from bench._pauses import PROCESSES, delays

GENEROUS = 2.0
"""Seconds. On an idle machine it takes milliseconds; `bench/limits.py` measures it."""


@pytest.mark.slow
def test_one_rate_limit_pauses_eight_processes(tmp_path: Path) -> None:
    seen = delays(str(tmp_path))

    assert len(seen) == PROCESSES - 1
    assert max(seen) < GENEROUS


def test_one_rate_limit_pauses_another_process(tmp_path: Path) -> None:
    assert len(delays(str(tmp_path), processes=2)) == 1
