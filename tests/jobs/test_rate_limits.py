"""Rate limits of capabilities: evenly, over all hosts, after a clock was set back, and changed while a host runs."""

import threading
from contextlib import closing
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from failwell.errors.faults import CapabilityConfigError, CapabilityInputError
from failwell.jobs import Manifest, read_manifest
from failwell.jobs.rate_limit import rate_limit_of, take
from failwell.jobs.store.sqlite import JobStore
from tests.cli.job_place import Place, wait_until
from tests.jobs.queues import a_capability, a_runtime, when
from tests.jobs.workers import run


def _starts(limit: str, burst: int, seconds: float, step: float = 0.5) -> list[float]:
    """When jobs start that are always there."""
    rate, due, now, starts = rate_limit_of(limit, burst), None, 1_000.0, list[float]()
    while now < 1_000.0 + seconds:
        grant = take(rate, due, 100, now)
        due = grant.due
        starts += [now] * grant.granted
        assert grant.next_at > now
        now += step
    return starts


def test_starts_come_evenly_and_no_more_than_the_limit_in_any_window() -> None:
    even, burst = _starts("10/min", 1, 600), _starts("10/min", 4, 600)

    assert len(even) == 100
    assert all(later - earlier >= 6.0 for earlier, later in pairwise(even))
    assert burst[:4] == [1_000.0] * 4
    assert len(burst) == 103
    for begin in range(1_000, 1_540):
        assert sum(begin <= start < begin + 60 for start in even) <= 10


def test_a_clock_that_is_set_back_blocks_for_one_interval_at_most() -> None:
    rate = rate_limit_of("10/min")
    grant = take(rate, None, 1, 100_000.0)

    back = take(rate, grant.due, 1, 1_000.0)
    next_one = take(rate, back.due, 1, back.next_at)

    assert (back.granted, back.next_at) == (0, 1_006.0)
    assert next_one.granted == 1


def test_several_processes_share_one_limit(tmp_path: Path) -> None:
    rate = rate_limit_of("100/h", 7)
    with closing(JobStore(tmp_path)) as store:
        # What a slower limit, or a clock that was set back, has left is corrected in the store.
        slower = rate_limit_of("1/d")
        assert store.take_tokens("other", slower, 1, 5_000.0).granted == 1
        next_at = store.take_tokens("other", rate_limit_of("1/s"), 1, 5_000.0).next_at
        assert store.take_tokens("other", rate_limit_of("1/s"), 1, next_at).granted == 1
    granted: list[int] = []

    def take_some() -> None:
        with closing(JobStore(tmp_path)) as store:
            granted.extend(store.take_tokens("worker", rate, 1, 5_000.0).granted for _ in range(10))

    threads = [threading.Thread(target=take_some) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(granted) == 7


def test_a_limited_capability_leaves_the_lanes_to_others(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability("other"), lanes=1) as jobs:
            jobs.register(a_capability(rate_limit="5/s"))
            ids = [await jobs.submit("worker", {"value": number}) for number in range(5)]
            assert await jobs.call("other", {"value": 1}) == 1
            for job in ids:
                await jobs.wait(job.id, timeout=20)
            starts = [when(jobs, job, "started") for job in ids]
            blocked = [
                event.data["reason"]
                for job in ids
                for event in jobs.store.events(job=job.id)
                if event.type == "blocked"
            ]

            assert all(later - earlier >= 0.19 for earlier, later in pairwise(starts))
            assert blocked
            assert blocked[0].startswith("`rate_limit` of its capability is 5/s; next start ")

    run(work())


def test_a_limit_of_a_running_host_follows_the_manifest(tmp_path: Path) -> None:
    place = Place(tmp_path, "echo", "slow")
    manifest = tmp_path / "echo.toml"
    manifest.write_text('name = "echo"\nobject = "tools:echo"\nrate_limit = "1/d"\n')
    assert place("capabilities", "add", str(manifest), "--force").code == 0
    ids = [place("jobs", "submit", "echo", f"value={number}").out.strip() for number in range(3)]
    with place.start("workers", "run"):
        place.until_hosted(tmp_path / "state")
        assert place("jobs", "wait", ids[0], "--json").data["status"] == "completed"
        wait_until(lambda: place("jobs", "show", ids[1], "--json").data.get("block_reason") is not None)
        waits = place("jobs", "show", ids[1], "--json").data
        manifest.write_text('name = "echo"\nobject = "tools:echo"\nrate_limit = "1000/s"\n')
        assert place("capabilities", "add", str(manifest), "--force").code == 0
        ended = [place("jobs", "wait", job, "--json").data["status"] for job in ids]

    assert waits["status"] == "pending"
    assert "1/d; next start" in waits["block_reason"]
    assert waits["not_before"] > waits["submitted"]
    assert ended == ["completed"] * 3


@pytest.mark.slow
def test_two_hosts_together_keep_one_limit(tmp_path: Path) -> None:
    place = Place(tmp_path, "echo")
    manifest = tmp_path / "echo.toml"
    manifest.write_text('name = "echo"\nobject = "tools:echo"\nconcurrency = 4\nrate_limit = "10/s"\n')
    assert place("capabilities", "add", str(manifest), "--force").code == 0
    with place.start("workers", "run"), place.start("workers", "run"):
        place.until_hosted(tmp_path / "state", 2)
        lines = "\n".join(f'{{"arguments": {{"value": {number}}}}}' for number in range(12))
        assert place("jobs", "submit", "echo", "--from", "-", given=lines).code == 0
        wait_until(lambda: len(place("jobs", "list", "--status", "completed", "--json").data) == 12)
        jobs = place("jobs", "list", "--json").data

    starts = sorted(datetime.fromisoformat(job["started"]).timestamp() for job in jobs)
    # A start is counted a moment before its time is recorded, so two of them may be closer than the interval.
    assert all(later - earlier >= 0.09 * 3 for earlier, later in zip(starts, starts[4:], strict=False))
    assert starts[-1] - starts[0] >= 1.0


def test_a_rate_that_is_none_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    file.write_text('name = "a"\nobject = "a:b"\nrate_limit = "10/week"\n')

    with pytest.raises(CapabilityConfigError, match=r"m\.toml:3:14: `rate_limit` must be .*`10/min`"):
        read_manifest(file)
    with pytest.raises(CapabilityInputError, match="`rate_limit`"):
        Manifest(name="a", object="a:b", rate_limit="often")
    with pytest.raises(CapabilityInputError, match="`rate_burst`"):
        Manifest(name="a", object="a:b", rate_limit="1/s", rate_burst=0)
