"""What it costs to have failwell around: loading it, and its command line.

CPU time of fresh processes, interleaved with bare interpreters, because wall time is noisy on a shared
machine.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench._table import Row, median, show

RUNS = 15
SRC = Path(__file__).resolve().parents[1] / "src"
BARE = "python -c pass"
# Compiled files are kept aside and made once, as an installation would have them.
CACHE = tempfile.mkdtemp(prefix="failwell-bench-")
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
    "PYTHONPATH": str(SRC),
    "PYTHONPYCACHEPREFIX": CACHE,
}

LOADS: dict[str, tuple[list[str], float | None]] = {
    BARE: (["-c", "pass"], None),
    "import failwell": (["-c", "import failwell"], 25),
    "import failwell.capability": (["-c", "import failwell.capability"], 25),
    "failwell.describe touched": (["-c", "import failwell; failwell.describe"], 25),
    "every root name touched": (["-c", "import failwell as f\nfor n in f.__all__: getattr(f, n)"], None),
}
COMMANDS: dict[str, tuple[list[str], float | None]] = {
    "failwell --version": (["-m", "failwell", "--version"], 40),
    "failwell --help": (["-m", "failwell", "--help"], 60),
    "failwell explain provider.auth": (["-m", "failwell", "explain", "provider.auth"], None),
    "failwell kinds --format json": (["-m", "failwell", "kinds", "--format", "json"], None),
}


def cpu(arguments: list[str]) -> float:
    """CPU milliseconds of one fresh process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
        env=ENVIRONMENT,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1000


def main() -> None:
    """Measure and print."""
    for arguments, _aim in (*LOADS.values(), *COMMANDS.values()):
        cpu(arguments)
    spent: dict[str, list[float]] = {name: [] for name in (*LOADS, *COMMANDS)}
    for _ in range(RUNS):
        for name, (arguments, _aim) in (*LOADS.items(), *COMMANDS.items()):
            spent[name].append(cpu(arguments))
    bare = median(spent[BARE])
    loads = [
        Row(name, median(spent[name]) - bare, "ms", bare, aim)
        for name, (_, aim) in LOADS.items()
        if name != BARE
    ]
    show("loading, CPU over a bare interpreter", BARE, loads)
    commands = [Row(name, median(spent[name]), "ms", bare, aim) for name, (_, aim) in COMMANDS.items()]
    show("commands, CPU of the whole process", BARE, commands)


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(CACHE, ignore_errors=True)
