"""Control groups of version 2: found where this process may create them, and enforced by the kernel."""

import asyncio
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from failwell.jobs import Limits
from failwell.jobs.job import JobState
from failwell.jobs.manifest import Manifest
from failwell.jobs.runtime import Runtime
from failwell.processes.memory_groups import MemoryGroups
from tests.jobs.workers import until

MOUNT = Path("/sys/fs/cgroup")
LEAKY = """
import os, time
def leak():
    held = []
    while True:
        held.append(b"x" * (1 << 20))
def leak_in_a_child():
    if os.fork() == 0:
        leak()
    time.sleep(100)
def hold(mb, path):
    held = b"x" * (mb << 20)
    open(path + ".began", "w").close()
    while not os.path.exists(path):
        time.sleep(0.01)
    return len(held) >> 20
"""


def test_there_are_none_where_the_kernel_has_groups_of_version_1_only(tmp_path: Path) -> None:
    own = tmp_path / "cgroup"
    own.write_text("4:memory:/somewhere\n0::/\n")

    assert MemoryGroups.find(mount=tmp_path / "nothing", own=own) is None
    assert MemoryGroups.find(mount=tmp_path, own=tmp_path / "missing") is None


def test_a_group_that_cannot_be_given_a_limit_is_not_used(tmp_path: Path) -> None:
    own, group = tmp_path / "self", tmp_path / "service"
    own.write_text("0::/service\n")
    group.mkdir()
    for folder in (tmp_path, group):
        (folder / "cgroup.controllers").write_text("cpu memory\n")
        (folder / "cgroup.subtree_control").write_text("cpu\n")
        (folder / "cgroup.subtree_control").chmod(0o400)
    abandoned = group / f"failwell-{_unused_pid()}-0a0a0a0a"
    (abandoned / "worker-1").mkdir(parents=True)

    found = MemoryGroups.find(mount=tmp_path, own=own)

    # A folder is no control group, so the one that is created has no files, and is removed again.
    assert found is None
    assert [path.name for path in group.iterdir() if path.is_dir()] == []


@contextmanager
def a_delegated_group() -> Generator[Path]:
    """Put this process where a service manager would put a service: into a group below one that is left to it."""
    home = MOUNT / f"fw-test-{os.getpid()}"
    own = next(
        (row[3:] for row in Path("/proc/self/cgroup").read_text().splitlines() if row[:3] == "0::"), "/"
    )
    try:
        (home / "service").mkdir(parents=True)
        os.setxattr(home, "user.delegate", b"1")
        (home / "service" / "cgroup.procs").write_text(str(os.getpid()))
    except OSError as error:
        for folder in (home / "service", home):
            if folder.exists():
                folder.rmdir()
        pytest.skip(f"this machine lets nobody make a control group of version 2: {error}")
    try:
        yield home
    finally:
        (MOUNT / own.lstrip("/") / "cgroup.procs").write_text(str(os.getpid()))
        (home / "service").rmdir()
        home.rmdir()


@pytest.fixture
def delegated() -> Generator[Path]:
    if not (MOUNT / "cgroup.controllers").exists():
        pytest.skip("this machine has no control groups of version 2")
    with a_delegated_group() as home:
        yield home


def leaky(folder: Path, name: str, **fields: float) -> Manifest:
    (folder / "leaky.py").write_text(LEAKY)
    return Manifest(name=name, object=f"leaky:{name}", path=(str(folder),), **fields)  # pyright: ignore[reportArgumentType]


def names_in(folder: Path, pattern: str) -> list[str]:
    return [path.name for path in folder.glob(pattern)]


def limit_of_all(folder: Path) -> int:
    (limit,) = [path.read_text() for path in folder.glob("failwell-*/memory.max")]
    return int(limit)


@pytest.mark.parametrize("name", ["leak", "leak_in_a_child"])
def test_the_kernel_ends_a_worker_at_its_limit(delegated: Path, tmp_path: Path, name: str) -> None:
    async def work() -> None:
        async with Runtime(tmp_path / "state") as jobs:
            jobs.register(leaky(tmp_path, name, memory_limit=120))
            job = await jobs.submit(name)
            ended = await jobs.wait(job.id)

            assert (ended.state, ended.attempt) == (JobState.FAILED, 1)
            assert ended.error is not None
            assert ended.error.kind == "resource.system_memory"
            assert (ended.error.details["limit_mb"], ended.error.details["out_of_memory"]) == (
                120,
                "confirmed",
            )
            assert 120 <= ended.error.details["used_mb"] <= 121
            # The group goes with the worker; the next one gets a group of its own.
            await until(lambda: "worker-1" not in names_in(delegated, "failwell-*/worker-*"))

    asyncio.run(work())
    assert list(delegated.glob("failwell-*")) == []


def test_the_kernel_ends_a_worker_when_all_of_them_use_too_much(delegated: Path, tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with Runtime(tmp_path / "state", limits=Limits(memory_mb=300), lanes=2) as jobs:
            jobs.register(leaky(tmp_path, "hold"))
            jobs.register(leaky(tmp_path, "leak"))
            held = await jobs.submit("hold", {"mb": 40, "path": str(go)})
            await until(Path(f"{go}.began").exists)
            limit = limit_of_all(delegated)
            job = await jobs.submit("leak", control={"max_attempts": 1})
            ended = await jobs.wait(job.id)
            go.touch()

            assert limit == 300 << 20
            assert (await jobs.wait(held.id)).result == 40
            assert ended.error is not None
            assert ended.error.kind == "resource.system_memory"

    asyncio.run(work())
    assert list(delegated.glob("failwell-*")) == []


def _unused_pid() -> int:
    return next(pid for pid in range(2**22, 2, -1) if not Path(f"/proc/{pid}").exists())
