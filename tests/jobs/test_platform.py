"""A capability is refused where it cannot run, with what is missing and what is there."""

import platform
from pathlib import Path
from typing import Any

import pytest

import failwell
from failwell.capability import CapabilityConfigError
from failwell.jobs import Runtime
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.host import open_store
from failwell.jobs.job import JobRequest
from failwell.jobs.manifest import Manifest
from failwell.jobs.manifest_file import parse_manifest
from failwell.jobs.platform import (
    ACCELERATORS,
    HostPlatform,
    Resources,
    UnsupportedPlatform,
    machine_of,
    this_machine,
)
from tests.jobs.workers import a_manifest, a_worker, failure, run

ELSEWHERE = "linux-arm64" if this_machine().platform != "linux-arm64" else "linux-x64"
MISSING = next(name for name in ACCELERATORS if this_machine().accelerators[name] is False)


def refused(written: dict[str, Any]) -> CapabilityConfigError:
    with pytest.raises(CapabilityConfigError) as caught:
        parse_manifest({"name": "x", "object": "m:f", "resources": written})
    return caught.value


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"accelerators": ["cudda"]}, "must be `cuda`, `rocm` or `mps`, not 'cudda'; did you mean `cuda`?"),
        ({"platforms": ["linux-x86"]}, "not 'linux-x86'; did you mean `linux-x64`?"),
        ({"platforms": ["linux"]}, "must be `linux-x64`, `linux-arm64`, `darwin-x64`"),
    ],
)
def test_a_name_that_means_nothing_is_refused_with_those_that_do(written: dict[str, Any], words: str) -> None:
    error = refused(written)

    assert error.fields_invalid == [f"resources.{next(iter(written))}"]
    assert words in str(error)


def test_a_name_that_means_nothing_is_refused_in_python_too(tmp_path: Path) -> None:
    async def work() -> None:
        async with Runtime(tmp_path) as jobs:
            jobs.register(a_manifest(resources=Resources(accelerators=("cudda",))))

    with pytest.raises(CapabilityConfigError, match="did you mean `cuda`"):
        run(work())


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        (
            Resources(platforms=(ELSEWHERE,)),
            f"runs on `{ELSEWHERE}`, and this machine is `{this_machine().platform}`",
        ),
        (Resources(gpu=True, accelerators=(MISSING,)), f"needs `{MISSING}`, and this machine has"),
    ],
)
def test_what_cannot_run_here_is_neither_registered_nor_started(
    needs: Resources, words: str, tmp_path: Path
) -> None:
    async def registered() -> None:
        async with Runtime(tmp_path) as jobs:
            jobs.register(a_manifest(resources=needs))

    async def called() -> failwell.Fault:
        async with a_worker(resources=needs) as (worker, _told):
            return await failure(worker.call("one"))

    with pytest.raises(UnsupportedPlatform, match=words) as caught:
        run(registered())
    fault = run(called())

    report = failwell.describe(caught.value)
    assert (report.kind, report.certainty, report.retryable) == ("tool.unavailable", "not_sent", False)
    assert type(fault) is UnsupportedPlatform


def shelved(folder: Path, needs: str) -> CapabilityRegistry:
    source = folder / "elsewhere.toml"
    source.write_text(f'name = "elsewhere"\nobject = "m:f"\n[resources]\n{needs}\n')
    registry = CapabilityRegistry(folder / "state")
    registry.add(source)
    return registry


def test_a_job_for_what_cannot_run_here_is_refused_when_it_is_handed_in(tmp_path: Path) -> None:
    registry = shelved(tmp_path, f'platforms = ["{ELSEWHERE}"]')

    async def submitted() -> failwell.Fault:
        async with Runtime(tmp_path / "state") as jobs:
            return await failure(jobs.submit("elsewhere"))

    fault = run(submitted())
    store = open_store(tmp_path / "state")
    try:
        with pytest.raises(UnsupportedPlatform):
            QueueClient(store, registry).submit(JobRequest(instance="elsewhere"))
        kept = store.jobs()
    finally:
        store.close()

    assert type(fault) is UnsupportedPlatform
    assert kept == []


@pytest.mark.parametrize(
    "needs",
    [
        Resources(),
        Resources(gpu=True),
        Resources(platforms=(ELSEWHERE, this_machine().platform)),
        Resources(accelerators=("cuda", "rocm", "mps"))
        if any(this_machine().accelerators.values())
        else Resources(),
    ],
)
def test_what_can_run_here_does(needs: Resources) -> None:
    async def work() -> Any:
        async with a_worker(resources=needs) as (worker, _told):
            await worker.start()
            return worker.pid is not None

    assert run(work())


@pytest.mark.parametrize(
    ("system", "machine", "files", "expected"),
    [
        ("Linux", "x86_64", [], {"cuda": False, "rocm": False, "mps": False}),
        ("Linux", "x86_64", ["nvidia0", "nvidiactl"], {"cuda": True, "rocm": False, "mps": False}),
        ("Linux", "aarch64", ["nvhost-gpu"], {"cuda": True, "rocm": False, "mps": False}),
        ("Linux", "x86_64", ["kfd"], {"cuda": False, "rocm": True, "mps": False}),
        ("Darwin", "arm64", [], {"cuda": False, "rocm": False, "mps": True}),
        ("Darwin", "x86_64", [], {"cuda": False, "rocm": False, "mps": False}),
    ],
)
def test_a_machine_is_known_by_its_system_and_its_device_files(
    system: str, machine: str, files: list[str], expected: dict[str, bool], tmp_path: Path
) -> None:
    for name in files:
        (tmp_path / name).touch()
    if this_machine().accelerators["cuda"] and not files and system == "Linux":
        pytest.skip("NVML of this machine knows a card, whatever files there are")

    found = machine_of(system, machine, tmp_path)

    assert found.accelerators == expected


@pytest.mark.parametrize(
    ("system", "machine", "name"),
    [
        ("Linux", "x86_64", "linux-x64"),
        ("Windows", "AMD64", "win-x64"),
        ("Linux", "riscv64", "linux-riscv64"),
    ],
)
def test_platforms_have_short_names(system: str, machine: str, name: str, tmp_path: Path) -> None:
    assert machine_of(system, machine, tmp_path).platform == name


def test_what_cannot_be_looked_for_is_not_refused_and_is_told() -> None:
    unseen = HostPlatform(platform="win-x64", accelerators={"cuda": None, "rocm": False, "mps": False})
    needs = Resources(accelerators=("cuda", "rocm"))

    assert unseen.missing(needs) == []
    assert unseen.undetected(needs) == [
        "whether this machine has `cuda` cannot be detected; install `nvidia-ml-py` to detect it"
    ]


def test_one_of_several_accelerators_is_enough() -> None:
    mac = HostPlatform(platform="darwin-arm64", accelerators={"cuda": False, "rocm": False, "mps": True})

    assert mac.missing(Resources(accelerators=("cuda", "mps"))) == []
    assert mac.missing(Resources(accelerators=("cuda", "rocm"))) == [
        "it needs `cuda` or `rocm`, and this machine has only `mps`"
    ]
    assert mac.undetected(Resources(accelerators=("cuda", "mps"))) == []


def test_whatever_this_machine_is_may_be_named() -> None:
    made = parse_manifest(
        {"name": "x", "object": "m:f", "resources": {"platforms": [this_machine().platform]}}
    )

    assert isinstance(made, Manifest)
    assert made.resources.platforms == (this_machine().platform,)
    assert this_machine().platform.startswith(platform.system().lower()[:3])
