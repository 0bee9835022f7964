"""Submits jobs to the workers of a Temporal server, from programs with an event loop and without one."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from copy import copy
from dataclasses import replace
from threading import Lock, Thread
from typing import Any, Generic, ParamSpec, Self, TypeVar, Unpack, overload

from failwell.jobs.arguments import ArgumentCheck
from failwell.jobs.client.connection import not_ended
from failwell.jobs.client.submission import ClientOptions, Target, instance_name, named_arguments, request_of
from failwell.jobs.job import Job, JobRequest, JobState
from failwell.jobs.worker_process.types.signature import Signature
from failwell.temporal.connection import ConnectionOptions, connection_options
from failwell.temporal.jobs.remote_jobs import RemoteJobs

_P = ParamSpec("_P")
_T = TypeVar("_T")
_AT_ONCE = 50
"""How many jobs are submitted at a time."""


class AsyncJobHandle(Generic[_T]):
    """One submitted job. Every method asks the server, so a handle never goes stale."""

    def __init__(self, jobs: RemoteJobs, job: str, target: Target) -> None:
        self.id = job
        self._jobs = jobs
        self._target = target

    def __repr__(self) -> str:
        return f"AsyncJobHandle({self.id!r})"

    async def result(self, timeout: float | None = None) -> _T:  # noqa: ASYNC109  (a bound on the wait alone)
        """Wait until the job ends, and return its result. Without a worker it waits for one.

        Args:
            timeout: Seconds to wait at most. The job continues after that.

        Raises:
            Fault: the job failed or was cancelled; `describe` returns its report.
            TimeoutError: the job did not end within `timeout` seconds.
            UnknownJob: the job does not exist.
        """
        try:
            async with asyncio.timeout(timeout):
                job = await self._jobs.wait(self.id)
        except TimeoutError:
            raise not_ended(self.id, timeout) from None
        return self._target.result_of(job)

    async def status(self) -> JobState:
        """The state of the job.

        Raises:
            UnknownJob: the job does not exist.
        """
        return (await self.record()).state

    async def record(self) -> Job:
        """The whole record of the job: its request, its times, its attempts, its result or its error.

        Raises:
            UnknownJob: the job does not exist.
        """
        return await self._jobs.record(self.id)

    async def cancel(self) -> bool:
        """Cancel the job; `False` if it has ended. A running job stops a little later: `result` raises then.

        Raises:
            UnknownJob: the job does not exist.
        """
        return await self._jobs.cancel(self.id)


class AsyncClient:
    """Submits jobs to the workers of a Temporal server.

    Example:
        async with AsyncClient(address="temporal.example.com:7233") as client:
            job = await client.submit(resize, image="cat.png", width=200)
            print(await job.result(timeout=60))
    """

    def __init__(self, options: ConnectionOptions | None = None, **connection: Any) -> None:
        """Create a client; nothing is opened yet.

        Args:
            options: How to reach the server. Without it, `connection` and the environment say it.
            connection: Fields of `ConnectionOptions`, such as `address`, `namespace` and `task_queue`.
        """
        self._connection = options or connection_options(**connection)
        self._jobs: RemoteJobs | None = None
        self.options = ClientOptions()

    async def __aenter__(self) -> Self:
        await self.jobs()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._jobs = None

    async def jobs(self) -> RemoteJobs:
        """The jobs of the server; the connection is opened when it is first used."""
        if self._jobs is None:
            self._jobs = RemoteJobs(await self._connection.connect(), self._connection)
        return self._jobs

    def with_options(self, **options: Unpack[ClientOptions]) -> Self:
        """The same client with options for the jobs it submits; they are those of `failwell.jobs.Client`."""
        client = copy(self)
        client.options = {**self.options, **options}
        return client

    @overload
    async def submit(
        self, what: Callable[_P, Coroutine[Any, Any, _T]], /, *args: _P.args, **arguments: _P.kwargs
    ) -> AsyncJobHandle[_T]: ...
    @overload
    async def submit(
        self, what: Callable[_P, _T], /, *args: _P.args, **arguments: _P.kwargs
    ) -> AsyncJobHandle[_T]: ...
    @overload
    async def submit(self, what: str, /, **arguments: Any) -> AsyncJobHandle[Any]: ...
    async def submit(
        self, what: Callable[..., Any] | str, /, *args: Any, **arguments: Any
    ) -> AsyncJobHandle[Any]:
        """Submit a job; the server has it when this returns.

        Args:
            what: A function with `@capability`, or the name of a capability or of an instance.
            args: Positional arguments of the function.
            arguments: Keyword arguments of the call.

        Raises:
            CapabilityInputError: an argument of a function is unknown, missing or of the wrong type. For a name, the
                worker checks the arguments.
            ServerUnreachable: no server answers.
        """
        jobs = await self.jobs()
        request = self._request(what, named_arguments(what, args, arguments))
        return AsyncJobHandle(jobs, await jobs.submit(request), Target(what))

    async def submit_many(
        self, what: Callable[..., Any] | str, calls: Iterable[Mapping[str, Any]]
    ) -> list[AsyncJobHandle[Any]]:
        """Submit many jobs of one capability. All are checked before the first is submitted.

        Args:
            what: A function with `@capability`, or the name of a capability or of an instance.
            calls: The arguments of each job, by name.

        Returns:
            A handle for each job, in the order of `calls`.
        """
        jobs, target = await self.jobs(), Target(what)
        requests = [self._request(what, arguments) for arguments in calls]
        lanes = asyncio.Semaphore(_AT_ONCE)

        async def submit(request: JobRequest) -> AsyncJobHandle[Any]:
            async with lanes:
                return AsyncJobHandle(jobs, await jobs.submit(request), target)

        return list(await asyncio.gather(*map(submit, requests)))

    async def job(self, job: str) -> AsyncJobHandle[Any]:
        """The handle of a job that was submitted before, by this or another process."""
        return AsyncJobHandle(await self.jobs(), job, Target(None))

    def _request(self, what: Callable[..., Any] | str, arguments: Mapping[str, Any]) -> JobRequest:
        name = self.options.get("instance") or instance_name(what)
        request = request_of(self.options, name)
        if isinstance(what, str):
            return replace(request, arguments=dict(arguments))
        check = ArgumentCheck(name, {request.action: Signature(what).schema()})
        request = check.as_json(request, arguments)
        check.check(request)
        return request


class JobHandle(Generic[_T]):
    """One submitted job, for programs without an event loop."""

    def __init__(self, run: "Callable[[Coroutine[Any, Any, Any]], Any]", handle: AsyncJobHandle[_T]) -> None:
        self.id = handle.id
        self._run = run
        self._handle = handle

    def __repr__(self) -> str:
        return f"JobHandle({self.id!r})"

    def result(self, timeout: float | None = None) -> _T:
        """Wait until the job ends, and return its result; see `AsyncJobHandle.result`."""
        return self._run(self._handle.result(timeout))

    def status(self) -> JobState:
        """The state of the job."""
        return self._run(self._handle.status())

    def record(self) -> Job:
        """The whole record of the job."""
        return self._run(self._handle.record())

    def cancel(self) -> bool:
        """Cancel the job; `False` if it has ended."""
        return self._run(self._handle.cancel())


class Client:
    """Submits jobs to the workers of a Temporal server. Threads may share it; close it after use.

    Example:
        with Client(address="temporal.example.com:7233") as client:
            job = client.submit(resize, image="cat.png", width=200)
            print(job.result(timeout=60))
    """

    def __init__(self, options: ConnectionOptions | None = None, **connection: Any) -> None:
        """Create a client; see `AsyncClient`."""
        self._client = AsyncClient(options, **connection)
        self._thread = _LoopThread()
        self._run = self._thread.run

    def __enter__(self) -> Self:
        self._run(self._client.jobs())
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. Jobs are not affected."""
        self._thread.stop()

    def with_options(self, **options: Unpack[ClientOptions]) -> Self:
        """The same client with options for the jobs it submits; they are those of `failwell.jobs.Client`."""
        client = copy(self)
        client._client = self._client.with_options(**options)  # noqa: SLF001  (a copy of this one)
        return client

    @overload
    def submit(
        self, what: Callable[_P, Coroutine[Any, Any, _T]], /, *args: _P.args, **arguments: _P.kwargs
    ) -> JobHandle[_T]: ...
    @overload
    def submit(self, what: Callable[_P, _T], /, *args: _P.args, **arguments: _P.kwargs) -> JobHandle[_T]: ...
    @overload
    def submit(self, what: str, /, **arguments: Any) -> JobHandle[Any]: ...
    def submit(self, what: Callable[..., Any] | str, /, *args: Any, **arguments: Any) -> JobHandle[Any]:
        """Submit a job; the server has it when this returns. See `AsyncClient.submit`."""
        handle: AsyncJobHandle[Any] = self._run(self._client.submit(what, *args, **arguments))
        return JobHandle(self._run, handle)

    def submit_many(
        self, what: Callable[..., Any] | str, calls: Iterable[Mapping[str, Any]]
    ) -> list[JobHandle[Any]]:
        """Submit many jobs of one capability; see `AsyncClient.submit_many`."""
        return [JobHandle(self._run, handle) for handle in self._run(self._client.submit_many(what, calls))]

    def job(self, job: str) -> JobHandle[Any]:
        """The handle of a job that was submitted before, by this or another process."""
        return JobHandle(self._run, self._run(self._client.job(job)))


class _LoopThread:
    """An event loop in a thread of its own, which starts with the first call."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine in the loop, and return its result."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                Thread(target=_run_loop, args=[self._loop], name="failwell-temporal", daemon=True).start()
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        return future.result()

    def stop(self) -> None:
        """End the loop and its thread."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()
