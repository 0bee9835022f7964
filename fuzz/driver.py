"""Run a target on random bytes, or let atheris choose them if it is installed.

Atheris watches which lines each input reaches and keeps the ones that reach new ones; without it
plain chance has to do. Either way a failing input is printed, and can be given again.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

Target = Callable[[bytes], None]


class Run(NamedTuple):
    """How much was tried."""

    inputs: int
    seconds: float
    slowest: float


def try_many(
    target: Target,
    *,
    runs: int,
    seed: int = 0,
    seconds: float = float("inf"),
    longest: int = 400,
    patience: float = 10.0,
) -> Run:
    """Call `target` with random bytes, until the runs or the time are over.

    Raises:
        AssertionError: an input failed, or took longer than `patience`; it is named.
    """
    dice = random.Random(seed)
    started = time.monotonic()
    slowest = 0.0
    done = 0
    while done < runs and time.monotonic() - started < seconds:
        data = dice.randbytes(dice.randint(0, longest))
        before = time.process_time()
        try:
            target(data)
        except BaseException as error:
            raise AssertionError(
                f"{type(error).__name__}: {error}\nagain with: --input {data.hex()}"
            ) from error
        spent = time.process_time() - before
        assert spent <= patience, f"took {spent:.1f} s\nagain with: --input {data.hex()}"
        slowest = max(slowest, spent)
        done += 1
    return Run(done, time.monotonic() - started, slowest)


def main(target: Target, arguments: Sequence[str] | None = None) -> int:
    """The command line of a fuzz target."""
    parser = argparse.ArgumentParser(description=target.__doc__)
    parser.add_argument("--runs", type=int, default=20_000, help="inputs to try (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="where chance starts (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--input", metavar="HEX", help="try this one input again")
    parser.add_argument(
        "--atheris", action="store_true", help="let atheris choose; it takes the options after --"
    )
    args, rest = parser.parse_known_args(arguments)
    if args.input is not None:
        target(bytes.fromhex(args.input))
        print("passed")
        return 0
    if args.atheris:
        return _guided(target, [one for one in rest if one != "--"], args.seconds)
    ran = try_many(target, runs=args.runs, seed=args.seed, seconds=args.seconds)
    print(
        f"{ran.inputs:,} inputs in {ran.seconds:.1f} s ({ran.inputs / max(ran.seconds, 0.001):,.0f} a second), "
        f"slowest {ran.slowest * 1000:.0f} ms, no finding"
    )
    return 0


def _guided(target: Target, options: list[str], seconds: float) -> int:
    try:
        atheris: Any = import_module("atheris")
    except ImportError:
        print(
            "error: atheris is not installed\nhint: pip install atheris, or leave out --atheris",
            file=sys.stderr,
        )
        return 2
    limit = [] if seconds == float("inf") else [f"-max_total_time={seconds:.0f}"]
    with atheris.instrument_imports(include=["failwell"]):
        target = _loaded_again(target)
    atheris.Setup([sys.argv[0], *limit, *options], target)
    atheris.Fuzz()
    return 0


def _loaded_again(target: Target) -> Target:
    """The same target over modules that are imported anew, so that atheris can watch them."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("failwell", "fuzz")]:
        del sys.modules[name]
    script = Path(sys.argv[0]).stem
    return getattr(import_module(f"fuzz.{script}"), target.__name__)
