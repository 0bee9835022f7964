"""What it costs to have failwell around: loading it, its command line, and the error path.

Loading is CPU time of fresh interpreters over a bare one, because wall time is noisy on a
shared machine; the error path is the median of many calls in this process.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import failwell

RUNS = 11
CALLS = 300
SRC = Path(__file__).resolve().parents[1] / "src"

LOADS = {
    "import failwell": "import failwell",
    "every root name": "import failwell\nfor name in failwell.__all__: getattr(failwell, name)",
    "failwell.capability": "import failwell.capability",
    "the parser of the command line": "from failwell.apps.cli.main import parser; parser()",
}


def cpu_milliseconds(code: str) -> float:
    """CPU time of a fresh interpreter that runs `code`; the median of several."""
    spent: list[float] = []
    for _ in range(RUNS):
        before = os.times()
        subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(SRC)})
        after = os.times()
        user = after.children_user - before.children_user
        system = after.children_system - before.children_system
        spent.append((user + system) * 1000)
    return statistics.median(spent)


def microseconds(call: Callable[[], object]) -> float:
    """Wall time of one call; the median of many, after a warm-up."""
    for _ in range(CALLS // 10):
        call()
    spent: list[float] = []
    for _ in range(CALLS):
        before = time.perf_counter_ns()
        call()
        spent.append((time.perf_counter_ns() - before) / 1000)
    return statistics.median(spent)


def a_chained_exception() -> Exception:
    """Three links, as a wrapper around a wrapper around a lost connection."""
    try:
        try:
            try:
                raise ConnectionResetError(104, "Connection reset by peer")
            except OSError as lost:
                raise RuntimeError("could not fetch the page") from lost
        except RuntimeError as failed:
            raise ValueError("step `summarise` failed") from failed
    except ValueError as outermost:
        return outermost


def main() -> None:
    bare = cpu_milliseconds("pass")
    print(f"{'loading, over a bare interpreter':<44}{'CPU ms':>8}")
    for name, code in LOADS.items():
        print(f"  {name:<42}{cpu_milliseconds(code) - bare:>8.1f}")

    failure = a_chained_exception()
    report = failwell.describe(failure)
    print(f"\n{'the error path':<44}{'µs':>8}")
    print(f"  {'describe a chain of three':<42}{microseconds(lambda: failwell.describe(failure)):>8.1f}")
    print(f"  {'report to JSON-safe dict':<42}{microseconds(report.to_dict):>8.1f}")


if __name__ == "__main__":
    main()
