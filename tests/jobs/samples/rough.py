# pyright: basic, reportMissingImports=false
# ruff: noqa: PTH123, T201
"""A capability for tests: answers, signals and processes that ask more of a worker than most do."""

import os
import random
import signal
import subprocess
import sys
import time


class Rough:
    def initialize(self, config):
        self.config = config
        marker = config.get("started")
        if marker:
            _touch(marker)
        time.sleep(config.get("slow", 0))

    def execute(self, value=None):
        return value

    def pids(self):
        """This process and its guardian."""
        return [os.getpid(), os.getppid()]

    # answers

    def deep(self, levels, kind="list"):
        return _nested(levels, kind)

    def deep_items(self, levels):
        yield 1
        yield _nested(levels, "list")
        while True:
            yield 2

    def answers(self, frame):
        """Writes an answer of its own to the channel."""
        from _failwell_worker import author

        call = author.current.get()
        call._line.send({"type": "result", "job": call.job, "peaks": [1, 1], **frame})

    def gives_up(self, how):
        """Ends as cancelled, though nobody asked."""
        if how == "typed":
            from failwell.capability import CapabilityCancelledError

            raise CapabilityCancelledError("rough")
        if how == "asyncio":
            import asyncio

            raise asyncio.CancelledError
        import concurrent.futures

        raise concurrent.futures.CancelledError("inner")

    def patient(self, seconds, started=None):
        """Stops when it is asked to."""
        from failwell.capability import check_cancel

        _touch(started)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            check_cancel()
            time.sleep(0.002)
        return "done"

    # signals

    def what_signals_do(self):
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        return [getattr(deed := signal.getsignal(one), "__name__", None) or str(deed) for one in numbers]

    def print_from_alarms(self, seconds):
        """Prints all the time, and from a signal handler as well."""
        rung = [0]

        def ring(_number, _frame):
            rung[0] += 1
            print(f"rung {rung[0]}")

        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        until = time.monotonic() + seconds
        lines = 0
        while time.monotonic() < until:
            print("x" * 500)
            lines += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        return [lines, rung[0]]

    def broken_off(self, megabytes):
        """Large items; an alarm raises out of whatever is being done a moment after one was begun."""

        def ring(_number, _frame):
            raise RuntimeError("rung")

        signal.signal(signal.SIGALRM, ring)
        item = "y" * (megabytes * 1024 * 1024)
        try:
            while True:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(0.005, 0.05))
                yield item
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    # below

    def a_child_of_its_own(self):
        child = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(300)"],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return child.pid

    def last_words(self, text):
        os.write(2, text.encode())
        os._exit(1)


def _nested(levels, kind):
    value = 1
    for _ in range(levels):
        value = [value] if kind == "list" else {"a": value}
    return value


def _touch(path):
    if path:
        with open(path, "w") as file:
            file.write("started")
