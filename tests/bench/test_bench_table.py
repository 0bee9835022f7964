"""The bench runs and prints its table. What it measures is for people to read, never for a test to judge."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench._table import Row, lines

ROOT = Path(__file__).resolve().parents[2]


def bench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )


def test_one_section_is_measured_and_printed_with_its_aims(tmp_path: Path) -> None:
    done = bench("--only", "describe", "--quick", "--json", str(tmp_path / "table.json"))

    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["what", "least", "median", "beside", "aim"]
    assert rows[0].startswith("describe by hand: a lookup along the MRO")
    assert any("≤ 12" in row and "× lookup" in row and "× by hand" in row for row in rows)
    written = json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
    assert [row["section"] for row in written] == ["describe"] * len(rows)
    assert all(0 < row["least"] <= row["median"] for row in written)


def test_a_section_that_nobody_knows_is_refused_by_name() -> None:
    done = bench("--only", "everything")

    assert done.returncode == 2
    assert "choose from" in done.stderr


@pytest.mark.parametrize(
    ("least", "median", "verdict"), [(1.0, 2.0, "met"), (1.0, 4.0, "met at best"), (4.0, 5.0, "missed")]
)
def test_an_aim_is_met_by_the_median_or_at_best_or_not(least: float, median: float, verdict: str) -> None:
    row = Row("wire", "round trip", "µs", least, median, (("by hand", 1.5),), aim=3)

    _, line = lines([row])

    assert line.startswith("wire     round trip ")
    assert line.endswith(f"1.5 × by hand                               ≤ 3  {verdict}")
