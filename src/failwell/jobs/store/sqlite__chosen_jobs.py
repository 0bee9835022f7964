"""The store for a host that runs chosen jobs only, such as a command that waits for one job."""

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager

from failwell.jobs.job import Job
from failwell.jobs.schedules__schedule import JobSchedule, ScheduleSpec
from failwell.jobs.store import hosts
from failwell.jobs.store.records import Host, Unowned, Want
from failwell.jobs.store.sqlite import SqliteJobs


class ChosenJobs(SqliteJobs):
    """Jobs of a state folder. Their host claims the chosen ones alone, and leaves schedules to hosts that run all jobs.

    Other processes see from the name of the host that they cannot rely on it for other jobs.
    """

    def __init__(self, store: SqliteJobs, chosen: Collection[str]) -> None:
        """Use an open store, which its owner closes; `chosen` are the ids of the jobs that may be claimed."""
        # The connection and its lock are those of `store`: opening another one takes longer than a claim.
        vars(self).update(vars(store))
        self._chosen = tuple(chosen)

    def hosting(self, lanes: int) -> AbstractContextManager[Host]:
        return hosts.HostLease(self._database, self.folder, lanes, self._clock, serves_all=False)

    def unowned(self) -> Unowned:
        return self._database.read(hosts.chosen_unowned, self._chosen)

    def unowned_jobs(self, most: int | None = None, instance: str | None = None) -> list[Job]:
        jobs = self._open_jobs(self._database.read(hosts.chosen_jobs, self._chosen))
        return [job for job in jobs if instance in (None, job.request.instance)][:most]

    def claim(self, host: int, wants: Mapping[str, Want], most: int, now: float) -> list[tuple[Job, float]]:  # noqa: ARG002  (few are chosen, and all of them are wanted)
        return self._claimed(self._database.write(hosts.claim_chosen, host, self._chosen, wants, now))

    def schedules(self) -> list[JobSchedule]:
        return []

    def put_schedules(
        self, specs: Mapping[str, ScheduleSpec], source: str, now: float, *, only: bool = False
    ) -> None:
        """Store nothing: the next host that runs all jobs does."""
