# pyright: basic, reportAttributeAccessIssue=false, reportMissingImports=false
# ruff: noqa: PTH110, PTH123
"""Capabilities that use more and more memory, in one process or in several, until they are ended."""

import os
import time


class Leaky:
    """Uses memory in several ways. What it holds is noted in a file beside `path`."""

    def initialize(self, config):
        self.config = config
        if config.get("eats"):
            leak(config["eats"])

    def execute(self, value=None):
        return value

    def pid(self):
        return os.getpid()

    def leak(self, step=1.0, pause=0.0):
        leak(step, pause)

    def leak_in_a_child(self):
        """The worker itself does nothing; a process that it forked grows."""
        if os.fork() == 0:
            leak()
        time.sleep(100)

    def share(self, mb, children):
        """Several processes with the same memory, which is there once."""
        held = b"x" * (mb << 20)
        pids = []
        for _ in range(children):
            pid = os.fork()
            if pid == 0:
                time.sleep(0.4)
                os._exit(0)
            pids.append(pid)
        for pid in pids:
            os.waitpid(pid, 0)
        return len(held)

    def hold(self, mb, path):
        """Hold memory until a file is there."""
        held = b"x" * (mb << 20)
        open(path + f".{mb}.began", "a").close()
        while not os.path.exists(path):
            self.check_cancel()
            time.sleep(0.002)
        return len(held) >> 20

    def keep(self, mb):
        """Hold memory from now on."""
        self.held = b"x" * (mb << 20)

    def wait_and_leak(self, path):
        open(path + ".began", "a").close()
        while not os.path.exists(path):
            time.sleep(0.002)
        held = b"x" * (150 << 20)
        return len(held) >> 20


def leak(step=1.0, pause=0.0):
    """Take so many megabytes at a time, for ever."""
    held = []
    while True:
        held.append(b"x" * int(step * 1048576))
        if pause:
            time.sleep(pause)
