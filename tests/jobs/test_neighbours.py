"""Jobs that hang, leak and crash beside jobs that work: the good ones go on, and nothing is lost."""

import os
from pathlib import Path

import pytest

from tests.jobs.neighbours import LANES, LIMIT, live_together
from tests.jobs.workers import run

CAMPAIGN = os.environ.get("FAILWELL_CAMPAIGN") == "1"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_good_jobs_keep_their_throughput_beside_jobs_that_hang_leak_and_crash(tmp_path: Path) -> None:
    seconds, window, least = (600.0, 50.0, 0.9) if CAMPAIGN else (14.0, 7.0, 0.6)

    seen = run(live_together(tmp_path, seconds, window))

    # The share is the figure of the campaign; a short run on a busy machine only shows that nobody stands still.
    assert seen.kept >= least, seen
    assert 0.5 * LIMIT < seen.peak_mb <= 1.1 * LIMIT, seen
    assert seen.running_at_once == LANES
    assert {"hang worker.timeout", "leak resource.system_memory", "crash worker.crashed"} <= seen.ends.keys()
