"""The platform of this machine, and whether a capability can run on it.

A capability is refused only for what is known to be missing. An accelerator that cannot be detected is not
refused, and `capabilities check` warns about it.
"""

import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.errors.faults import CapabilityFatalError
from failwell.errors.frozen import frozen
from failwell.files.suggestions import not_one_of
from failwell.jobs.faults import invalid_config

if TYPE_CHECKING:
    from failwell.jobs.manifest import Manifest

ACCELERATORS = {
    "cuda": "an NVIDIA card with its driver",
    "rocm": "an AMD card with its driver, on Linux",
    "mps": "the GPU of a Mac with its own processor",
}
"""Accelerator → what it is."""
_SYSTEMS = {"linux": "linux", "darwin": "darwin", "windows": "win"}
_MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
PLATFORMS = tuple(f"{system}-{machine}" for system in _SYSTEMS.values() for machine in ("x64", "arm64"))


@frozen
class Resources:
    """What a capability needs of the machine. Amounts are measured."""

    gpu: bool = False
    accelerators: tuple[str, ...] = ()
    """The accelerators that it can use, of which one is enough; empty means any."""
    platforms: tuple[str, ...] = ()
    """The platforms that it can run on, such as `linux-x64` or `darwin-arm64`; empty means any."""


def platform_name(system: str, machine: str) -> str:
    """The short name of a platform in a manifest, such as `linux-x64`; unknown processors keep their own name."""
    processor = machine.lower()
    return f"{_SYSTEMS.get(system.lower(), system.lower())}-{_MACHINES.get(processor, processor)}"


def resource_mistakes(needs: Resources) -> list[tuple[str, str]]:
    """Every unknown name of an accelerator or a platform, with its place and a message."""
    # The platform of this machine is always allowed, however rare it is.
    platforms = dict.fromkeys((*PLATFORMS, platform_name(platform.system(), platform.machine())))
    fields = (
        ("resources.accelerators", needs.accelerators, ACCELERATORS),
        ("resources.platforms", needs.platforms, platforms),
    )
    return [
        (key, not_one_of(name, allowed))
        for key, names, allowed in fields
        for name in names
        if name not in allowed
    ]


_NVIDIA = ("nvidia[0-9]*", "nvhost-gpu", "dxg")
"""Device files of NVIDIA's driver: on servers, on boards, and in WSL."""


class UnsupportedPlatform(CapabilityFatalError, kind="tool.unavailable"):
    """The capability cannot run on this machine."""

    capability_name: str = ""
    missing: tuple[str, ...] = ()


@frozen
class HostPlatform:
    """The platform and the accelerators of a machine, as a capability may require them."""

    platform: str
    accelerators: Mapping[str, bool | None]
    """Whether each is present; `None` if that cannot be detected."""

    def missing(self, needs: Resources) -> list[str]:
        """Why the capability cannot run, as messages; empty if it can."""
        reasons: list[str] = []
        if needs.platforms and self.platform not in needs.platforms:
            reasons.append(f"it runs on {_listed(needs.platforms)}, and this machine is `{self.platform}`")
        detected = [self.accelerators.get(name, False) for name in needs.accelerators]
        if detected and not any(state is not False for state in detected):
            there = [name for name, is_there in self.accelerators.items() if is_there]
            has = f"only {_listed(there, 'and')}" if there else "no accelerator"
            reasons.append(f"it needs {_listed(needs.accelerators)}, and this machine has {has}")
        return reasons

    def undetected(self, needs: Resources) -> list[str]:
        """Messages for the accelerators that it needs and that cannot be detected here."""
        if any(self.accelerators.get(name) for name in needs.accelerators):
            return []
        return [
            f"whether this machine has `{name}` cannot be detected; install `nvidia-ml-py` to detect it"
            for name in needs.accelerators
            if self.accelerators.get(name, False) is None
        ]


@cache
def this_machine() -> HostPlatform:
    """This machine as a capability may require it, examined once."""
    return machine_of(platform.system(), platform.machine(), Path("/dev"))


def machine_of(system: str, machine: str, devices: Path) -> HostPlatform:
    """The machine with this system and processor; `devices` is the folder of device files on Linux."""
    name = platform_name(system, machine)
    is_linux = system.lower() == "linux"
    return HostPlatform(
        platform=name,
        accelerators={
            "cuda": _has_cuda(system.lower(), devices),
            "rocm": is_linux and (devices / "kfd").exists(),
            "mps": name == "darwin-arm64",
        },
    )


def check_platform(manifest: "Manifest") -> None:
    """Refuse a capability that cannot run on this machine.

    Raises:
        CapabilityConfigError: its manifest names an unknown accelerator or platform.
        UnsupportedPlatform: this machine does not have what it needs.
    """
    needs = manifest.resources
    if not needs.platforms and not needs.accelerators:
        return
    mistakes = resource_mistakes(needs)
    if mistakes:
        raise invalid_config(f"the manifest of {manifest.name!r} is not valid", mistakes)
    missing = this_machine().missing(needs)
    if missing:
        raise UnsupportedPlatform(
            message=f"capability {manifest.name!r} cannot run here: {'; '.join(missing)}",
            capability_name=manifest.name,
            missing=tuple(missing),
            user_action=UserAction(
                ActionKind.FIX_CONFIGURATION,
                "run it on a machine that has it, or correct `[resources]` in its manifest",
            ),
        )


def _has_cuda(system: str, devices: Path) -> bool | None:
    if system == "darwin":
        return False
    if system == "linux" and any(any(devices.glob(pattern)) for pattern in _NVIDIA):
        return True
    from failwell.jobs.memory.gpu import Gpus

    gpus = Gpus()
    try:
        can_look = gpus.can_look()
        pools, _processes = gpus.read()
    finally:
        gpus.close()
    if pools:
        return True
    # On Linux a driver without device files is not loaded. Other systems have no such files.
    return False if system == "linux" or can_look else None


def _listed(names: "tuple[str, ...] | list[str]", word: str = "or") -> str:
    return f" {word} ".join(f"`{name}`" for name in names)
