"""A thousand clients, a provider that goes down for a minute, and what retries do to it.

Every client wants one call each ten seconds. The provider fails every call while it is down; when it is
back it can serve half as many again as are wanted, and each call that it has to turn away costs it a fifth
of one that it serves. That is enough for careless retries to keep it down for good. To make no retries is
no danger to anybody, and cures nothing: then every hiccup is somebody's failed call.

The time is virtual and the random numbers are seeded, so nothing sleeps and every run prints the same.

    python examples/retry_storm.py [--svg FILE]
"""

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from random import Random
from typing import Protocol

import failwell
from failwell.calls import CircuitOpen, Guard, Operation, RetryOptions
from failwell.testing import FakeClock

CLIENTS = 1_000
EVERY = 10.0
"""Seconds between two calls that a client wants."""
DOWN, BACK, END = 30, 90, 300
"""Seconds: the provider goes down, is back, and the run is over."""
CAPACITY = 150.0
"""Calls that the provider can serve in a second."""
TURNING_AWAY = 0.2
"""What it costs to turn a call away, in calls served."""


class Provider:
    """Serves what it can. Its load is the work of the last second that it has not got through."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._load = 0.0
        self._seen = 0.0

    def serves(self) -> bool:
        """Whether it serves the call that arrives now."""
        now = self._clock.monotonic()
        self._load = max(0.0, self._load - CAPACITY * (now - self._seen))
        self._seen = now
        if DOWN <= now < BACK:
            self._load = 0.0
            return False
        served = self._load + 1 <= CAPACITY
        self._load += 1 if served else TURNING_AWAY
        return served


class Wanted(Protocol):
    """One call that somebody wants: told how each attempt ended, it says what comes next."""

    def failed(self, error: Exception, /) -> float | None:
        """Seconds until the next attempt, or `None` to give up."""
        ...

    def succeeded(self) -> None:
        """It worked."""
        ...


class Naive:
    """Repeats after fixed waits, whatever the others do."""

    def __init__(self, waits: Iterable[float]) -> None:
        self._waits = iter(waits)

    def failed(self, _error: Exception, /) -> float | None:
        """The next wait of the list."""
        return next(self._waits, None)

    def succeeded(self) -> None:
        """Nothing to learn from it."""


Begin = Callable[[int], Wanted]
"""Begins a call for the client of that number; raises `CircuitOpen` if it is not to be made at all."""
Strategy = Callable[[FakeClock, Random], Begin]


def naive(*waits: float) -> Strategy:
    """Fixed waits, for every client by itself."""
    return lambda _clock, _rng: lambda _client: Naive(waits)


def guarded(clients_per_guard: int) -> Strategy:
    """Our own defaults, with a guard for each so many clients: in one process they share it."""

    def prepare(clock: FakeClock, rng: Random) -> Begin:
        ways = [
            RetryOptions(provider="acme", guard=Guard(clock=clock), clock=clock, jitter=rng.random)
            for _ in range(0, CLIENTS, clients_per_guard)
        ]
        return lambda client: Operation(ways[client // clients_per_guard])

    return prepare


STRATEGIES: dict[str, Strategy] = {
    "no retries": naive(),
    "every second, 10 calls": naive(*[1.0] * 9),
    "exponential, 6 calls": naive(1, 2, 4, 8, 16),
    "failwell, guard per client": guarded(1),
    "failwell, guard per 25 clients": guarded(25),
}


def _seconds() -> list[int]:
    return [0] * END


@dataclass
class Outcome:
    """What one strategy did, second by second."""

    wanted: list[int] = field(default_factory=_seconds)
    sent: list[int] = field(default_factory=_seconds)
    served: list[int] = field(default_factory=_seconds)
    """Calls that worked, by the second in which they were wanted."""
    last_trouble: float = 0.0
    """When the last call was wanted that did not work at once."""

    @property
    def amplification(self) -> float:
        """Calls sent for each call wanted, while the provider is down."""
        return sum(self.sent[DOWN:BACK]) / sum(self.wanted[DOWN:BACK])

    @property
    def recovery(self) -> float | None:
        """Seconds after the provider is back until every call works at once; `None` if that is never."""
        # A call that was wanted in the last seconds and failed leaves nothing to recover in.
        return None if self.last_trouble > END - EVERY else max(0.0, self.last_trouble - BACK)

    @property
    def served_after(self) -> float:
        """The share of the calls wanted since the provider is back that worked in the end."""
        # The last ones may still be waiting for their next attempt when the run is over.
        return sum(self.served[BACK : END - 40]) / sum(self.wanted[BACK : END - 40])


def simulate(strategy: Strategy, *, seed: int = 7) -> Outcome:
    """Run one strategy through the outage."""
    clock, rng, outcome = FakeClock(), Random(seed), Outcome()  # noqa: S311  (no secret)
    provider = Provider(clock)
    begin = strategy(clock, rng)

    def attempt(wanted: Wanted, since: float) -> None:
        now = clock.monotonic()
        outcome.sent[int(now)] += 1
        if provider.serves():
            outcome.served[int(since)] += 1
            wanted.succeeded()
            return
        outcome.last_trouble = max(outcome.last_trouble, since)
        wait = wanted.failed(failwell.Fault(kind="provider.overloaded"))
        if wait is not None and now + wait < END:
            clock.at(now + wait, lambda: attempt(wanted, since))

    def want(client: int) -> None:
        now = clock.monotonic()
        outcome.wanted[int(now)] += 1
        if now + EVERY < END:
            clock.at(now + EVERY, lambda: want(client))
        try:
            wanted = begin(client)
        except CircuitOpen:
            outcome.last_trouble = max(outcome.last_trouble, now)
        else:
            attempt(wanted, now)

    for client in range(CLIENTS):
        clock.at(rng.random() * EVERY, lambda client=client: want(client))
    clock.advance(END)
    return outcome


def table(outcomes: dict[str, Outcome]) -> str:
    """The numbers, one strategy a line."""
    lines = [f"{'':34}{'amplification':>14}{'most calls/s':>14}{'recovered after':>17}{'then served':>13}"]
    for name, one in outcomes.items():
        recovery = f"{one.recovery:.0f} s" if one.recovery is not None else f"not in {END - BACK} s"
        lines.append(
            f"{name:34}{one.amplification:>14.2f}{max(one.sent):>14}{recovery:>17}{one.served_after:>13.0%}"
        )
    return "\n".join(lines)


def text_plot(outcomes: dict[str, Outcome], *, step: int = 5) -> str:
    """Calls sent in a second, over time, in block characters; one scale for all."""
    blocks = " ▁▂▃▄▅▆▇█"
    most = max(max(one.sent) for one in outcomes.values())
    places = range(0, END, step)
    ruler = "".join("▒" if DOWN <= at < BACK else "·" for at in places)
    lines = [f"{'calls sent per second; █ is ' + str(most):34}{ruler}  (▒ the provider is down)"]
    for name, one in outcomes.items():
        rates = [sum(one.sent[at : at + step]) / step for at in places]
        drawn = "".join(blocks[ceil(8 * rate / most)] for rate in rates)
        lines.append(f"{name:34}{drawn}")
    return "\n".join(lines)


def svg_plot(outcomes: dict[str, Outcome]) -> str:
    """The same as a drawing."""
    width, height, left, top = 720, 260, 56, 48
    most = max(max(one.sent) for one in outcomes.values())
    colours = ["#8a8f98", "#d1495b", "#e08e2b", "#1b7f79", "#3d5a98"]

    def x(second: float) -> float:
        return left + second * width / END

    def y(rate: float) -> float:
        return top + height - rate * height / most

    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 24} {top + height + 150}" '
        'font-family="sans-serif" font-size="13" fill="#30343b">'
    )
    parts = [
        opening,
        "<title>Calls sent per second while a provider is down and after</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="{left}" y="24" font-size="15" font-weight="bold">calls sent per second</text>',
        f'<rect x="{x(DOWN)}" y="{top}" width="{x(BACK) - x(DOWN)}" height="{height}" fill="#f3e3e3"/>',
        f'<text x="{x(DOWN) + 6}" y="{top + 16}">the provider is down</text>',
    ]
    for rate in range(0, most + 1, max(100, most // 500 * 100)):
        parts.append(f'<path d="M{left} {y(rate):.1f}h{width}" stroke="#dfe2e6"/>')
        parts.append(f'<text x="{left - 8}" y="{y(rate) + 4:.1f}" text-anchor="end">{rate}</text>')
    parts += [
        f'<text x="{x(at):.1f}" y="{top + height + 20}" text-anchor="middle">{at} s</text>'
        for at in range(0, END + 1, 30)
    ]
    for place, (name, one) in enumerate(outcomes.items()):
        colour = colours[place % len(colours)]
        points = " ".join(f"{x(second):.1f},{y(rate):.1f}" for second, rate in enumerate(one.sent))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        line = top + height + 46 + place * 19
        parts.append(f'<path d="M{left} {line - 4}h24" stroke="{colour}" stroke-width="3"/>')
        parts.append(f'<text x="{left + 32}" y="{line}">{name}: {one.amplification:.2f} calls sent for each wanted</text>')  # fmt: skip
    return "\n".join([*parts, "</svg>", ""])


def main(arguments: list[str] | None = None) -> None:
    """Run every strategy, and print what came of it."""
    parser = argparse.ArgumentParser(description="What retries do to a provider that is down for a minute.")
    parser.add_argument("--svg", metavar="FILE", type=Path, help="draw the plot into this file as well")
    options = parser.parse_args(arguments)
    outcomes = {name: simulate(strategy) for name, strategy in STRATEGIES.items()}
    print(table(outcomes))
    print()
    print(text_plot(outcomes))
    if options.svg is not None:
        options.svg.write_text(svg_plot(outcomes), encoding="utf-8")
        print(f"\nthe drawing is in {options.svg}")


if __name__ == "__main__":
    main()
