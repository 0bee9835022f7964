"""What `failwell workers run` says while it runs: who it is, what cannot run and why, and how it ended."""

import os
from argparse import Namespace
from collections import Counter
from typing import TYPE_CHECKING

from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.output import print_aside

if TYPE_CHECKING:
    from failwell.jobs.queue.entry import Entry
    from failwell.jobs.runtime import Runtime

_LOOK_EVERY = 1.0
"""Seconds after which it looks even though nothing was told."""
_SHOWN = 8


class Shift:
    """One process's time as the host of a store's jobs."""

    def __init__(self, args: Namespace, lanes: int) -> None:
        self._args = args
        self._lanes = lanes
        self._stuck: dict[str, int] = {}
        """Instance → jobs that were left because it cannot run."""
        self._told: set[str] = set()
        self._words: dict[str, str] = {}

    async def work(self, jobs: "Runtime") -> None:
        """Run jobs; with `--until-empty`, until none is left that can run."""
        import asyncio

        self._greet(jobs)
        with jobs.events(live=False) as events:
            while True:
                stuck = self._look(jobs)
                if self._args.until_empty and len(stuck) == len(jobs.queue.live):
                    self._stuck = Counter(entry.request.instance for entry in stuck)
                    return
                try:
                    async with asyncio.timeout(_LOOK_EVERY):
                        await anext(events)
                except TimeoutError:
                    continue

    def print_end(self) -> Exit:
        """Say what was left, if anything was, and how to go on with it."""
        if not self._stuck:
            return Exit.DONE
        number = sum(self._stuck.values())
        jobs = "1 job is" if number == 1 else f"{number:,} jobs are"
        whose = "; ".join(f"{self._words[one]} ({many:,})" for one, many in sorted(self._stuck.items()))
        print_aside(self._args, f"{jobs} left, and none of them can run: {whose}")
        return Exit.WAITING

    def _greet(self, jobs: "Runtime") -> None:
        shelf = jobs.registry
        names = shelf.names()
        shown = [name if shelf.is_enabled(name) else f"{name} (disabled)" for name in names[:_SHOWN]]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        able = ", ".join(shown) + more if names else "none; `failwell capabilities add FILE` registers one"
        end = "once no job is left" if self._args.until_empty else "with Ctrl-C"
        print_aside(
            self._args,
            f"process {os.getpid()} runs the jobs of {shelf.folder}, {self._lanes} at a time; it ends {end}\n"
            f"capabilities: {able}",
        )

    def _look(self, jobs: "Runtime") -> "list[Entry]":
        """The jobs that cannot run as things are; each instance that is to blame is told once."""
        stuck: list[Entry] = []
        able: dict[str, bool] = {}
        for entry in jobs.queue.live.values():
            instance = entry.request.instance
            if instance not in able:
                able[instance] = self._can_run(jobs, instance)
            if not able[instance] and entry.state.value != "running":
                stuck.append(entry)
        return stuck

    def _can_run(self, jobs: "Runtime", instance: str) -> bool:
        station = jobs.queue.station(instance)
        if station is not None and station.is_enabled:
            self._told.discard(instance)
            return True
        if station is None:
            words = f"`{instance}` is not registered; `failwell capabilities add FILE` registers it"
        else:
            words = f"`{instance}` is disabled; `failwell capabilities enable {instance}` lets it work"
        self._words[instance] = words
        if instance not in self._told:
            self._told.add(instance)
            print_aside(self._args, f"jobs wait that cannot run: {words}")
        return False
