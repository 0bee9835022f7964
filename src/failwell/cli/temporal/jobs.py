"""`failwell jobs … --engine temporal`: jobs that the workers of a Temporal server run."""

from argparse import Namespace
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from failwell.cli.exit_codes import Exit
from failwell.cli.output import print_aside, print_json, print_text
from failwell.cli.parser import usage_error
from failwell.cli.records import LAST, no_record, state_folder_of
from failwell.cli.temporal.connection import connection_of, engine_command

if TYPE_CHECKING:
    from failwell.jobs.capabilities import CapabilityRegistry
    from failwell.jobs.job import Job, JobRequest
    from failwell.temporal.jobs.remote_jobs import RemoteJobs

_T = TypeVar("_T")
_PATIENCE = 3.0
"""Seconds of waiting after which a missing worker is reported."""
_LOCAL_FILTERS = (
    "instance", "capability", "status", "kind", "fingerprint", "since", "until", "group", "watch",
)  # fmt: skip


def submit_job(args: Namespace, request: "JobRequest") -> int:
    """Submit a job; with `--wait`, wait for its end."""
    job = _with_jobs(args, lambda jobs: jobs.submit(request))
    if args.wait:
        print_aside(args, f"job {job} is submitted")
        return wait_for_job(args, job)
    if args.format == "json":
        print_json({"id": job, "instance": request.instance, "status": "pending", "engine": "temporal"})
    else:
        print_text(f"`{job}`" if args.format == "markdown" else job)
        print_aside(args, f"`{engine_command(args, 'jobs', 'wait', job)}` waits for it")
    return Exit.DONE


def wait_for_job(args: Namespace, name: str) -> int:
    """Wait for the end of a job and print it. An interrupt ends the wait and not the job."""
    from asyncio import ensure_future

    from failwell.cli.jobs.submit import print_end

    async def wait(jobs: "RemoteJobs") -> "Job":
        job = await _id(jobs, name)
        ended = ensure_future(jobs.wait(job))
        warned = ensure_future(_warn_without_worker(args, jobs, job))
        try:
            return await ended
        finally:
            warned.cancel()

    try:
        job = _with_jobs(args, wait)
    except KeyboardInterrupt:
        print_aside(
            args, f"the job continues; `{engine_command(args, 'jobs', 'wait', name)}` waits for it again"
        )
        return Exit.INTERRUPTED
    return print_end(args, job, _registry(args))


async def _warn_without_worker(args: Namespace, jobs: "RemoteJobs", job: str) -> None:
    """Print a hint if the job has not ended after a few seconds and nobody takes jobs of its capability."""
    from asyncio import sleep

    await sleep(_PATIENCE)
    instance = (await jobs.record(job)).request.instance
    if not await jobs.has_worker(instance):
        print_aside(
            args,
            f"no worker takes jobs of `{instance}`; `failwell temporal worker --capabilities DIR` does"
            " on a machine that has it",
        )


def show_job(args: Namespace) -> int:
    """Show one job."""
    from failwell.cli.jobs.jobs_show import print_record

    async def record(jobs: "RemoteJobs") -> "Job":
        return await jobs.record(await _id(jobs, args.job))

    return print_record(args, _with_jobs(args, record), _registry(args))


def list_jobs(args: Namespace) -> int:
    """List the latest jobs of the task queue."""
    from failwell.cli.jobs.jobs_show import job_listing
    from failwell.cli.listing import print_listing

    local = next((name for name in _LOCAL_FILTERS if getattr(args, name)), None)
    if local is not None:
        raise usage_error(
            f"`--{local}` and `--engine temporal` exclude each other", see="failwell jobs list --help"
        )
    entries = _with_jobs(args, lambda jobs: jobs.latest(args.limit))
    empty = "no jobs are recorded for this task queue"
    return print_listing(args, job_listing(args, entries, _registry(args), empty))


def cancel_job(args: Namespace) -> int:
    """Cancel a job and wait until it has ended."""
    from failwell.cli.jobs.jobs_show import print_cancelled

    async def cancel(jobs: "RemoteJobs") -> "Job | str":
        job = await _id(jobs, args.job)
        return await jobs.wait(job) if await jobs.cancel(job) else (await jobs.record(job)).state.value

    final = _with_jobs(args, cancel)
    if isinstance(final, str):
        see = engine_command(args, "jobs", "show", args.job)
        raise usage_error(f"job `{args.job}` is {final} already", see=see)
    return print_cancelled(args, final)


def _with_jobs(args: Namespace, work: "Callable[[RemoteJobs], Awaitable[_T]]") -> _T:
    """Connect, do `work`, and return its result."""
    from asyncio import run

    options = connection_of(args)

    async def connected() -> Any:
        from failwell.temporal.jobs.remote_jobs import RemoteJobs

        return await work(RemoteJobs(await options.connect(), options))

    return run(connected())


async def _id(jobs: "RemoteJobs", name: str) -> str:
    """The id of a job; `last` is the latest of the task queue."""
    if name != LAST:
        return name
    latest = await jobs.latest(1)
    if not latest:
        from failwell.jobs.faults import UnknownJob

        raise no_record(name, "job", UnknownJob)
    return latest[0].id


def _registry(args: Namespace) -> "CapabilityRegistry":
    from failwell.jobs.capabilities import CapabilityRegistry

    return CapabilityRegistry(state_folder_of(args))
