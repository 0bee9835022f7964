"""The bench of jobs runs and says what it measured. The figures are for people to read."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_bench_of_jobs_prints_its_table() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench/jobs.py"), "--quick"],
        capture_output=True,
        text=True,
        check=False,
        timeout=55,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split("  ")[1] for line in lines[1:4]] == [
        "a bare multiprocessing pipe",
        "ProcessPoolExecutor",
        "the durable queue",
    ]
    assert "over 400 jobs" in lines[-1]
