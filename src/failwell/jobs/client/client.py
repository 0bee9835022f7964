"""Submits jobs and waits for them, from any process. `async_client` is the same for event loops.

A worker host (`failwell workers run`) runs the jobs. Client and host share a store and nothing else.
"""

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

from failwell.jobs.batch import find_group
from failwell.jobs.client.connection import Connection, StoreClient, not_ended
from failwell.jobs.client.submission import Target
from failwell.jobs.job import Job, JobRequest, JobState
from failwell.jobs.schedule_spec import MOST_MISSED, ONCE, JobSchedule
from failwell.jobs.schedules import Schedules
from failwell.jobs.store.groups import JobGroup
from failwell.store.event import Event

_P = ParamSpec("_P")
_T = TypeVar("_T")


class JobHandle(Generic[_T]):
    """One submitted job. Every method asks the store, so a handle never goes stale."""

    def __init__(self, connection: Connection, job: str, target: Target) -> None:
        self.id = job
        self._connection = connection
        self._target = target

    def __repr__(self) -> str:
        return f"JobHandle({self.id!r})"

    def result(self, timeout: float | None = None) -> _T:
        """Wait until the job ends, and return its result. Without a worker host it waits for one.

        Args:
            timeout: Seconds to wait at most. The job continues after that.

        Raises:
            Fault: the job failed or was cancelled. It has the class that the capability raised if that is a
                `Fault`, and else one of `CapabilityInputError`, `CapabilityTransientError`,
                `CapabilityResourceError` and `CapabilityFatalError`.
            TimeoutError: the job did not end within `timeout` seconds.
            UnknownJob: the job does not exist.
        """
        waits = self._connection.waits
        future = waits.end_of(self.id)
        try:
            job = future.result(timeout)
        except TimeoutError:
            raise not_ended(self.id, timeout) from None
        finally:
            waits.remove(future, self.id)
        return self._target.result_of(job)

    def status(self) -> JobState:
        """The state of the job.

        Raises:
            UnknownJob: the job does not exist.
        """
        return self.record().state

    def record(self) -> Job:
        """The whole record of the job: its request, its times, its attempts and its error.

        Raises:
            UnknownJob: the job does not exist.
        """
        return self._connection.queue.find(self.id)

    def cancel(self) -> bool:
        """Cancel the job; `False` if it has ended. A running job stops a little later: `result` raises then.

        Raises:
            UnknownJob: the job does not exist.
        """
        return self._connection.queue.cancel(self.id)

    def events(self, after: int = 0) -> Iterator[Event]:
        """The stored events of the job, those with a number above `after`, until the job has ended.

        Raises:
            UnknownJob: the job does not exist.
        """
        return self._connection.queue.follow(self.id, after)


