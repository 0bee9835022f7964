"""What the benches of jobs and workers share: the job, how it is measured, the floors, and how figures spread.

The standard library alone, so that it also runs in the interpreter of somebody else's queue.
"""

import multiprocessing
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, TypeVar

AT_ONCE = 64
CLOSED = f"{AT_ONCE} in flight"
OPEN = "all submitted first"
WARM_UP = 20
Ticket = TypeVar("Ticket")


class Sizes(NamedTuple):
    """How much is measured in one round."""

    one_by_one: int
    many: int


class Figures(NamedTuple):
    """What one round found."""

    one: Sequence[float]
    """Seconds of each job that was submitted alone."""
    rates: dict[str, float]
    """Jobs a second with many at once, by the way in which they were submitted."""


def small(number: int) -> dict[str, Any]:
    """The argument and the result of every job."""
    return {"number": number, "name": "a small job", "done": False}


def echo(value: Any) -> Any:
    return value


def measure(submit: Callable[[Any], Ticket], collect: Callable[[Ticket], Any], sizes: Sizes) -> Figures:
    """Latency one by one, then throughput in both ways, for a queue whose calls block."""
    for number in range(WARM_UP):
        collect(submit(small(number)))
    one: list[float] = []
    for number in range(sizes.one_by_one):
        given = small(number)
        begun = time.perf_counter()
        got = collect(submit(given))
        one.append(time.perf_counter() - begun)
        check(given, got)
    rates = {way: _rate(submit, collect, sizes.many, room) for way, room in _rooms(sizes.many).items()}
    return Figures(one, rates)


def _rooms(many: int) -> dict[str, int]:
    return {CLOSED: AT_ONCE, OPEN: many} if many else {}


def _rate(submit: Callable[[Any], Ticket], collect: Callable[[Ticket], Any], many: int, room: int) -> float:
    flying: deque[tuple[int, Ticket]] = deque()

    def land() -> None:
        number, ticket = flying.popleft()
        check(small(number), collect(ticket))

    begun = time.perf_counter()
    for number in range(many):
        if len(flying) == room:
            land()
        flying.append((number, submit(small(number))))
    while flying:
        land()
    return many / (time.perf_counter() - begun)


def check(given: Any, got: Any) -> None:
    """A queue that answers wrongly is not measured."""
    if got != given:
        raise AssertionError(f"{given!r} came back as {got!r}")


def _serve(end: Connection) -> None:
    while (given := end.recv()) is not None:
        end.send(given)


def pipe(calls: int) -> Figures:
    """Round trips over a bare pipe to a warm process, the floor."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        return measure(ours.send, lambda _: ours.recv(), Sizes(calls, 0))
    finally:
        ours.send(None)
        process.join()


def pool(workers: int, sizes: Sizes) -> Figures:
    """The standard library's pool of processes, which forgets everything when it dies."""

    def collect(future: "Future[Any]") -> Any:
        return future.result()

    with ProcessPoolExecutor(workers) as made:
        return measure(lambda given: made.submit(echo, given), collect, sizes)


# -------------------------------------------------------------- spreads


def percentile(samples: Sequence[float], share: float) -> float:
    """The least sample that `share` of all samples do not exceed."""
    ordered = sorted(samples)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def best_way(rounds: Sequence[Figures]) -> str | None:
    """The way of submitting that had the higher median over the rounds; `None` where there was one job only."""
    ways = rounds[0].rates
    return max(ways, key=lambda way: statistics.median(one.rates[way] for one in rounds), default=None)
