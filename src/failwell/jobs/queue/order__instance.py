"""One instance within a queue: its worker, whether it takes work, and which jobs it has."""

import asyncio
import os
from collections.abc import Mapping
from typing import Any

from failwell.jobs.arguments import ArgumentCheck
from failwell.jobs.manifest import Manifest, rate_limit_in
from failwell.jobs.queue.entry import Entry
from failwell.jobs.settings__config_schema import config_hash
from failwell.jobs.workers.protocol import Worker


class Instance:
    """An instance of a capability, with its worker and its jobs."""

    def __init__(
        self,
        manifest: Manifest,
        worker: Worker,
        config: Mapping[str, Any],
        *,
        is_enabled: bool = True,
        host: Mapping[str, str] = os.environ,
    ) -> None:
        """Create it; `host` is the environment of which its worker sees a part."""
        self.manifest = manifest
        self.worker = worker
        self.id = worker.instance
        self.is_enabled = is_enabled
        self.rate_limit = rate_limit_in(manifest)
        """How often its jobs may start. It follows the manifest while the host runs."""
        self.arguments = ArgumentCheck(manifest.name, manifest.parameters)
        """The check of the arguments of its jobs; a started worker says what they are."""
        self.configure(config)
        self.entries: dict[str, Entry] = {}
        """Its running jobs."""
        self.hook_is_due = False
        """Whether the disable hook waits for the last of them to end."""
        self.is_being_freed = False
        """Whether its memory is being freed; nothing is started meanwhile."""
        self.is_draining = False
        """Whether its process is replaced before the next job; running jobs finish first."""
        self.is_leaving = False
        """Whether it is being unloaded; no jobs are accepted or started for it."""
        self._emptied: asyncio.Event | None = None
        self.card = _card(manifest, host)
        """The first GPU that its worker may see, as its environment names it."""

    def configure(self, config: Mapping[str, Any]) -> None:
        """Set another configuration; the instance is measured again."""
        self.requested_config: Mapping[str, Any] = config
        # As requested: what a worker adds is known only once it has started.
        self.config = config_hash({**(self.manifest.defaults or {}), **config})

    def leave(self, entry: Entry) -> None:
        """Remove a job."""
        self.entries.pop(entry.id, None)
        if self._emptied is not None and not self.entries:
            self._emptied.set()

    async def emptied(self) -> None:
        """Wait until it has no job."""
        while self.entries:
            if self._emptied is None or self._emptied.is_set():
                self._emptied = asyncio.Event()
            await self._emptied.wait()

    @property
    def is_closed(self) -> bool:
        """Whether nothing may be started in it for now."""
        return self.is_being_freed or self.is_draining or self.is_leaving

    @property
    def is_full(self) -> bool:
        """Whether it has as many jobs as it takes at a time."""
        return len(self.entries) >= self.manifest.concurrency

    @property
    def uses_gpu(self) -> bool:
        """Whether it says that it works on a GPU."""
        return self.manifest.resources.gpu or "cuda" in self.manifest.resources.accelerators


_VISIBLE = "CUDA_VISIBLE_DEVICES"


def _card(manifest: Manifest, host: Mapping[str, str]) -> str:
    """The GPU in the worker's environment; its manifest takes precedence over the host."""
    variables = {
        variable.name: variable.value
        for variable in manifest.env
        if not variable.secret and variable.value is not None
    }
    visible = variables.get(_VISIBLE, host.get(_VISIBLE))
    if visible is None:
        return "0"
    # An empty list, or one that begins with no GPU, hides all of them.
    return visible.partition(",")[0].strip() or "-1"
