"""A process that calls a provider under a shared guard, and says when it saw the pause of another one.

`python -m bench._pauses STORE ROLE`: STORE is a folder, or `redis:PORT`. It prints `ready`, waits for a line, and then
makes calls until it is paused; the `first` process gets a rate limit with a delay. It prints the moment, in nanoseconds of the
monotonic clock, which all processes of a machine share.
"""

import subprocess
import sys
import time
from typing import Any
from uuid import uuid4

from failwell.calls import Guard, LimitStore
from failwell.calls.circuit_breaker import CallTarget
from failwell.errors import NotBefore
from failwell.store import RedisLimits, SqliteLimits
from failwell.testing.builders import make_report

TARGET = CallTarget("acme", "team")
_LONGEST = 30.0
PROCESSES = 8


def delays(place: str, processes: int = PROCESSES) -> list[float]:
    """Seconds from the rate limit of the first process until each of the others saw the pause."""
    if place.startswith("redis:"):
        # Keys of their own: the pause of an earlier round is not over.
        place = f"{place}:{uuid4().hex}"
    roles = ["first", *["other"] * (processes - 1)]
    command = [sys.executable, "-m", "bench._pauses", place]
    children = [
        subprocess.Popen([*command, role], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for role in roles
    ]
    try:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        # The first one gets its rate limit when all others make calls.
        for child in [*children[1:], children[0]]:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write("go\n")
            child.stdin.flush()
            if child is not children[0]:
                assert child.stdout.readline() == "calling\n"
        moments = [int(child.stdout.readline()) for child in children if child.stdout is not None]
        return [(moment - moments[0]) / 1e9 for moment in moments[1:]]
    finally:
        for child in children:
            child.kill()
            child.communicate()


def open_store(place: str) -> LimitStore:
    if not place.startswith("redis:"):
        return SqliteLimits(place)
    from importlib import import_module

    redis: Any = import_module("redis")
    _, port, *prefix = place.split(":")
    client = redis.Redis(host="127.0.0.1", port=int(port), socket_timeout=1)
    return RedisLimits(client, prefix=":".join(["failwell:limits", *prefix]))


def main(place: str, role: str) -> None:
    guard = Guard(store=open_store(place))
    guard.refuses(TARGET)
    say("ready")
    sys.stdin.readline()
    if role == "first":
        limited = make_report(
            kind="provider.rate_limited", not_before=NotBefore(after=30, source="header retry-after")
        )
        say(time.monotonic_ns())
        guard.failed(TARGET, limited)
        return
    deadline = time.monotonic() + _LONGEST
    say("calling")
    while guard.paused(TARGET) is None:
        if time.monotonic() > deadline:
            say("never")
            return
        guard.refuses(TARGET)
        guard.succeeded(TARGET)
        time.sleep(0.002)
    say(time.monotonic_ns())


def say(text: object) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
