# pyright: basic, reportAttributeAccessIssue=false
# ruff: noqa: PTH123
"""A capability for storms: it works, dawdles, fails, dies and hangs a little, as it is told."""

import os
import time


class Stormy:
    def initialize(self, config):
        self.config = config
        time.sleep(config.get("slow", 0))

    def execute(self, tag, seconds=0.0, log=None):
        """Work for so long, watcher cancels."""
        if log:
            with open(log, "a") as file:
                file.write(f"{tag}\n")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.check_cancel()
            time.sleep(0.002)
        return tag

    def deaf(self, tag, seconds):
        """Work for so long, whoever wants what."""
        time.sleep(seconds)
        return tag

    def die(self, tag, code):
        os._exit(code)

    def fail(self, tag, kind):
        from failwell.capability import (
            CapabilityFatalError,
            CapabilityResourceError,
            CapabilityTransientError,
            ResourceShortfall,
        )

        if kind == "transient":
            raise CapabilityTransientError("not now", retry_after_seconds=0.02)
        if kind == "resource":
            raise CapabilityResourceError(
                "too little", resource_shortfall=ResourceShortfall("system_ram_mb", 300, 100)
            )
        raise CapabilityFatalError("no")

    def items(self, tag, number):
        yield from range(number)

    def pid(self):
        return os.getpid()

    def release(self):
        return True

    def on_enable(self):
        time.sleep(0.001)

    def on_disable(self):
        time.sleep(0.001)
