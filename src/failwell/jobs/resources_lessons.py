"""What calls were seen to need: the peaks of those that ended well, for each instance and configuration."""

from collections.abc import Callable, Iterable

from failwell.jobs.ledger import DISK, RAM
from failwell.jobs.resources_disk import Written, since
from failwell.jobs.station import Station
from failwell.jobs.store import Profile

FORGET = 0.05
"""How far a learned peak moves towards a lower sample: a single outlier is not remembered for ever."""

_EVERY = 32
"""Samples after which the store is told, once there are many and nothing grows."""


class Peak:
    """What the calls in one worker used at most since the first of them began."""

    __slots__ = ("config", "disk", "disk_before", "gpu", "ram", "written_before")

    def __init__(self, config: str, disk_before: float | None, written_before: Written | None) -> None:
        self.config: str | None = config
        """The configuration that they began with; `None` where they did not all begin with the same one."""
        self.ram = 0.0
        self.gpu = 0.0
        self.disk = 0.0
        self.disk_before = disk_before
        """Free space when it began, where it runs alone: among jobs, it is to blame for what goes."""
        self.written_before = written_before
        """What its processes had written by then. Other programs may fill the disk meanwhile, so it is not
        to blame for more than it wrote."""

    def blame(self, now: Written | None) -> None:
        """Its processes have written so much by now; what else has gone was taken by somebody else."""
        own = since(self.written_before, now)
        if own is not None:
            self.disk = min(self.disk, own)


class Lessons:
    """Everything that was learned, here and by those who ran this store's jobs before."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._profiles: dict[tuple[str, str], Profile] = {}
        self.untold: dict[tuple[str, str], Profile] = {}
        """Profiles that the store has not been told of."""

    def load(self, profiles: Iterable[Profile]) -> None:
        """Take what was learned before."""
        self._profiles = {(one.instance, one.config): one for one in profiles}

    def profile(self, station: Station) -> Profile | None:
        """What is known of an instance with its present configuration; `None` until one call ended well."""
        found = self._profiles.get((station.instance, station.config))
        return None if found is None or not found.successes else found

    def peaks(self, station: Station, card: str) -> dict[str, float]:
        """What it will need, by pool; `card` is that of its GPU."""
        found = self.profile(station)
        if found is None:
            return {}
        return {card: found.gpu_mb, RAM: found.ram_mb, DISK: found.disk_mb}

    def learn(self, station: Station, peak: Peak, seconds: float, *, well: bool) -> None:
        """Take in what one call needed; from a failed one only that it was tried.

        A call that began with another configuration shows nothing of what this one needs, and not much of
        what the other did.
        """
        if peak.config != station.config:
            return
        key = (station.instance, station.config)
        old = self._profiles.get(key)
        made = Profile(instance=station.instance, config=station.config) if old is None else old
        count = made.successes + well
        grows = well and (peak.gpu > made.gpu_mb or peak.ram > made.ram_mb or peak.disk > made.disk_mb)
        made = Profile(
            instance=made.instance,
            config=made.config,
            samples=made.samples + 1,
            successes=count,
            # Only what ended well shows how much is enough.
            gpu_mb=_towards(made.gpu_mb, peak.gpu) if well else made.gpu_mb,
            ram_mb=_towards(made.ram_mb, peak.ram) if well else made.ram_mb,
            disk_mb=_towards(made.disk_mb, peak.disk)
            if well and peak.disk_before is not None
            else made.disk_mb,
            seconds=made.seconds + (seconds - made.seconds) / count if well else made.seconds,
            updated=self._now(),
        )
        self._profiles[key] = made
        if grows or made.samples < _EVERY or made.samples % _EVERY == 0:
            self.untold[key] = made


def _towards(old: float, sample: float) -> float:
    return sample if sample >= old else old - (old - sample) * FORGET
