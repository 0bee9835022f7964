"""A capability's manifest: its code, its interpreter, its environment and its needs.

`manifest_file` reads one from TOML; `manifest_of` creates one for a class or a function.
"""

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal

from failwell.errors.faults import CapabilityInputError
from failwell.errors.frozen import frozen
from failwell.errors.report import TracebackPolicy
from failwell.jobs.platform import Resources
from failwell.jobs.rate_limit import RateLimit, rate_limit_of
from failwell.jobs.schedule_spec import ScheduleSpec

Schema = Mapping[str, Any]
"""A JSON Schema, of the part of the language that `failwell.jobs.settings_schema` supports."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@frozen
class Variable:
    """One environment variable of the worker."""

    name: str
    value: str | None = None
    secret: bool = False
    """Its value comes from the secrets of the capability, and is masked in errors, progress and output. Arguments
    and results of jobs are stored unmasked."""
    required: bool = False


@frozen
class Manifest:
    """One capability: what to run, with which interpreter, and what it needs."""

    name: str
    """1–64 letters, digits, `_` and `-`."""
    object: str
    """`module:attribute`."""
    python: str = sys.executable
    """The interpreter's path."""
    path: tuple[str, ...] = ()
    version: str = ""
    description: str = ""
    env: tuple[Variable, ...] = ()
    inherit: tuple[str, ...] = ()
    """Further variables of the host, as shell patterns, beside those that every worker gets."""
    resources: Resources = field(default_factory=Resources)
    config: Schema | None = None
    """Schema of the configuration. Without it, the schema of the code is used."""
    defaults: Mapping[str, Any] | None = None
    config_strict: bool = True
    """Whether unknown keys of a configuration are refused. If not, they are dropped with an
    `UnknownConfigWarning`."""
    memory_limit: float | None = None
    """The most main memory that its worker may use, with everything that it starts, in megabytes."""
    timeout: float | Literal["none"] | None = None
    """Seconds that one attempt at a job may run, where the job itself does not say; `"none"` for no limit."""
    schedule: tuple[ScheduleSpec, ...] = ()
    """When its jobs are submitted again and again."""
    rate_limit: str | None = None
    """How often its jobs may start, over all its instances and hosts: `5/s`, `10/min`, `100/h`, `1000/d`."""
    rate_burst: int = 1
    """How many of them may start at once after a pause."""
    concurrency: int = 1
    """How many calls one process runs at a time."""
    stall_after: float = 60.0
    """Seconds without a sign of progress after which a starting worker is killed."""
    cancel_grace: float = 3.0
    """Seconds that a cancelled call has to stop before its process is killed."""
    stop_grace: float = 5.0
    """Seconds that `cleanup` has before the process is killed."""
    traceback: TracebackPolicy | None = None
    """How much foreign text the reports of its failures keep, where `FAILWELL_TRACEBACK` is not set."""
    directory: str = "."
    """The folder that relative paths of the manifest start at."""
    parameters: Mapping[str, Schema] | None = None
    """Action → schema of its arguments, as the code says. Without it, the worker alone checks arguments."""

    def __post_init__(self) -> None:
        if self.memory_limit is not None and not self.memory_limit > 0:
            raise CapabilityInputError(
                "`memory_limit` must be a number of megabytes above 0", fields_invalid=["memory_limit"]
            )
        if self.timeout not in (None, "none") and not self.timeout > 0:
            raise CapabilityInputError(
                '`timeout` must be a number of seconds above 0, or "none"', fields_invalid=["timeout"]
            )
        if self.rate_limit is not None:
            try:
                rate_limit_of(self.rate_limit)
            except ValueError as error:
                raise CapabilityInputError(f"`rate_limit`: {error}", fields_invalid=["rate_limit"]) from None
        if self.rate_burst < 1:
            raise CapabilityInputError("`rate_burst` must be at least 1", fields_invalid=["rate_burst"])
        if self.traceback is not None and self.traceback not in list(TracebackPolicy):
            raise CapabilityInputError(
                f"`traceback` must be one of {', '.join(TracebackPolicy)}", fields_invalid=["traceback"]
            )


def rate_limit_in(manifest: Manifest) -> RateLimit | None:
    """The rate limit of a capability, if it has one."""
    return None if manifest.rate_limit is None else rate_limit_of(manifest.rate_limit, manifest.rate_burst)


def is_valid_name(name: str) -> bool:
    """Whether a capability or an instance may have this name."""
    return _NAME.fullmatch(name) is not None


def check_instance(instance: str) -> str:
    """Return `instance` if it is a valid id of an instance.

    Raises:
        CapabilityInputError: it is not valid.
    """
    if not is_valid_name(instance):
        raise CapabilityInputError(
            f"{instance[:80]!r} cannot be an instance's id: use 1 to 64 letters, digits, `_` and `-`",
            fields_invalid=["instance"],
        )
    return instance


def new_instance(name: str) -> str:
    """An id for another instance of a capability. It is for one run only, and nothing is stored for it."""
    return check_instance(f"{name[:57]}-{os.urandom(3).hex()}")


_BRIEF = re.compile(r".+-[0-9a-f]{6}")


def is_temporary(name: str, instance: str) -> bool:
    """Whether `instance` is an id that `new_instance` generated."""
    return instance != name and instance.startswith(name[:57]) and _BRIEF.fullmatch(instance) is not None


def capability_name(what: type | Callable[..., Any]) -> str:
    """The name of a class or a function as a capability: that of `@capability(name=…)`, or its own in lower case."""
    marks: dict[str, str] = getattr(what, "__failwell__", {})
    return marks.get("name") or what.__qualname__.rpartition(".")[2].lower()


def manifest_of(what: type | Callable[..., Any], **fields: Any) -> Manifest:
    """The manifest of a class or a function, which a worker imports with the same interpreter.

    Raises:
        CapabilityInputError: a worker could not import it.
    """
    module, name = what.__module__, what.__qualname__
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if file is None or "<" in name:
        raise CapabilityInputError(
            f"`{name}` cannot be imported by a worker: put it at the top of a module in a file",
            fields_invalid=["what"],
        )
    path = Path(file).resolve()
    if module == "__main__":
        spec = getattr(loaded, "__spec__", None)
        module = path.stem if spec is None else spec.name
    place = path.parents[module.count(".") + (path.stem == "__init__")]
    marks: dict[str, Any] = dict(getattr(what, "__failwell__", {}))
    values: dict[str, Any] = {
        "name": capability_name(what),
        "version": marks.pop("version", ""),
        "object": f"{module}:{name}",
    }
    marks.pop("name", None)
    manifest = Manifest(**values, path=(str(place),))
    if marks:
        from failwell.jobs.manifest_file import parse_manifest

        shown = f"`@capability` of `{name}`"
        manifest = parse_manifest({**marks, **values, "path": [str(place)]}, shown=shown)
    if not isinstance(what, type):
        from failwell.jobs.worker_process.types.signature import Signature

        manifest = replace(manifest, parameters={"execute": Signature(what).schema()})
    return replace(manifest, **fields)
