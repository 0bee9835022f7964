"""Hosts are killed at random, and many processes submit at once: totals stay exact. `FAILWELL_CAMPAIGN=1` for the long ones."""

import os
from pathlib import Path

import pytest

from tests.jobs.many_hosts import BUDGET, flood, kill_hosts

CAMPAIGN = os.environ.get("FAILWELL_CAMPAIGN") == "1"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_hosts_that_are_killed_lose_nothing_and_repeat_nothing_in_silence(tmp_path: Path) -> None:
    hosts, kills = (4, 100) if CAMPAIGN else (2, 3)
    seen = kill_hosts(tmp_path, hosts=hosts, kills=kills, seed=7)

    assert seen.mistakes == []
    assert (seen.kills, seen.states.keys() <= {"completed", "failed"}) == (kills, True)
    assert seen.states["completed"] >= 0.99 * seen.submitted
    assert seen.requeued > 0
    assert 0 < seen.highest_mb <= BUDGET * 1.000001


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_submitters_and_hosts_share_every_job_exactly_once(tmp_path: Path) -> None:
    hosts, submitters, jobs = (4, 20, 100_000) if CAMPAIGN else (2, 4, 800)
    seen = flood(tmp_path, hosts=hosts, submitters=submitters, jobs=jobs, batch=50)

    assert seen.mistakes == []
    assert seen.states == {"completed": jobs}
    assert len(seen.by_host) == hosts
    # No host has less than half of an equal share.
    assert min(seen.by_host) >= jobs / hosts / 2
