"""Handing in a job from the command line, and staying until it is over."""

import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from failwell.apps.cli.exits import Exit
from failwell.apps.cli.job_find import find_job, folder_of, jobs_of
from failwell.apps.cli.output import say, say_json
from failwell.apps.cli.runs_times import span
from failwell.apps.cli.usage import wrong

if TYPE_CHECKING:
    from failwell.jobs.desk import Desk
    from failwell.jobs.job import Job, JobRequest
    from failwell.jobs.runtime import Runtime


_SEE = "failwell job --help"


def submit(asked: Namespace) -> int:
    """Put it on record; with `--wait`, see it through; with `--stream`, print what it makes as it comes."""
    check_known(asked, asked.job)
    request = _request(asked)
    if asked.stream:
        from failwell.apps.cli.job_stream import stream

        return stream(asked, request)
    with jobs_of(asked, make=True) as desk:
        assert desk is not None
        return _handed_in(asked, desk, desk.submit(request))


def retry(asked: Namespace) -> int:
    """Hand in the same work as a new job."""
    with jobs_of(asked) as desk:
        job = find_job(desk, asked.job)
        assert desk is not None
        check_known(asked, job.request.instance)
        return _handed_in(asked, desk, desk.again(job.id))


def wait(asked: Namespace) -> int:
    """Stay until a job is over."""
    with jobs_of(asked) as desk:
        job = find_job(desk, asked.job)
        assert desk is not None
        return see_through(asked, desk, job.id)


def check_known(asked: Namespace, instance: str) -> None:
    """Refuse a name that nothing is registered under.

    Raises:
        Usage: there is no such capability; what is near is named.
    """
    from failwell.jobs.shelf import Shelf

    shelf = Shelf(folder_of(asked))
    known = shelf.names()
    if shelf.capability(instance) in known:
        return
    raise wrong(
        f"no capability is called `{instance}`",
        given=instance,
        valid=known,
        see="failwell capability list` or `failwell capability add FILE",
    )


def _handed_in(asked: Namespace, desk: "Desk", job: "Job") -> int:
    if asked.wait:
        aside(asked, f"job {job.id} is handed in")
        return see_through(asked, desk, job.id)
    from failwell.apps.cli.job_show import summary

    if asked.format == "json":
        say_json(summary(job, desk.shelf))
        return Exit.DONE
    say(f"`{job.id}`" if asked.format == "markdown" else job.id)
    if not desk.store.is_hosted():
        aside(asked, "nobody runs jobs here now; `failwell workers run` takes it up")
    return Exit.DONE


def see_through(asked: Namespace, desk: "Desk", job: str) -> int:
    """Stay until it is over, and tell its end: run by whoever runs jobs here, by this process if nobody does."""
    try:
        code = _stay(asked, desk, job)
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    found = desk.find(job)
    if found.state.is_final:
        return tell_end(asked, found, desk)
    aside(
        asked, f"job {job} is {found.state} and stays on record; `failwell job wait {job}` waits for it again"
    )
    return code


def _stay(asked: Namespace, desk: "Desk", job: str) -> Exit:
    from failwell.apps.cli.job_host import host
    from failwell.jobs.queue_faults import HostElsewhere

    tell = _Reasons(asked)

    async def until(jobs: "Runtime") -> None:
        from asyncio import ensure_future

        with jobs.events(job, after=0, live=False) as events:
            waiting = ensure_future(jobs.wait(job))
            try:
                async for event in events:
                    tell(event.type, event.data)
                await waiting
            finally:
                waiting.cancel()

    while not desk.find(job).state.is_final:
        if desk.store.is_hosted():
            for event in desk.follow(job, 0, give_up=lambda: not desk.store.is_hosted()):
                tell(event.type, event.data)
            continue
        try:
            code = host(asked, until=until)
        except HostElsewhere:
            # Somebody else was faster; he runs it.
            continue
        if code is not Exit.DONE:
            return code
    return Exit.DONE


class _Reasons:
    """Says why a job does not start; each reason once."""

    def __init__(self, asked: Namespace) -> None:
        self._asked = asked
        self._told: set[str] = set()

    def __call__(self, event: str, told: Any) -> None:
        reason = told.get("reason") if event == "blocked" else None
        if reason and reason not in self._told:
            self._told.add(reason)
            aside(self._asked, f"it does not run yet: {reason}")


def aside(asked: Namespace, words: str) -> None:
    """Say something on stderr to whoever watches; programs that read errors as JSON are spared."""
    if getattr(asked, "error_format", asked.format) != "json":
        print(words, file=sys.stderr, flush=True)


def tell_end(asked: Namespace, job: "Job", desk: "Desk") -> int:
    """Print what came of it. A failure is told as every other failure of a command is."""
    from failwell.apps.cli.errors import exit_for
    from failwell.apps.cli.job_show import result_json, summary
    from failwell.jobs.outcome import result_of

    is_well = job.state.value == "completed"
    if asked.format == "json":
        # The result is the caller's, and comes back as it is.
        say_json({**summary(job, desk.shelf), **result_json(job)})
        return Exit.DONE if is_well else Exit.FAILED if job.error is None else exit_for(job.error)
    if not is_well:
        aside(asked, f"job {job.id} {_ended(job)}; `failwell job show {job.id}` tells all about it")
    result_of(job)
    say_json(result_json(job)["result"])
    return Exit.DONE


def _ended(job: "Job") -> str:
    return "was cancelled" if job.state.value == "cancelled" else "failed"


def _request(asked: Namespace) -> "JobRequest":
    from datetime import UTC, datetime, timedelta

    from failwell.apps.cli.job_arguments import arguments_of
    from failwell.jobs.job import JobRequest

    within = None if asked.within is None else span(asked.within, "--within", _SEE)
    control: dict[str, Any] = {} if asked.attempts is None else {"max_attempts": asked.attempts}
    return JobRequest(
        instance=asked.job,
        arguments=arguments_of(asked),
        action=asked.do or "execute",
        stream=asked.stream,
        priority=asked.priority or 0,
        timeout=None if asked.timeout is None else span(asked.timeout, "--timeout", _SEE),
        deadline=None if within is None else datetime.now(UTC) + timedelta(seconds=within),
        key=asked.key,
        control=control,
    )
