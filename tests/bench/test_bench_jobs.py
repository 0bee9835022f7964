"""The bench of jobs runs and says what it measured. The figures are for people to read."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench._processes import Figures, best_way, percentile
from bench._queues import OTHERS, missing

ROOT = Path(__file__).resolve().parents[2]


def bench(*, timeout: float = 55, **environment: str) -> list[str]:
    """What it printed, in a session of its own that ends with the test."""
    started = subprocess.Popen(
        [sys.executable, str(ROOT / "bench/jobs.py"), "--quick"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
        start_new_session=True,
    )
    try:
        printed, complained = started.communicate(timeout=timeout)
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
            started.communicate()
    assert started.returncode == 0, complained
    return printed.splitlines()


@pytest.mark.slow
def test_the_bench_of_jobs_prints_its_table_and_says_what_it_could_not_measure(tmp_path: Path) -> None:
    lines = bench(PATH=str(tmp_path))

    assert [line.split("  ")[1] for line in lines[2:8]] == [
        "a bare multiprocessing pipe",
        "ProcessPoolExecutor",
        "a bare queue in SQLite",
        "the durable queue",
        "celery",
        "dramatiq",
    ]
    assert all(" µs" in line for line in lines[2:6])
    assert all(" /s " in line for line in lines[3:6])
    assert all(line.endswith("not measured: no redis-server on the PATH") for line in lines[6:8])
    assert re.search(r"one, median ≤ 300 µs: [\d,]+ µs, (met|missed)$", lines[8])
    assert re.search(
        r"one, median ≤ 2.27 × the bare queue in the same run: [\d.]+ ×, (met|missed)$", lines[9]
    )
    assert re.search(r"many at once ≥ 10,000 /s: [\d,]+ /s, (met|missed)", lines[10])
    assert "over 400 jobs" in lines[-1]


@pytest.mark.timeout(170)
def test_the_bench_of_jobs_measures_other_queues_with_and_without_a_log() -> None:
    if absent := [why for other in OTHERS if (why := missing(other.name)) is not None]:
        pytest.skip(absent[0])

    lines = bench(timeout=150)

    rows = {line.strip().split("  ")[0]: line for line in lines}
    for other in OTHERS:
        assert " /s " in rows[other.label]
        assert " /s " in rows[f"{other.label}, no log"]


def test_a_percentile_is_the_least_sample_that_enough_of_them_do_not_exceed() -> None:
    hundred = [float(number) for number in range(100, 0, -1)]

    assert percentile(hundred, 0.95) == 95.0
    assert percentile(hundred, 1.0) == 100.0
    assert percentile([7.0], 0.95) == 7.0
    assert percentile([1.0, 2.0, 3.0], 0.95) == 3.0


def test_the_better_way_of_handing_in_is_the_one_with_the_higher_median() -> None:
    rounds = [Figures([], {"steady": 5.0, "lucky": rate}) for rate in (1.0, 90.0, 2.0)]

    assert best_way(rounds) == "steady"
    assert best_way([Figures([], {})]) is None
