# pyright: basic, reportAttributeAccessIssue=false, reportMissingImports=false, reportOptionalMemberAccess=false
# ruff: noqa: PTH110, PTH123, T201
"""Capabilities for tests that do what few do, and that a host has to bear."""

import builtins
import logging
import os
import signal
import subprocess
import sys
import time
from ast import literal_eval


class Odd:
    """Fails, answers and speaks in unusual ways."""

    def initialize(self, config):
        self.config = config
        if "raise" in config:
            kind, text = config["raise"]
            if kind.startswith("Capability"):
                import failwell.capability as errors

                raise getattr(errors, kind)(text)
            raise getattr(builtins, kind)(text)

    def execute(self, value=None):
        return value

    def pid(self):
        return os.getpid()

    def raise_typed(self, name, given, more):
        import failwell.capability as errors

        if "resource_shortfall" in more:
            more["resource_shortfall"] = errors.ResourceShortfall(**more["resource_shortfall"])
        raise getattr(errors, name)(*given, **more)

    def raise_named(self, name, module):
        """Both as they are written in Python, because no frame could bring them otherwise."""
        named = {"__qualname__": literal_eval(name), "__module__": literal_eval(module)}
        made = type("Strange", (RuntimeError,), named)
        raise made("\ud800 is half a character")

    def answer(self, frame):
        """Answers the call itself, with words that no worker of ours would use, and goes on."""
        from _failwell_worker import author

        call = author.current.get()
        call._line.send({"type": "result", "job": call.job, "peaks": [1, 1], **frame})
        return "too late"

    def nested(self, levels, kind="list"):
        made = 1
        for _ in range(levels):
            made = [made] if kind == "list" else {"a": made}
        return {"found": [0, made]}

    # words

    def bytes_out(self):
        sys.stdout.reconfigure(encoding="utf-8")
        whole = "grüße\n".encode()
        sys.stdout.buffer.write(whole[:3])
        sys.stdout.buffer.write(memoryview(whole[3:]))
        sys.stderr.buffer.write(b"to stderr\n")
        sys.stderr.buffer.flush()
        return [sys.stdout.buffer.fileno(), sys.stdout.name]

    # memory

    def share(self, mb, forks, path):
        """Hold memory, and fork processes that hold the same, until a file is there."""
        held = bytearray(mb << 20)
        held[::4096] = b"x" * len(held[::4096])
        pids = []
        for _ in range(forks):
            pid = os.fork()
            if pid == 0:
                signal.pause()
                os._exit(0)
            pids.append(pid)
        while not os.path.exists(path):
            time.sleep(0.005)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        return len(held)

    # secrets

    def tell_secret(self):
        raise RuntimeError("the word is " + os.environ["ITS_WORD"])

    def tell_secret_and_die(self):
        os.write(2, f"the word is {os.environ['ITS_WORD']}\n".encode())
        os._exit(3)

    def say_secret(self):
        word = os.environ["ITS_WORD"]
        self.progress(0.5, f"logging in with {word}")
        print(f"printed {word}")
        logging.getLogger("odd").warning("logged %s", word)
        sys.stdout.buffer.write(f"written {word}\n".encode())
        return word

    def wait_with_secret(self, path):
        self.progress(0.5, f"logging in with {os.environ['ITS_WORD']}")
        while not os.path.exists(path):
            time.sleep(0.005)


class Lanes:
    """Several calls at a time, and a cleanup that notes how many of them run."""

    def initialize(self, config):
        self.config = config
        self.running = 0

    def execute(self, seconds, path):
        self.running += 1
        open(path, "w").close()
        time.sleep(seconds)
        self.running -= 1

    def cleanup(self):
        with open(self.config["note"], "w") as file:
            file.write(str(self.running))


class Loader:
    """Leaves the work of its start to a process of its own."""

    def initialize(self, config):
        busy = f"import time\nend = time.time() + {config['seconds']}\nwhile time.time() < end: sum(range(10_000))"
        subprocess.run([sys.executable, "-c", busy], check=True)

    def execute(self):
        return "ready"


class Files:
    """Returns bytes."""

    def execute(self, value=None):
        return value

    def pid(self):
        return os.getpid()

    def late(self, path, began):
        """Bytes, once it is let go; it does not look whether it was cancelled."""
        open(began, "w").close()
        while not os.path.exists(path):
            time.sleep(0.005)
        return {"one": b"abc", "more": [b"def"]}

    def many(self, number):
        for _ in range(number):
            yield b"x"


class Talker:
    """Says something before, while and after it waits."""

    def initialize(self, config):
        print("loading")

    def execute(self, path):
        print("before")
        while not os.path.exists(path):
            time.sleep(0.005)
        print("after")
