"""Registers the capabilities of a file: a manifest, or a Python module with `@capability`.

The code is imported once, in a process of its own, so that processes that only submit know what it takes.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.errors.fault import Fault
from failwell.errors.faults import CapabilityInputError
from failwell.errors.report import TracebackPolicy, default_policy
from failwell.jobs.capabilities import CapabilityRegistry, Replacing
from failwell.jobs.faults import WorkerStartFailed
from failwell.jobs.manifest import Manifest
from failwell.jobs.workers.startup import inspect_capability


class Registration(NamedTuple):
    """A capability that was registered."""

    manifest: Manifest
    problem: Fault | None = None
    """Why its code could not be imported, so that only its worker checks arguments."""


async def register_file(
    registry: CapabilityRegistry, file: str | os.PathLike[str], *, replace: Replacing = False
) -> list[Registration]:
    """Register the capability of a manifest, or every function and class with `@capability` of a Python file.

    Raises:
        CapabilityConfigError: a manifest is not valid.
        CapabilityInputError: a capability of that name is already registered, or the Python file has none.
        WorkerStartFailed: the Python file cannot be imported.
    """
    if Path(file).suffix == ".py":
        return await _register_module(registry, Path(file), replace=replace)
    manifest = registry.add(file, replace=replace)
    try:
        about = await _inspect(registry, manifest)
    except Fault as fault:
        return [Registration(manifest, fault)]
    registry.set_parameters(manifest.name, about)
    return [Registration(manifest)]


async def _register_module(
    registry: CapabilityRegistry, file: Path, *, replace: Replacing
) -> list[Registration]:
    module, folder = _module_of(file)
    whole = Manifest(name=file.stem[:64], object=f"{module}:*", path=(".",), directory=str(folder))
    top = module.partition(".")[0]
    try:
        reports: list[dict[str, Any]] = (await _inspect(registry, whole))["capabilities"]
    except WorkerStartFailed as error:
        if top in sys.stdlib_module_names:
            raise _shadowed(file, top) from error
        raise
    if not reports and top in sys.stdlib_module_names:
        raise _shadowed(file, top)
    if not reports:
        raise CapabilityInputError(
            f"{file} has no capability",
            fields_invalid=["file"],
            user_action=UserAction(
                ActionKind.CHANGE_INPUT,
                "put `@capability` from `failwell.capability` above a function or a class in it",
            ),
        )
    registrations: list[Registration] = []
    for report in reports:
        source = f"`@capability` of `{report['attribute']}` in {file}"
        manifest = registry.add_values(_values(report), str(folder), source=source, replace=replace)
        registry.set_parameters(manifest.name, report)
        registrations.append(Registration(manifest))
    return registrations


def _values(report: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of a capability in a module: what its decorator says, and its name."""
    marks = {key: value for key, value in report["marks"].items() if value not in ("", None)}
    return {"name": report["attribute"].lower(), "object": report["object"], **marks}


def _module_of(file: Path) -> tuple[str, Path]:
    """The name of the module in a file, and the folder that it is imported from.

    Raises:
        CapabilityInputError: there is no such file, or its name cannot be imported.
    """
    path = file.resolve()
    names = [path.stem]
    folder = path.parent
    while (folder / "__init__.py").exists():
        names.insert(0, folder.name)
        folder = folder.parent
    if not path.is_file():
        raise CapabilityInputError(f"there is no file {file}", fields_invalid=["file"])
    if not all(name.isidentifier() for name in names):
        raise CapabilityInputError(
            f"{file} cannot be imported, because its name is not a Python name", fields_invalid=["file"]
        )
    return ".".join(names), folder


def _shadowed(file: Path, top: str) -> CapabilityInputError:
    """The fault for a file that a module of Python hides: the worker had that one imported already."""
    return CapabilityInputError(
        f"{file} cannot be imported, because Python has a module `{top}` of its own; rename the file or its folder",
        fields_invalid=["file"],
    )


async def _inspect(registry: CapabilityRegistry, manifest: Manifest) -> dict[str, Any]:
    # Nothing is recorded, and the author of the file asks why: messages are shown unless the operator withholds them.
    policy = default_policy(unset=TracebackPolicy.FULL)
    secrets = registry.secrets(manifest.name)
    return await inspect_capability(manifest, host=os.environ, secrets=secrets, policy=policy)
