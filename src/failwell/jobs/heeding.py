"""What somebody else changed on the shelf while a runtime is at work: switches, settings, secrets.

Only changes are heeded. What a program gave an instance itself stays until somebody changes that very thing.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from failwell.fault.capability import CapabilityConfigError
from failwell.jobs.shelf import Kept, Shelf
from failwell.jobs.station import Station
from failwell.jobs.supervisor import SupervisedWorker


class News(NamedTuple):
    """What is new for one instance; `None` where nothing is."""

    is_enabled: bool | None = None
    config: Mapping[str, Any] | None = None
    """All of its settings, with what was changed."""
    secrets: Mapping[str, str] | None = None


NOTHING_NEW = News()


class Heeding:
    """Looks at the shelf again and again, which costs two looks at a file where nothing was changed."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._stamp: object = None
        self._before = self._known = Kept({}, {})
        self.look()

    def look(self) -> bool:
        """Whether something was changed since the last look. `news` then tells what."""
        stamp = self._shelf.stamp()
        if stamp == self._stamp:
            return False
        try:
            found = self._shelf.kept()
        except CapabilityConfigError:
            # Somebody is mending it by hand; the next change of the file is the next look.
            self._stamp = stamp
            return False
        self._before, self._known, self._stamp = self._known, found, stamp
        return True

    def news(self, instance: str, capability: str, asked: Mapping[str, Any]) -> News:
        """What the last look found for an instance that was asked to run with these settings."""
        before, now = self._before.instances.get(instance, {}), self._known.instances.get(instance, {})
        was_on, is_on = (one.get("enabled", True) is not False for one in (before, now))
        old, new = before.get("config", {}), now.get("config", {})
        config = None
        if old != new:
            left = {key: value for key, value in asked.items() if key in new or key not in old}
            config = {**left, **{key: value for key, value in new.items() if old.get(key, new) != value}}
        held, hold = (one.secrets.get(capability, {}) for one in (self._before, self._known))
        return News(
            is_enabled=is_on if is_on is not was_on else None,
            config=config,
            secrets=hold if held != hold else None,
        )


async def renew(station: Station, secrets: Mapping[str, str]) -> None:
    """Have whatever is not begun yet done by a process that knows these secrets."""
    worker = station.worker
    if not isinstance(worker, SupervisedWorker) or not worker.give_secrets(secrets):
        return
    # Nothing is begun in the old process any more, and what it has it finishes.
    station.is_draining = True
    try:
        await station.emptied()
        await worker.stop()
    finally:
        station.is_draining = False
