"""Everything at once on a real runtime: each job has one end, and nothing is left behind."""

from pathlib import Path

import pytest

from tests.jobs.storm import rage
from tests.jobs.workers import run


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_storm_leaves_each_job_with_one_end_and_nothing_behind(tmp_path: Path, seed: int) -> None:
    seen = run(rage(tmp_path, seed, jobs=120))

    assert seen.submitted >= 120
    assert seen.done["jobs completed"] > 0
    assert seen.done["kill"] > 0
