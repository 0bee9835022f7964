"""A capability's manifest: what it is, which interpreter runs it, what it may see and what it needs.

Written as TOML by a person:

    name = "transcribe"
    object = "transcriber:Transcriber"      # a class, a function or an instance in that module
    python = "/opt/asr/bin/python"          # or: venv = "/opt/asr"; left out, the host's own interpreter
    path = ["."]                            # added to the module path, relative to this file

    [env]
    MODEL_DIR = "/models"

    [resources]
    gpu = true
    accelerators = ["cuda"]

    [config.properties.model]
    type = "string"
    enum = ["small", "large"]

Every mistake in a manifest is named at once, in one error.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from failwell.fault.frozen import frozen

Schema = Mapping[str, Any]
"""A JSON Schema, of the part of that language that `failwell.jobs.schema` understands."""


@frozen
class Resources:
    """Yes-or-no facts. Amounts are measured, never declared."""

    gpu: bool = False
    accelerators: tuple[str, ...] = ()
    """Such as `cuda`, `mps`, `rocm`; empty means any."""
    platforms: tuple[str, ...] = ()
    """Such as `linux-x64`, `darwin-arm64`; empty means any."""


@frozen
class Variable:
    """One environment variable that the worker is given."""

    name: str
    value: str | None = None
    secret: bool = False
    """Its value comes from the secrets of this capability and is masked wherever it would be recorded."""
    required: bool = False


@frozen
class Manifest:
    """One capability as it was registered. Immutable; see `failwell.jobs.shelf` for where they are kept."""

    name: str
    """1–64 letters, digits, `_` and `-`."""
    object: str
    """`module:attribute`."""
    python: str
    """The interpreter's path."""
    path: tuple[str, ...] = ()
    version: str = ""
    description: str = ""
    env: tuple[Variable, ...] = ()
    inherit: tuple[str, ...] = ()
    """Further variables of the host, as shell patterns, beside the few every worker gets."""
    resources: Resources = field(default_factory=Resources)
    config: Schema | None = None
    """Schema of the configuration. Left out, the capability's own is asked for when it is loaded."""
    defaults: Mapping[str, Any] | None = None
    concurrency: int = 1
    """How many calls one process takes at a time."""
    stall_after: float = 60.0
    """Seconds without a sign of progress after which a starting worker is given up."""
    cancel_grace: float = 3.0
    """Seconds a call has to stop after it was asked to."""
    stop_grace: float = 5.0
    """Seconds `cleanup` has before the process is ended."""
    directory: str = "."
    """Where the manifest lies; relative paths in it start there."""
