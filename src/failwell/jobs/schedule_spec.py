"""A schedule: what is submitted, at which times of a cron expression, and what happens to times that were missed."""

from collections.abc import Mapping
from dataclasses import field, fields
from datetime import UTC, datetime
from typing import Any

from failwell.errors.frozen import frozen
from failwell.errors.missing_extra import need

SKIP, ONCE, ALL = "skip", "once", "all"
MISSED = (SKIP, ONCE, ALL)
"""What happens to times that passed while no host ran."""
ON_TIME = 60.0
"""Seconds after which a time counts as missed."""
MOST_MISSED = 100


@frozen
class ScheduleSpec:
    """What a manifest or a client says about a schedule."""

    name: str
    """Unique within its capability."""
    cron: str
    """Five fields: minute, hour, day of the month, month, day of the week."""
    timezone: str = "UTC"
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    action: str = "execute"
    priority: int = 0
    missed: str = ONCE
    """What happens to times that passed while no host ran: `skip` them, submit `once` for all of them, or `all`."""
    most_missed: int = MOST_MISSED
    """With `all`: how many of them at most, the latest."""


@frozen
class JobSchedule:
    """A stored schedule."""

    id: str
    """`CAPABILITY/NAME`."""
    spec: ScheduleSpec
    source: str
    is_paused: bool
    handled: float
    """Every time up to this one was handled."""
    last_at: float | None = None
    """The latest time for which a job was submitted."""
    last_job: str | None = None

    @property
    def instance(self) -> str:
        """The capability or instance whose jobs it submits."""
        return self.id.partition("/")[0]

    def next_at(self, now: float) -> float | None:
        """The next time; `None` if it is paused, or never comes."""
        return None if self.is_paused else next_time(self.spec, now)


def spec_to_dict(spec: ScheduleSpec) -> dict[str, Any]:
    """The spec as JSON."""
    return {part.name: getattr(spec, part.name) for part in fields(spec)}


def spec_of(values: Mapping[str, Any]) -> ScheduleSpec:
    """The spec that `spec_to_dict` wrote; keys of a newer version are left out."""
    known = {part.name for part in fields(ScheduleSpec)}
    return ScheduleSpec(**{name: value for name, value in values.items() if name in known})


def cron_mistake(cron: str) -> str | None:
    """Why a cron expression is not valid; `None` if it is."""
    need("cronsim", "engine")
    from cronsim import CronSim, CronSimError

    try:
        next(CronSim(cron, datetime.now(UTC)))
    except CronSimError as error:
        reason = str(error)
        return (
            f"{reason[:1].lower()}{reason[1:]}; the fields are minute, hour, day, month and day of the week"
        )
    except StopIteration:
        return "it has no time within the next fifty years"
    return None


def timezone_mistake(name: str) -> str | None:
    """Why a time zone is not valid; `None` if it is."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return (
            f"`{name}` is no time zone of this machine; write one such as `Europe/Berlin` or `UTC`, or install the"
            " package `tzdata` if the machine has no list of them"
        )
    return None


def next_time(spec: ScheduleSpec, now: float) -> float | None:
    """The first time after `now`; `None` if none comes."""
    from cronsim import CronSim

    try:
        return next(CronSim(spec.cron, _local(spec, now))).timestamp()
    except StopIteration:
        return None


def due_times(spec: ScheduleSpec, handled: float, now: float) -> tuple[list[float], float]:
    """The times after `handled` for which a job is submitted now, oldest first, and up to when all are handled then."""
    from cronsim import CronSim

    most = spec.most_missed if spec.missed == ALL else 1
    times: list[float] = []
    # Backwards, so that a year without a host costs no more than a day. From the next minute on, because the current
    # one counts.
    for time in CronSim(spec.cron, _local(spec, now + 61.0), reverse=True):
        at = time.timestamp()
        if at <= handled or len(times) == most:
            break
        if at <= now:
            times.append(at)
    if not times:
        return [], handled
    newest = times[0]
    if spec.missed == SKIP and now - newest > ON_TIME:
        return [], newest
    return times[::-1], newest


def _local(spec: ScheduleSpec, at: float) -> datetime:
    from zoneinfo import ZoneInfo

    return datetime.fromtimestamp(at, ZoneInfo(spec.timezone))
