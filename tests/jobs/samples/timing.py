# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false
# ruff: noqa: PTH110, PTH123
"""Capabilities for tests of time: they take as long as a file says, to start or to answer."""

import os
import time


class Slow:
    """Starts once a file is there, and notes every call that it runs."""

    def initialize(self, config):
        self.log = config.get("log")
        self.hangs = config.get("hangs")
        gate = config.get("gate")
        if gate is not None:
            open(gate + ".began", "a").close()
            with self.heartbeat("loading", interval=0.05):
                while not os.path.exists(gate):
                    time.sleep(0.002)

    def execute(self, value=None):
        if self.log:
            with open(self.log, "a") as file:
                file.write(f"{value}\n")
        return value

    def pid(self):
        return os.getpid()

    def until(self, path):
        """Run until a file is there, watcher cancels."""
        open(path + ".began", "a").close()
        while not os.path.exists(path):
            self.check_cancel()
            time.sleep(0.002)

    def nap(self, seconds):
        """Show nothing for so long."""
        time.sleep(seconds)
        return os.getpid()

    def reconfigure(self, old, config):
        if config.get("hangs") == "configure":
            time.sleep(3600)
        self.hangs = config.get("hangs")

    def count_to(self, number):
        yield from range(number)

    def on_disable(self):
        self._hang("disable")

    def on_enable(self):
        self._hang("enable")

    def _hang(self, hook):
        while self.hangs and hook in self.hangs:
            time.sleep(0.05)


class Short(Slow):
    """Is short of something once, counted in a file, and does not give up memory when it is asked to."""

    def execute(self, path, resource="gpu_vram_mb", needed=100, available=50, times=1):
        from failwell.capability import CapabilityResourceError, ResourceShortfall

        with open(path, "a") as file:
            file.write("x\n")
        if sum(1 for _ in open(path)) > times:  # noqa: SIM115
            return "done"
        raise CapabilityResourceError(
            "too little", resource_shortfall=ResourceShortfall(resource, needed, available)
        )

    def release(self):
        gate = self.hangs
        open(gate + ".began", "a").close()
        while not os.path.exists(gate):
            time.sleep(0.002)
        return False
