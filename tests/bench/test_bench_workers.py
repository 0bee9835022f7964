"""The bench of workers runs and says what it measured. The figures are for people to read."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_bench_of_workers_prints_its_table() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench/workers.py"), "--quick"],
        capture_output=True,
        text=True,
        check=False,
        timeout=55,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["workers", "median", "p95", "worst"]
    assert [line[:20].strip() for line in lines[1:]] == [
        "a round trip over",
        "a call through Pro",
        "a warm call to a w",
        "from SIGKILL to a",
        "from SIGKILL to th",
        "a start, until it",
    ]
    assert "aim: 5 ms, met by " in lines[4]
    assert lines[4].endswith(" of 3")
    assert re.search(r"target: p99 ≤ 10 ms: [\d.]+ ms, (met|missed)$", lines[5])
