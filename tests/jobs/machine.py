"""What tests borrow of the real machine: a control group with little memory, a disk with little space."""

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec

import pytest

_GROUPS = Path("/sys/fs/cgroup")
_ALONE = "FAILWELL_TEST_ALONE"
P = ParamSpec("P")


def in_a_small_process(test: Callable[P, None]) -> Callable[P, None]:
    """Run a test in a pytest of its own.

    Where the memory of a group runs out, the kernel ends its largest process. After thousands of tests that is the one that runs them.
    """

    @functools.wraps(test)
    def alone(*args: P.args, **kwargs: P.kwargs) -> None:
        name = os.environ["PYTEST_CURRENT_TEST"].removesuffix(" (call)")
        if os.environ.get(_ALONE) == name:
            test(*args, **kwargs)
            return
        outside = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_XDIST")}
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", name],
            env={**outside, _ALONE: name},
            capture_output=True,
            text=True,
            check=False,
        )
        if "1 skipped" in ended.stdout:
            pytest.skip("this machine lets nobody make a control group")
        assert "1 passed" in ended.stdout, ended.stdout + ended.stderr

    return alone


@contextmanager
def within_memory(mb: int) -> Generator[Path]:
    """Let this process, and all that it starts, have so much memory and no more."""
    home, limit = _home()
    group = home / f"failwell-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / limit).write_text(str(mb << 20))
        if (group / "memory.swap.max").exists():
            (group / "memory.swap.max").write_text("0")
        (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError:
        if group.exists():
            group.rmdir()
        pytest.skip("this machine lets nobody make a control group")
    try:
        yield group
    finally:
        (home / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


def _home() -> tuple[Path, str]:
    """The group that this process is in, and the name of its limit."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        pytest.skip("control groups are Linux's")
    found = {names: path for _, names, path in (line.split(":", 2) for line in lines)}
    if "memory" in found:
        return _GROUPS / "memory" / found["memory"].lstrip("/"), "memory.limit_in_bytes"
    return _GROUPS / found.get("", "/").lstrip("/"), "memory.max"


@contextmanager
def a_small_disk(place: Path, mb: int) -> Generator[Path]:
    """A file system of so many megabytes."""
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={mb}m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("this machine lets nobody mount a file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)
