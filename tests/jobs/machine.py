"""What tests borrow of the real machine: a control group with little memory, a disk with little space."""

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

_GROUPS = Path("/sys/fs/cgroup")


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
