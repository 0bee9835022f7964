"""Looking at the machine: within the container's limits, on this very machine, and through NVML."""

import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from failwell.jobs.memory.gpu import Gpus
from failwell.jobs.memory.ledger import Pool
from failwell.jobs.memory.machine import SystemProbe

GIB = 1024**3


def a_system(tmp_path: Path, *, cgroup: str, limits: dict[str, str]) -> SystemProbe:
    proc, groups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal: 8388608 kB\nMemFree: 1 kB\nMemAvailable: 6291456 kB\n")
    (proc / "self" / "cgroup").write_text(cgroup)
    for name, text in limits.items():
        file = groups / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return SystemProbe(tmp_path, proc=proc, groups=groups)


def test_without_limits_the_machine_is_what_there_is(tmp_path: Path) -> None:
    probe = a_system(tmp_path, cgroup="0::/\n", limits={"memory.max": "max\n", "memory.current": "5\n"})

    assert probe.read().ram == Pool(8192.0, 6144.0)


def test_the_tightest_limit_above_decides_and_caches_count_as_free(tmp_path: Path) -> None:
    probe = a_system(
        tmp_path,
        cgroup="0::/a/b\n",
        limits={
            "a/memory.max": f"{4 * GIB}\n",
            "a/memory.current": f"{3 * GIB}\n",
            "a/memory.stat": f"anon 1\ninactive_file {GIB}\n",
            "a/b/memory.max": "max\n",
            "a/b/memory.current": f"{GIB}\n",
        },
    )

    assert probe.read().ram == Pool(4096.0, 2048.0)


def test_limits_of_the_older_kind_are_read_too(tmp_path: Path) -> None:
    probe = a_system(
        tmp_path,
        cgroup="9:cpu:/x\n4:memory:/m\n",
        limits={"memory/m/memory.limit_in_bytes": f"{2 * GIB}", "memory/m/memory.usage_in_bytes": f"{GIB}"},
    )

    assert probe.read().ram == Pool(2048.0, 1024.0)


def test_without_proc_the_machine_still_has_its_memory(tmp_path: Path) -> None:
    pool = SystemProbe(tmp_path, proc=tmp_path / "none", groups=tmp_path / "none").read().ram

    assert pool is not None
    assert pool.total == pytest.approx(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1024**2)
    assert 0 < pool.free <= pool.total


def test_this_machine_has_memory_and_a_disk(tmp_path: Path) -> None:
    probe = SystemProbe(tmp_path / "not" / "made" / "yet")
    seen = probe.read()
    probe.close()

    assert seen.ram is not None
    assert 0 < seen.ram.free <= seen.ram.total
    assert seen.disk is not None
    assert 0 < seen.disk.free <= seen.disk.total


class Driver(ModuleType):
    """A driver with two cards, as the outside world would have it."""

    class NVMLError(Exception):
        pass

    def __init__(self, *, broken: bool = False) -> None:
        super().__init__("pynvml")
        self.broken = broken
        self.shut = 0

    def nvmlInit(self) -> None:
        if self.broken:
            raise self.NVMLError("no driver")

    def nvmlShutdown(self) -> None:
        self.shut += 1

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> Any:
        return b"GPU-aa11" if handle == 0 else "GPU-ab22"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        return SimpleNamespace(total=(handle + 1) * 10 * GIB, free=GIB)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:
        return [SimpleNamespace(pid=7, usedGpuMemory=GIB if handle else None)]

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle: int) -> list[Any]:
        return [SimpleNamespace(pid=8, usedGpuMemory=2 * GIB)] if handle else []


def test_cards_and_who_holds_their_memory_are_told_by_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    gpus = Gpus()

    pools, processes = gpus.read()
    ids = gpus.ids()
    gpus.close()

    assert pools == (Pool(10240.0, 1024.0), Pool(20480.0, 1024.0))
    assert processes == {(0, 7): 0.0, (1, 7): 1024.0, (1, 8): 2048.0}
    assert ids == ("GPU-aa11", "GPU-ab22")
    assert driver.shut == 1


@pytest.mark.parametrize("driver", [None, Driver(broken=True)])
def test_a_machine_without_a_driver_has_no_cards(
    monkeypatch: pytest.MonkeyPatch, driver: Driver | None
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", driver)

    assert Gpus().read() == ((), {})
    assert Gpus().ids() == ()
