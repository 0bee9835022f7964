# pyright: basic, reportAttributeAccessIssue=false, reportMissingImports=false
# ruff: noqa: PTH108, PTH110, PTH123
"""Capabilities that really take the machine's memory and disk, and note from when to when they did."""

import json
import os
import time


class Hungry:
    """Takes main memory, for a call or for good."""

    def initialize(self, config):
        self.config = config
        self.kept = None

    def execute(self, mb, keep=False, until=None, log=None, doomed=False):
        """Hold `mb` megabytes, each page of them touched."""
        if doomed:
            # Whoever must go when the memory of a group runs out: this process, not its neighbours.
            with open("/proc/self/oom_score_adj", "w") as file:
                file.write("1000")
        held = self.kept if self.kept is not None and len(self.kept) == mb << 20 else _touched(mb)
        began = time.time()
        self.progress(0.25, "holds it")
        if until is not None:
            self._wait(until)
        if log is not None:
            with open(log, "a") as file:
                file.write(json.dumps([began, time.time()]) + "\n")
        if keep:
            self.kept = held
        return held[-1]

    def fill(self, path, mb, until=None):
        """Take `mb` megabytes of the disk."""
        try:
            with open(path, "wb") as file:
                file.writelines(b"x" * (1 << 20) for _ in range(mb))
        except OSError:
            os.unlink(path)
            raise
        if until is not None:
            self._wait(until)
        return mb

    def limited(self, mb, count, numbers=False):
        """Ask for more than the kernel gives to this process, counting the attempts in a file."""
        import resource

        from failwell.capability import CapabilityResourceError, ResourceShortfall

        with open(count, "a") as file:
            file.write("x\n")
        most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (mb << 20, most[1]))
        try:
            return len(_touched(2 * mb))
        except MemoryError as error:
            if not numbers:
                raise
            raise CapabilityResourceError(
                "the model does not fit",
                resource_shortfall=ResourceShortfall("system_ram_mb", 2 * mb, mb),
            ) from error
        finally:
            resource.setrlimit(resource.RLIMIT_AS, most)

    def fail(self, mb):
        """Take it, then fail."""
        from failwell.capability import CapabilityFatalError

        _touched(mb)
        raise CapabilityFatalError("no")

    def seen_config(self):
        return self.config

    def pid(self):
        return os.getpid()

    def _wait(self, path):
        open(path + ".began", "a").close()
        while not os.path.exists(path):
            self.check_cancel()
            time.sleep(0.002)


class Giving(Hungry):
    """Gives its memory back when asked to."""

    def release(self):
        self.kept = None


def _touched(mb):
    held = bytearray(mb << 20)
    held[::4096] = b"x" * len(held[::4096])
    held[-1] = 7
    return held
