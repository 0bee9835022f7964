"""A state folder with capabilities in it, for tests of the commands about jobs."""

import subprocess
import sys
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from failwell.jobs.capabilities import CapabilityRegistry
from tests.cli.running import Done, environment, failwell

MODULE = """
import os, sys, time
from failwell.capability import progress

def echo(value=None):
    return value

class Slow:
    def execute(self, path):
        open(path + ".began", "a").close()
        while not os.path.exists(path):
            self.check_cancel()
            time.sleep(0.005)
        return {"pid": os.getpid()}

    def deaf(self, path):
        open(path + ".began", "a").close()
        while not os.path.exists(path):
            time.sleep(0.005)

    def telling(self, path):
        progress(0.25, "a quarter")
        return self.execute(path)

class Many:
    def execute_stream(self, most=3, path=None):
        for number in range(most):
            yield {"number": number, "word": "w%d" % number}
            while path and not os.path.exists(path + str(number)):
                time.sleep(0.005)

    def words(self):
        yield from ("one", "two")

    def odd(self):
        return object()

    def broken(self):
        yield 1
        raise RuntimeError("no more")

def fails(value=None):
    print("about to fail", file=sys.stderr)
    raise RuntimeError("wrong on purpose")

def dies(value=None):
    os.write(2, b"last words\\n")
    os._exit(7)
"""
NAMES = {"echo": "echo", "slow": "Slow", "many": "Many", "fails": "fails", "dies": "dies"}


class Place:
    """Runs commands on its own state folder.

    Its capabilities are registered without the command, which starts a worker for each to learn its parameters.
    """

    def __init__(self, folder: Path, *names: str) -> None:
        self.folder = folder
        registry = CapabilityRegistry(folder / "state")
        (folder / "tools.py").write_text(MODULE)
        for name in names:
            (folder / f"{name}.toml").write_text(f'name = "{name}"\nobject = "tools:{NAMES[name]}"\n')
            registry.add(folder / f"{name}.toml")

    def __call__(self, *arguments: str, given: str | bytes = "") -> Done:
        return failwell(*arguments, "--store", str(self.folder / "state"), given=given)

    @contextmanager
    def start(self, *arguments: str) -> "Generator[subprocess.Popen[str]]":
        with started("-m", "failwell", *arguments, "--store", str(self.folder / "state")) as process:
            yield process

    def path(self, name: str) -> Path:
        return self.folder / name

    def until(self, path: Path) -> None:
        wait_until(path.exists)

    def until_hosted(self, state: Path, hosts: int = 1) -> None:
        """Wait until so many hosts run the jobs of a state folder."""
        wait_until(lambda: len(list((state / "jobs" / "hosts").glob("*/host.json"))) >= hosts)


def wait_until(holds: Callable[[], bool]) -> None:
    """Look until it holds."""
    end = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


@contextmanager
def started(*arguments: str) -> "Generator[subprocess.Popen[str]]":
    """A Python that runs beside the test, and not longer."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def finish(process: "subprocess.Popen[str]", seconds: float = 120) -> tuple[str, str]:
    """The rest of what it says, once it has ended. `communicate` would miss what was read ahead."""
    assert process.stdout is not None
    assert process.stderr is not None
    with ThreadPoolExecutor(2) as readers:
        out, err = readers.submit(process.stdout.read), readers.submit(process.stderr.read)
        try:
            process.wait(seconds)
        finally:
            process.kill()
        return out.result(), err.result()


def read_until(stream: IO[str] | None, words: str) -> str:
    """The first line with these words in it."""
    assert stream is not None
    return next(line for line in stream if words in line)
