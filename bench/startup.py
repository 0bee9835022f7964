"""What it costs to have failwell around: loading it, its command line, and the error path.

Loading is CPU time of fresh interpreters over a bare one, because wall time is noisy on a
shared machine; the error path is the median of many calls in this process.
"""

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import failwell

RUNS = 11
CALLS = 300
T = TypeVar("T")
SRC = Path(__file__).resolve().parents[1] / "src"

LOADS = {
    "import failwell": "import failwell",
    "every root name": "import failwell\nfor name in failwell.__all__: getattr(failwell, name)",
    "failwell.capability": "import failwell.capability",
    "failwell --version": "from failwell.apps.cli.main import main; main(['--version'])",
    "failwell --help": "from failwell.apps.cli.main import main; main(['--help'])",
    "failwell explain": "from failwell.apps.cli.main import main; main(['explain', 'provider.auth'])",
}


def cpu_milliseconds(code: str) -> float:
    """CPU time of a fresh interpreter that runs `code`; the median of several."""
    spent: list[float] = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(SRC)},
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append((after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1000)
    return statistics.median(spent)


def microseconds(make: Callable[[], T], call: Callable[[T], object]) -> float:
    """Wall time of `call` with something freshly made; the median of many, after a warm-up."""
    spent: list[float] = []
    for number in range(CALLS + CALLS // 10):
        made = make()
        before = time.perf_counter_ns()
        call(made)
        if number >= CALLS // 10:
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

    def a_report() -> failwell.ErrorReport:
        return failwell.describe(a_chained_exception())

    print(f"\n{'the error path, median of ' + str(CALLS):<44}{'µs':>8}")
    print(f"  {'describe a chain of three':<42}{microseconds(a_chained_exception, failwell.describe):>8.1f}")
    print(f"  {'write it as JSON':<42}{microseconds(a_report, lambda r: r.to_json()):>8.1f}")
    print(
        f"  {'read it back':<42}{microseconds(lambda: a_report().to_json(), failwell.ErrorReport.from_json):>8.1f}"
    )


if __name__ == "__main__":
    main()