class Client(StoreClient):
    """Submits jobs to a store. It opens the store when it is first used; threads may share it, and it survives a fork.

    Example:
        with Client() as client:
            job = client.submit(resize, image="cat.png", width=200)
            print(job.result(timeout=60))
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every wait and close the store. Jobs are not affected."""
        self._connection.close()

    @overload
    def submit(
        self, what: Callable[_P, Coroutine[Any, Any, _T]], /, *args: _P.args, **arguments: _P.kwargs
    ) -> JobHandle[_T]: ...
    @overload
    def submit(self, what: Callable[_P, _T], /, *args: _P.args, **arguments: _P.kwargs) -> JobHandle[_T]: ...
    @overload
    def submit(self, what: str, /, **arguments: Any) -> JobHandle[Any]: ...
    def submit(self, what: Callable[..., Any] | str, /, *args: Any, **arguments: Any) -> JobHandle[Any]:
        """Submit a job; it is stored when this returns.

        Args:
            what: A function with `@capability`, or the name of a capability or of an instance.
            args: Positional arguments of the function.
            arguments: Keyword arguments of the call.

        Raises:
            CapabilityInputError: an argument is unknown, missing or of the wrong type. Every one is named.
            CapabilityNotLoadedError: the capability is not registered.
            CapabilityConfigError: its stored settings are not valid.
            CapabilityDisabledError: the instance is disabled.
            UnsupportedPlatform: the capability cannot run on this machine.
        """
        target = Target(what)
        job = target.submit(self._connection.queue, self.options, args, arguments)
        return JobHandle(self._connection, job.id, target)

    @overload
    def submit_many(
        self,
        what: Callable[..., Coroutine[Any, Any, _T]],
        calls: Iterable[Mapping[str, Any]],
        *,
        group: str | None = None,
        callback: Callable[..., Any] | JobRequest | str | None = None,
    ) -> list[JobHandle[_T]]: ...
    @overload
    def submit_many(
        self,
        what: Callable[..., _T],
        calls: Iterable[Mapping[str, Any]],
        *,
        group: str | None = None,
        callback: Callable[..., Any] | JobRequest | str | None = None,
    ) -> list[JobHandle[_T]]: ...
    @overload
    def submit_many(
        self,
        what: str,
        calls: Iterable[Mapping[str, Any]],
        *,
        group: str | None = None,
        callback: Callable[..., Any] | JobRequest | str | None = None,
    ) -> list[JobHandle[Any]]: ...
    def submit_many(
        self,
        what: Callable[..., Any] | str,
        calls: Iterable[Mapping[str, Any]],
        *,
        group: str | None = None,
        callback: Callable[..., Any] | JobRequest | str | None = None,
    ) -> list[JobHandle[Any]]:
        """Submit many jobs of one capability, more than ten thousand in a second. All are checked before one is stored.

        Args:
            what: A function with `@capability`, or the name of a capability or of an instance.
            calls: The arguments of each job, by name.
            group: The id of a new group that the jobs belong to; see `group`.
            callback: What to submit once, when the last job of the group has ended: a function, a name or a
                `JobRequest`. Its argument `group` has the counts by status and the ids of failed jobs.

        Returns:
            A handle for each job, in the order of `calls`.

        Raises:
            CapabilityInputError: a call is not valid, or the group is complete already. No job was submitted.
            CapabilityNotLoadedError: the capability is not registered. See `submit` for the others.
        """
        target = Target(what)
        batch = target.submit_many(self._connection.queue, self.options, calls, group, callback)
        return [JobHandle(self._connection, job, target) for job in batch.jobs]

    def group(self, group: str) -> JobGroup:
        """The group with this id: how many jobs it has, how many of them ended in each way, and its callback.

        Raises:
            UnknownGroup: it does not exist.
        """
        return find_group(self._connection.queue, group)

    def schedule(
        self,
        what: Callable[..., Any] | str,
        cron: str,
        *,
        name: str,
        timezone: str = "UTC",
        arguments: Mapping[str, Any] | None = None,
        missed: str = ONCE,
        most_missed: int = MOST_MISSED,
    ) -> JobSchedule:
        """Submit a job again and again, at the times of a cron expression. It is stored until it is removed.

        Args:
            what: A function with `@capability`, or the name of a capability or of an instance.
            cron: Minute, hour, day of the month, month and day of the week, as in a crontab.
            name: The name of the schedule, unique within its capability. A second call with it changes the schedule.
            timezone: The time zone of `cron`.
            arguments: The arguments of the job, by name.
            missed: What happens to times that passed while no host ran: `skip` them, submit one job for all of them
                (`once`), or one for each (`all`).
            most_missed: With `all`: how many of them at most, the latest.

        Raises:
            CapabilityInputError: it is not valid; every invalid field is named.
            CapabilityNotLoadedError: the capability is not registered.
        """
        return self._add_schedule(
            what, arguments, name=name, cron=cron, timezone=timezone, missed=missed, most_missed=most_missed
        )

    def schedules(self) -> list[JobSchedule]:
        """All schedules of the store, those of manifests included."""
        return Schedules(self._connection.queue).all()

    def unschedule(self, schedule: str) -> None:
        """Remove a schedule that a client added, by its id: `CAPABILITY/NAME`.

        Raises:
            UnknownSchedule: it does not exist.
            CapabilityInputError: it is in a manifest.
        """
        Schedules(self._connection.queue).remove(schedule)

    @overload
    def job(self, job: str, of: Callable[..., Coroutine[Any, Any, _T]]) -> JobHandle[_T]: ...
    @overload
    def job(self, job: str, of: Callable[..., _T]) -> JobHandle[_T]: ...
    @overload
    def job(self, job: str, of: None = None) -> JobHandle[Any]: ...
    def job(self, job: str, of: Callable[..., Any] | None = None) -> JobHandle[Any]:
        """The handle of a job that was submitted before, by this or another process.

        Args:
            job: Its id.
            of: The function that was submitted; the result then has its return type.
        """
        return JobHandle(self._connection, job, Target(of))
