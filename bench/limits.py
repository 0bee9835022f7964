"""What a guard costs, with and without a store, and how soon a pause reaches other processes.

With a Redis on the port that `BENCH_REDIS_PORT` names, and redis-py, it is measured too.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench._pauses import PROCESSES, TARGET, delays, open_store
from failwell.calls import Guard

ROUNDS = 9
CALLS = 2_000


def microseconds(guard: Guard) -> float:
    """Microseconds that a call which is allowed and succeeds spends in the guard."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(CALLS):
            guard.refuses(TARGET)
            guard.paused(TARGET)
            guard.succeeded(TARGET)
        best = min(best, time.perf_counter() - began)
    return best / CALLS * 1e6


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="failwell-limits-") as folder:
        port = os.environ.get("BENCH_REDIS_PORT")
        places = {"SQLite": folder, **({"Redis": f"redis:{port}"} if port else {})}
        print("guard, µs a call that succeeds")
        print(f"  {'of one process':<26}{microseconds(Guard()):>9.2f}")
        for name, place in places.items():
            print(f"  {f'shared in {name}':<26}{microseconds(Guard(store=open_store(place))):>9.2f}")
        print(f"\none rate limit pauses {PROCESSES} processes, ms until the others know")
        for name, place in places.items():
            rounds = [delays(tempfile.mkdtemp(dir=folder) if name == "SQLite" else place) for _ in range(5)]
            seen = sorted(delay * 1000 for delays_of_round in rounds for delay in delays_of_round)
            print(
                f"  {name:<26}{median(seen):>9.1f} median{seen[-1]:>9.1f} slowest, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
            )


if __name__ == "__main__":
    main()
