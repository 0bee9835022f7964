# pyright: basic, reportAttributeAccessIssue=false, reportMissingImports=false
"""Capabilities that live together in one host: one that works, and three that hang, leak and crash."""

import os
import signal
import time


def work(seconds):
    """Wait as a call to a service does, and compute a little."""
    time.sleep(seconds)
    return sum(range(2_000))


def hang():
    """Never end, and hear no cancel."""
    while True:
        time.sleep(1)


def leak(pace=None):
    """Take `pace` megabytes a second, or as many as possible."""
    held = []
    while True:
        held.append(b"x" * (1 << 20))
        if pace is not None:
            time.sleep(1 / pace)


def crash():
    os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(10)
