"""Handing in a job from the command line, and staying until it is over."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from failwell.apps.cli.exits import Exit
from failwell.apps.cli.job_find import find_job, jobs_of
from failwell.apps.cli.output import say, say_json
from failwell.apps.cli.runs_times import span
from failwell.apps.cli.usage import wrong

if TYPE_CHECKING:
    from failwell.jobs.desk import Desk
    from failwell.jobs.job import Job, JobRequest


_SEE = "failwell job --help"


def submit(asked: Namespace) -> int:
    """Put it on record; with `--wait`, see it through."""
    request = _request(asked)
    with jobs_of(asked, make=True) as desk:
        assert desk is not None
        return _handed_in(asked, desk, desk.submit(request))


def retry(asked: Namespace) -> int:
    """Hand in the same work as a new job."""
    with jobs_of(asked) as desk:
        job = find_job(desk, asked.job)
        assert desk is not None
        return _handed_in(asked, desk, desk.again(job.id))


def wait(asked: Namespace) -> int:
    """Stay until a job is over."""
    with jobs_of(asked) as desk:
        job = find_job(desk, asked.job)
        assert desk is not None
        return tell_end(asked, see_through(asked, desk, job.id))


def _handed_in(asked: Namespace, desk: "Desk", job: "Job") -> int:
    if asked.wait:
        return tell_end(asked, see_through(asked, desk, job.id))
    from failwell.apps.cli.job_show import summary

    if asked.format == "json":
        say_json(summary(job))
        return Exit.DONE
    say(f"`{job.id}`" if asked.format == "markdown" else job.id)
    if not desk.store.is_hosted():
        import sys

        print("nobody runs jobs here now; `failwell workers run` takes it up", file=sys.stderr)
    return Exit.DONE


def see_through(asked: Namespace, desk: "Desk", job: str) -> "Job":
    """The job once it is over: run by whoever runs jobs here, and by this process if nobody does."""
    from failwell.apps.cli.job_host import host
    from failwell.jobs.queue_faults import HostElsewhere

    while not (found := desk.find(job)).state.is_final:
        if desk.store.is_hosted():
            desk.wait(job, give_up=lambda: not desk.store.is_hosted())
            continue
        try:
            host(asked, until=lambda jobs: jobs.wait(job))
        except HostElsewhere:
            # Somebody else was faster; he runs it.
            continue
    return found


def tell_end(asked: Namespace, job: "Job") -> int:
    """Print what came of it. A failure is told as every other failure of a command is."""
    from failwell.apps.cli.job_show import summary
    from failwell.jobs.outcome import result_of

    told = summary(job)
    if asked.format == "json":
        say_json(told)
        return Exit.DONE if job.state.value == "completed" else Exit.FAILED
    result_of(job)
    say_json(told["result"])
    return Exit.DONE


def _request(asked: Namespace) -> "JobRequest":
    from datetime import UTC, datetime, timedelta

    from failwell.jobs.job import JobRequest

    within = None if asked.within is None else span(asked.within, "--within", _SEE)
    control: dict[str, Any] = {} if asked.attempts is None else {"max_attempts": asked.attempts}
    return JobRequest(
        instance=asked.job,
        arguments=_arguments(asked),
        action=asked.do or "execute",
        priority=asked.priority or 0,
        timeout=None if asked.timeout is None else span(asked.timeout, "--timeout", _SEE),
        deadline=None if within is None else datetime.now(UTC) + timedelta(seconds=within),
        key=asked.key,
        control=control,
    )


def _arguments(asked: Namespace) -> dict[str, Any]:
    from json import loads

    given: dict[str, Any] = {}
    for text in asked.values:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise wrong(f"`{text}` is not NAME=VALUE", see=_SEE)
        if value.startswith("@"):
            from failwell.apps.cli.intake import read_input

            given[name] = read_input(value[1:])
            continue
        try:
            given[name] = loads(value)
        except ValueError:
            given[name] = value
    return given
