# pyright: basic, reportAttributeAccessIssue=false, reportMissingImports=false, reportOptionalMemberAccess=false
# ruff: noqa: PTH105, PTH123, T201
"""A capability for tests: whatever a tool can do to its worker. It imports nothing of failwell's at the top."""

import asyncio
import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field


class Sample:
    version = "1.2"

    def __init__(self):
        self.life = []
        self.config = None

    def initialize(self, config):
        self.config = config
        self.life.append("initialize")
        for line in config.get("say", []):
            print(line)
        if config.get("raise_input"):
            from failwell.capability import CapabilityInputError

            raise CapabilityInputError("no such model", fields_invalid=["model"])
        if config.get("below"):
            pids = self.start_descendants()
            with open(config["below"], "w") as file:
                file.write(" ".join(map(str, pids)))
        if config.get("silent"):
            time.sleep(config["silent"])
        if config.get("beating"):
            with self.heartbeat("loading", interval=0.05):
                time.sleep(config["beating"])
        if config.get("holding"):
            # One call of C code that never lets another thread run.
            sum(range(config["holding"]))
        if config.get("exit") is not None:
            os._exit(config["exit"])

    def execute(self, value=None):
        return value

    def pid(self):
        return os.getpid()

    def lived(self):
        return self.life

    def seen_config(self):
        return self.config

    def release(self):
        self.life.append("release")

    def prefetch(self):
        self.life.append("prefetch")

    def on_enable(self):
        self.life.append("enable")

    def on_disable(self):
        self.life.append("disable")

    def cleanup(self):
        path = (self.config or {}).get("cleanup_marker")
        if path:
            with open(path, "w") as file:
                file.write("cleaned")
        if (self.config or {}).get("hang_in_cleanup"):
            time.sleep(60)

    def environment(self, names):
        return {name: os.environ.get(name) for name in names}

    # failures

    def bare(self, name, text="it broke"):
        import builtins

        raise getattr(builtins, name)(text)

    def chained(self):
        try:
            raise ConnectionResetError("peer went away")
        except ConnectionResetError as error:
            raise RuntimeError("could not load") from error

    def full_disk(self):
        raise OSError(28, "No space left on device")

    def typed(self, category):
        from failwell.capability import (
            CapabilityFatalError,
            CapabilityInputError,
            CapabilityResourceError,
            CapabilityTransientError,
            ResourceShortfall,
        )

        if category == "user_input":
            raise CapabilityInputError("two fields are wrong", fields_invalid=["a", "b"])
        if category == "transient":
            raise CapabilityTransientError("try later", retry_after_seconds=2.5)
        if category == "resource":
            short = ResourceShortfall("gpu_vram_mb", 16000, 8000)
            raise CapabilityResourceError("no room", resource_shortfall=short)
        raise CapabilityFatalError("no repeat helps")

    def typed_stream(self, category):
        yield 1
        self.typed(category)

    def foreign(self, module, name, text):
        made = type(name, (RuntimeError,), {"__module__": module})
        raise made(text)

    def exhausted(self, text, used, limit):
        """Fail as jax does on a card of `limit` bytes, beside a torch that sees the whole card, without /proc."""
        import builtins
        from types import SimpleNamespace
        from typing import Any

        def without_proc(path, *rest, original=builtins.open, **named):
            if str(path).startswith("/proc"):
                raise FileNotFoundError(path)
            return original(path, *rest, **named)

        device = SimpleNamespace(memory_stats=lambda: {"bytes_limit": limit, "bytes_in_use": used})
        cuda = SimpleNamespace(
            is_available=lambda: True,
            is_initialized=lambda: True,
            mem_get_info=lambda: (10 * limit, 10 * limit),
        )
        modules: dict[str, Any] = sys.modules
        modules["jax"] = SimpleNamespace(local_devices=lambda: [device])
        modules["torch"] = SimpleNamespace(cuda=cuda)
        builtins.open = without_proc
        self.foreign("jaxlib._jax", "XlaRuntimeError", text)

    def leaves(self):
        sys.exit(4)

    # results

    def not_a_number(self):
        return {"scores": [0.5, float("nan")]}

    def endless(self):
        return float("inf")

    def an_object(self):
        return {"model": object()}

    def a_set(self):
        return {1, 2}

    def half_a_character(self):
        return "\ud800"

    def binary(self):
        return {"audio": b"\x00\x01\x02" * 1000, "rate": 16000}

    def fill(self, path, megabytes):
        with open(path, "wb") as file:
            file.write(b"x" * (megabytes * 1024 * 1024))

    def huge(self, megabytes):
        return "x" * (megabytes * 1024 * 1024)

    # time

    def patient(self, seconds, started=None):
        """Stops when it is asked to."""
        _touch(started)
        until = time.monotonic() + seconds
        step = 0
        while time.monotonic() < until:
            self.check_cancel()
            step += 1
            self.progress(min(0.9, step / 100), f"step {step}")
            time.sleep(0.005)
        return "done"

    def deaf(self, seconds, started=None):
        """Does not look whether it is asked to stop."""
        _touch(started)
        time.sleep(seconds)
        return "done"

    def deaf_but_ends(self, seconds, started=None):
        _touch(started)
        time.sleep(seconds)
        raise TimeoutError("of its own")

    def woken(self, started=None):
        """Is stopped by a callback."""
        asked = threading.Event()
        with self.on_cancel(asked.set):
            _touch(started)
            asked.wait(30)
        self.check_cancel()
        return "never"

    async def sleeping(self, seconds, started=None):
        _touch(started)
        await asyncio.sleep(seconds)
        return "slept"

    async def soon(self, value):
        await asyncio.sleep(0)
        return value

    def halfway(self):
        self.progress(0.5, "halfway")
        self.usage({"tokens": 3})
        self.usage({"tokens": 4})

    # streams

    def count(self, to):
        yield from range(to)

    async def count_later(self, to):
        for number in range(to):
            await asyncio.sleep(0)
            yield number

    def made_so_far(self, path):
        number = 0
        while True:
            number += 1
            with open(f"{path}.draft", "w") as file:
                file.write(str(number))
            os.replace(f"{path}.draft", path)
            yield number

    # deaths

    def die(self, how):
        if isinstance(how, int):
            os._exit(how)
        os.kill(os.getpid(), getattr(signal, how))
        time.sleep(60)

    def segfault(self):
        ctypes.string_at(0)

    def abort_for_memory(self):
        os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
        os.abort()

    def eat(self, megabytes):
        return len([bytearray(os.urandom(1)) * (1024 * 1024) for _ in range(megabytes)])

    def limited(self, megabytes):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (megabytes * 1024 * 1024, megabytes * 1024 * 1024))
        return len(bytearray(4 * megabytes * 1024 * 1024))

    # below

    def start_descendants(self):
        """One plain child, one in its own session, one orphaned on purpose."""
        plain = subprocess.Popen(["sleep", "300"])
        own = subprocess.Popen(["sleep", "300"], start_new_session=True)
        orphan = subprocess.Popen(
            ["setsid", "sh", "-c", "sleep 300 >/dev/null 2>&1 & echo $!"], stdout=subprocess.PIPE, text=True
        )
        orphan_pid = int(orphan.stdout.readline())
        orphan.wait()
        return [plain.pid, own.pid, orphan_pid]

    def fork(self, times):
        """Processes that were forked print, log and exit, while we go on."""
        pids = []
        for number in range(times):
            pid = os.fork()
            if pid == 0:
                print(f"forked {number}", flush=True)
                logging.getLogger("sample").warning("forked too")
                self.progress(0.9, "of a fork")
                os._exit(0)
            pids.append(pid)
            print(f"parent {number}")
        return [os.waitpid(pid, 0)[1] for pid in pids]

    def forge(self, path):
        return {"$file": {"path": path, "size": 1}}

    def forge_badly(self):
        return [{"$file": None}, {"$file": {"path": 3}}, {"$file": {"size": "x"}}]

    def babble(self):
        """Writes on every descriptor it can find."""
        for fd in range(3, 1024):
            try:
                os.write(fd, b"\x02\x00\x00\x00[]")
            except OSError:
                continue
        time.sleep(60)

    # words

    def talk(self):
        print("to stdout")
        print("to stderr", file=sys.stderr)
        logging.getLogger("sample.words").warning("to the log")
        os.write(1, b"past python\n")
        print("10%\r50%\r100%")
        print("no newline at the end", end="")

    def shout(self, lines):
        for number in range(lines):
            print(f"line {number}")
        return lines


