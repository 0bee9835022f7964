"""How things are measured: in rounds that take turns, so that all share the machine's moods."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

SRC = Path(__file__).resolve().parents[1] / "src"

Samples = dict[str, list[float]]


def microseconds(calls: Mapping[str, Callable[[], object]], *, rounds: int, number: int) -> Samples:
    """Wall time of one call, once per round."""
    spent: Samples = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            before = time.perf_counter_ns()
            for _ in range(number):
                call()
            spent[name].append((time.perf_counter_ns() - before) / 1_000 / number)
    return spent


def cpu_milliseconds(processes: Mapping[str, Sequence[str]], *, rounds: int) -> Samples:
    """CPU time, the system's included, of a fresh interpreter with these arguments, once per round."""
    spent: Samples = {name: [] for name in processes}
    with tempfile.TemporaryDirectory(prefix="failwell-bench-") as cache:
        # Compiled files are made once and kept aside, as an installation would have them.
        environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            "PYTHONPATH": str(SRC),
            "PYTHONPYCACHEPREFIX": cache,
        }
        for arguments in processes.values():
            _cpu(arguments, environment)
        for _ in range(rounds):
            for name, arguments in processes.items():
                spent[name].append(_cpu(arguments, environment))
    return spent


def _cpu(arguments: Sequence[str], environment: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1_000
