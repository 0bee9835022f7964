"""Looking at a capability without using it: imported in its own environment, asked, and ended."""

import os
from collections.abc import Mapping
from typing import Any

from failwell.jobs.environment import worker_environment
from failwell.jobs.manifest import Manifest
from failwell.jobs.process import Process
from failwell.jobs.schema import config_hash
from failwell.jobs.startup import Startup
from failwell.report.policy import TracebackPolicy


async def look(manifest: Manifest, *, host: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, Any]:
    """What the capability says of itself: name, version, schema, actions, hooks. It is not initialised.

    Raises:
        Fault: it cannot be imported, or its environment is not complete. No process is left.
    """
    env = worker_environment(manifest, host, secrets)
    begun: list[Startup] = []

    def heard(frame: dict[str, Any]) -> None:
        if frame["type"] in ("hello", "loaded"):
            begun[0].heard(frame)
        elif frame["type"] != "pulse":
            begun[0].sign()

    process = Process(heard, lambda _stream, _line: begun[0].sign())
    startup = Startup(manifest, process, TracebackPolicy.FULL)
    begun.append(startup)
    try:
        await startup.spawn(env)
        return await startup.load(load_frame(manifest, pulse=0.25, policy=TracebackPolicy.FULL, folder=None))
    finally:
        startup.close()
        if process.is_started:
            process.kill("looked")
            await process.gone()


def load_frame(
    manifest: Manifest, *, pulse: float, policy: TracebackPolicy, folder: str | None
) -> dict[str, Any]:
    """What a worker is told first."""
    return {
        "type": "load",
        "name": manifest.name,
        "object": manifest.object,
        "path": [os.path.normpath(os.path.join(manifest.directory, one)) for one in manifest.path],
        "lanes": manifest.concurrency,
        "pulse": pulse,
        "policy": policy.value,
        "folder": folder,
    }


def drift(manifest: Manifest, about: Mapping[str, Any]) -> list[str]:
    """Where the manifest and the code say different things, in words."""
    found: list[str] = []
    version = about.get("version")
    if manifest.version and version and manifest.version != version:
        found.append(f"the manifest says version {manifest.version}, the code {version}")
    schema = about.get("schema")
    if manifest.config is not None and schema and config_hash(manifest.config) != config_hash(schema):
        found.append("the manifest's configuration schema is not the code's; the manifest's is used")
    return found
