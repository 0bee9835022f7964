"""One table for every bench: what was measured, against what, and whether the aim was met."""

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

ROUNDS = 9


class Row(NamedTuple):
    """One line: a number, the baseline of the same run, and the aim."""

    name: str
    value: float
    unit: str
    baseline: float
    aim: float | None = None


def show(title: str, baseline: str, rows: list[Row]) -> None:
    """Print the table."""
    print(f"{title:<52}{'measured':>13}  {f'× {baseline}':>18}  {'aim':>10}")
    for row in rows:
        ratio = f"{row.value / row.baseline:.1f}" if row.baseline else ""
        aim = "" if row.aim is None else f"≤ {row.aim:g}"
        met = "" if row.aim is None else ("  met" if row.value <= row.aim else "  MISSED")
        print(f"  {row.name:<50}{row.value:>9.2f} {row.unit:<3}  {ratio:>18}  {aim:>10}{met}")
    print()


def microseconds(calls: dict[str, Callable[[], object]], number: int = 2_000) -> dict[str, float]:
    """Each call's best of several rounds. Rounds are interleaved: the machine is noisy, so all share its moods."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            before = time.perf_counter_ns()
            for _ in range(number):
                call()
            best[name] = min(best[name], (time.perf_counter_ns() - before) / 1_000 / number)
    return best


def median(values: list[float]) -> float:
    """The middle one."""
    return statistics.median(values)
