# pyright: basic, reportAttributeAccessIssue=false, reportMissingImports=false
# ruff: noqa: PTH105, PTH108, PTH110, PTH118, PTH123, PTH208, SIM115
"""Capabilities for tests of the queue: they wait until they are let go, fail as told, and hold what a fake GPU lends."""

import os
import time


def echo(value: object = None) -> object:
    return value


def _append(path, text):
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, text.encode())
    os.close(file)


class Worker:
    """Does what it is told, and writes down that it did."""

    def __init__(self):
        self.config = {}
        self.life = []

    def initialize(self, config):
        self.config = config

    def execute(self, value=None):
        self._note(value)
        return value

    def pid(self):
        return os.getpid()

    def seen_config(self):
        return self.config

    def until(self, path, value=None, mb=0, disk_mb=0):
        """Run until a file is there, reporting progress and watcher cancels."""
        self._note(value)
        if disk_mb:
            with open(path + ".written", "wb") as file:
                file.writelines(b"x" * (1 << 20) for _ in range(disk_mb))
        held = bytearray(mb << 20)
        held[::4096] = b"x" * len(held[::4096])
        open(path + ".began", "a").close()
        self.progress(0.5, "half")
        while not os.path.exists(path):
            self.check_cancel()
            time.sleep(0.002)
        return value

    def keep(self, mb):
        """Hold main memory from now on."""
        self.held = bytearray(mb << 20)
        self.held[::4096] = b"x" * len(self.held[::4096])

    def deaf(self, path):
        """The same, and no cancel is heard."""
        open(path + ".began", "a").close()
        while not os.path.exists(path):
            time.sleep(0.002)

    def effects(self, value, path, seconds=0.0, hears=False):
        """Append a line at the beginning and one at the end, each in one write."""
        _append(path, f"began {value}\n")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if hears:
                self.check_cancel()
            time.sleep(0.0005)
        _append(path, f"finished {value}\n")
        return value

    def fail_first(self, times, path, kind="transient", after=None):
        """Fail so many times, counted in a file, then succeed."""
        from failwell.capability import CapabilityResourceError, CapabilityTransientError, ResourceShortfall

        with open(path, "a") as file:
            file.write(f"{time.time()}\n")
        count = sum(1 for _ in open(path))
        if count > times:
            return count
        if kind == "transient":
            raise CapabilityTransientError("not now", retry_after_seconds=after)
        raise CapabilityResourceError(
            "too little", resource_shortfall=ResourceShortfall("system_ram_mb", 16000, 8000)
        )

    def ask_in_a_loop(self, path):
        """Make two calls in a loop of its own, both of which fail."""
        from failwell import Backoff, retry
        from failwell.capability import CapabilityTransientError

        @retry(attempts=2, backoff=Backoff(first=0.0), name="ask")
        def ask():
            with open(path, "a") as file:
                file.write("x\n")
            raise CapabilityTransientError("not now")

        ask()

    def die(self, path, times, signal=9):
        """Kill its own process so many times, then succeed."""
        with open(path, "a") as file:
            file.write("x\n")
        if sum(1 for _ in open(path)) <= times:
            os.kill(os.getpid(), signal)
        return "alive"

    def eat(self, mb):
        """Take main memory and give it back."""
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (mb << 20, mb << 20))
        return len(bytearray(mb << 21))

    def count_to(self, number):
        yield from range(number)

    def make_for_ever(self, path):
        number = 0
        while True:
            with open(path, "a") as file:
                file.write(f"{number}\n")
            yield number
            number += 1

    def on_disable(self):
        self._note("disabled")

    def on_enable(self):
        self._note("enabled")

    def _note(self, what):
        path = self.config.get("log")
        if path:
            with open(path, "a") as file:
                file.write(f"{what}\n")


class NotesCancel(Worker):
    """Writes down that a cancel has arrived."""

    def on_cancel(self):
        self._note("cancel")


class SlowStart(Worker):
    """Once a file is there, it is not ready for a minute, and shows that it gets on."""

    def initialize(self, config):
        super().initialize(config)
        if not os.path.exists(config["slow_if"]):
            return
        with self.heartbeat("loading", interval=0.1):
            time.sleep(60)


def _number(path):
    try:
        return float(open(path).read() or 0)
    except FileNotFoundError:
        # Its process has just given its memory back.
        return 0.0


class Model:
    """Sits in the memory of a GPU that is a folder: one file for each process, with the megabytes it holds."""

    def initialize(self, config):
        self.gpu = config["gpu"]
        self.total = config.get("total", 10_000)
        self.keeps = config.get("keeps", True)
        self.file = os.path.join(self.gpu, str(os.getpid()))

    def execute(self, mb, until=None):
        from failwell.capability import CapabilityResourceError, ResourceShortfall

        free = self.total - sum(
            _number(os.path.join(self.gpu, name))
            for name in os.listdir(self.gpu)
            if name != str(os.getpid()) and (name == "0" or os.path.exists(f"/proc/{name}"))
        )
        with open(os.path.join(self.gpu + ".log"), "a") as log:
            log.write(f"{os.getpid()} wants {mb} of {free}\n")
        if mb > free:
            raise CapabilityResourceError(
                "CUDA out of memory", resource_shortfall=ResourceShortfall("gpu_vram_mb", mb, free)
            )
        with open(self.file + ".draft", "w") as file:
            file.write(str(mb))
        os.replace(self.file + ".draft", self.file)
        if until is not None:
            open(until + ".began", "a").close()
            self.progress(0.25, "loaded")
            while not os.path.exists(until):
                self.check_cancel()
                time.sleep(0.002)
        if not self.keeps:
            os.unlink(self.file)
        return os.getpid()

    def hold(self, mb, seconds):
        """Hold memory for a while."""
        keeps, self.keeps = self.keeps, True
        self.execute(mb)
        time.sleep(seconds)
        os.unlink(self.file)
        self.keeps = keeps

    def pid(self):
        return os.getpid()

    def seen_config(self):
        return {"gpu": self.gpu, "total": self.total, "keeps": self.keeps}


class Releasing(Model):
    """Gives its memory back when asked to."""

    def release(self):
        if os.path.exists(self.file):
            os.unlink(self.file)


class Stubborn(Model):
    """Does not end when it is asked to."""

    def cleanup(self):
        time.sleep(60)
