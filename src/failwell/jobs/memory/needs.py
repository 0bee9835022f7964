"""What calls of each instance needed of memory and disk: measured while they run, learned when they end."""

from collections.abc import Callable, Iterable

from failwell.jobs.memory.machine import Written, since
from failwell.jobs.queue.order import Instance
from failwell.jobs.store.records import Profile

FORGET = 0.05
"""How far a learned peak moves towards a lower sample, so that a single outlier is forgotten in time."""

_EVERY = 32
"""Once an instance has this many samples and no peak grows, every 32nd sample is saved."""


class Peak:
    """The highest use of memory and disk in one worker while calls run in it."""

    __slots__ = ("config", "disk", "disk_before", "gpu", "ram", "written_before")

    def __init__(self, config: str, disk_before: float | None, written_before: Written | None) -> None:
        self.config: str | None = config
        """The configuration of the calls; `None` if it changed while they ran."""
        self.ram = 0.0
        self.gpu = 0.0
        self.disk = 0.0
        self.disk_before = disk_before
        """Free disk space at the start of a first run."""
        self.written_before = written_before
        """What its processes had written by then. Other jobs and programs may fill the disk as well, so its use of
        the disk is never taken to be more than what it wrote."""

    def cap_disk(self, now: Written | None) -> None:
        """Limit the use of the disk to what the processes of the worker wrote."""
        megabytes = since(self.written_before, now)
        if megabytes is not None:
            self.disk = min(self.disk, megabytes)


class Profiles:
    """The learned peaks of all instances, including those that earlier hosts of the store saved."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._profiles: dict[tuple[str, str], Profile] = {}
        self.unsaved: dict[tuple[str, str], Profile] = {}
        """Profiles that are not in the store yet."""

    def add(self, profiles: Iterable[Profile]) -> None:
        """Take in what earlier and other hosts have measured and this one has not."""
        for profile in profiles:
            known = self._profiles.get((profile.instance, profile.config))
            if known is None or (profile.successes and not known.successes):
                self._profiles[profile.instance, profile.config] = profile

    def profile(self, instance: Instance) -> Profile | None:
        """The profile of an instance with its current configuration; `None` until one call succeeded."""
        profile = self._profiles.get((instance.id, instance.config))
        return None if profile is None or not profile.successes else profile

    def highest_ram(self, instance: Instance) -> float:
        """The highest peak of main memory that was learned of an instance, with any configuration."""
        return max(
            (
                profile.ram_mb
                for (name, _), profile in self._profiles.items()
                if name == instance.id and profile.successes
            ),
            default=0.0,
        )

    def learn(self, instance: Instance, peak: Peak, seconds: float, *, well: bool) -> None:
        """Record what one call needed. A failed call only counts as a sample.

        A call that began with another configuration is ignored: it measures neither configuration.
        """
        if peak.config != instance.config:
            return
        key = (instance.id, instance.config)
        profile = self._profiles.get(key)
        if profile is None:
            profile = self._profiles[key] = Profile(instance=instance.id, config=instance.config)
        profile.samples += 1
        grows = False
        if well:
            # Only a call that succeeded shows how much is enough.
            profile.successes += 1
            gpu, ram = profile.gpu_mb, profile.ram_mb
            grows = peak.gpu > gpu or peak.ram > ram or peak.disk > profile.disk_mb
            profile.gpu_mb, profile.ram_mb = _towards(gpu, peak.gpu), _towards(ram, peak.ram)
            if peak.disk_before is not None:
                profile.disk_mb = _towards(profile.disk_mb, peak.disk)
            profile.seconds += (seconds - profile.seconds) / profile.successes
        profile.updated = self._now()
        if grows or profile.samples < _EVERY or profile.samples % _EVERY == 0:
            self.unsaved[key] = profile


def _towards(old: float, sample: float) -> float:
    return sample if sample >= old else old - (old - sample) * FORGET