def _touch(path):
    if path:
        with open(path, "w") as file:
            file.write("started")


def double(number):
    """A function is a capability, too."""
    return 2 * number


class Configured:
    """Takes its configuration as a dataclass."""

    def __init__(self):
        self.released = []
        self.initialised = 0

    @dataclass
    class Config:
        model: str = field(default="small", metadata={"enum": ["small", "large"], "reload": "model"})
        beam: int = field(default=4, metadata={"minimum": 1, "maximum": 16})
        language: str | None = None
        temperature: float = 0.0
        voice: str = field(default="alto", metadata={"reload": "voice"})

    def initialize(self, config):
        self.config = config
        self.initialised += 1

    def release_model(self):
        self.released.append(self.config.model)

    def release_voice(self):
        self.released.append(self.config.voice)

    def apply_config(self, config):
        self.config = config

    def execute(self):
        return {
            "model": self.config.model,
            "beam": self.config.beam,
            "type": type(self.config).__name__,
            "released": self.released,
            "initialised": self.initialised,
        }


@dataclass
class Audio:
    rate: int = 16000
    channels: int = 1


class Nested:
    """Its configuration has tables below."""

    @dataclass
    class Config:
        model: str = "small"
        audio: Audio = field(default_factory=Audio)
        backup: Audio | None = None

    def initialize(self, config):
        self.config = config

    def execute(self):
        return [self.config.model, self.config.audio.rate, self.config.backup and self.config.backup.rate]


class Broken:
    def __init__(self):
        import a_module_that_nobody_has  # noqa: F401
