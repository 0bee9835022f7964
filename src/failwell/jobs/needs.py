"""What a capability asks of the machine that it runs on, in words that mean something."""

import platform

from failwell.fault.frozen import frozen
from failwell.jobs.manifest_keys import not_one_of

ACCELERATORS = {
    "cuda": "an NVIDIA card with its driver",
    "rocm": "an AMD card with its driver, on Linux",
    "mps": "the GPU of a Mac with its own processor",
}
"""What may be asked for, and what that is."""
_SYSTEMS = {"linux": "linux", "darwin": "darwin", "windows": "win"}
_MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
PLATFORMS = tuple(f"{system}-{machine}" for system in _SYSTEMS.values() for machine in ("x64", "arm64"))


@frozen
class Resources:
    """Yes-or-no facts. Amounts are measured, never declared."""

    gpu: bool = False
    accelerators: tuple[str, ...] = ()
    """Those of `ACCELERATORS` that it can work on, of which one is enough; empty means any."""
    platforms: tuple[str, ...] = ()
    """Such as `linux-x64`, `darwin-arm64`, of which it has to be one; empty means any."""


def platform_name(system: str, machine: str) -> str:
    """Such as `linux-x64`; a machine that has no shorter name is called what it calls itself."""
    told = machine.lower()
    return f"{_SYSTEMS.get(system.lower(), system.lower())}-{_MACHINES.get(told, told)}"


def wrong_needs(needs: Resources) -> list[tuple[str, str]]:
    """Every name of an accelerator or a platform that means nothing, and what is wrong with it."""
    # Whatever this machine is may be named, however rare it is.
    platforms = dict.fromkeys((*PLATFORMS, platform_name(platform.system(), platform.machine())))
    wanted = (
        ("resources.accelerators", needs.accelerators, ACCELERATORS),
        ("resources.platforms", needs.platforms, platforms),
    )
    return [
        (key, not_one_of(name, known)) for key, names, known in wanted for name in names if name not in known
    ]
