"""Handing in a job from the command line, and staying until it is over."""

import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.jobs.jobs_find import find_job, folder_of, jobs_of
from failwell.apps.cli.output import say, say_json
from failwell.apps.cli.parser import wrong
from failwell.apps.cli.times import span

if TYPE_CHECKING:
    from failwell.jobs.client import Desk
    from failwell.jobs.job import Job, JobRequest
    from failwell.jobs.runtime import Runtime


_SEE = "failwell job --help"


def submit(args: Namespace) -> int:
    """Put it on record; with `--wait`, see it through; with `--stream`, print what it makes as it comes."""
    check_known(args, args.job)
    request = _request(args)
    if args.stream:
        from failwell.apps.cli.jobs.stream import stream

        return stream(args, request)
    with jobs_of(args, make=True) as desk:
        assert desk is not None
        return _handed_in(args, desk, desk.submit(request))


def retry(args: Namespace) -> int:
    """Hand in the same work as a new job."""
    with jobs_of(args) as desk:
        job = find_job(desk, args.job)
        assert desk is not None
        check_known(args, job.request.instance)
        return _handed_in(args, desk, desk.again(job.id))


def wait(args: Namespace) -> int:
    """Stay until a job is over."""
    with jobs_of(args) as desk:
        job = find_job(desk, args.job)
        assert desk is not None
        return see_through(args, desk, job.id)


def check_known(args: Namespace, instance: str) -> None:
    """Refuse a name that nothing is registered under.

    Raises:
        Usage: there is no such capability; what is near is named.
    """
    from failwell.jobs.registry import Shelf

    shelf = Shelf(folder_of(args))
    known = shelf.names()
    if shelf.capability(instance) in known:
        return
    raise wrong(
        f"no capability is called `{instance}`",
        given=instance,
        valid=known,
        see="failwell capability list` or `failwell capability add FILE",
    )


def _handed_in(args: Namespace, desk: "Desk", job: "Job") -> int:
    if args.wait:
        aside(args, f"job {job.id} is handed in")
        return see_through(args, desk, job.id)
    from failwell.apps.cli.jobs.jobs_show import summary

    if args.format == "json":
        say_json(summary(job, desk.shelf))
        return Exit.DONE
    say(f"`{job.id}`" if args.format == "markdown" else job.id)
    if not desk.store.is_hosted():
        aside(args, "nobody runs jobs here now; `failwell workers run` takes it up")
    return Exit.DONE


def see_through(args: Namespace, desk: "Desk", job: str) -> int:
    """Stay until it is over, and tell its end: run by whoever runs jobs here, by this process if nobody does."""
    try:
        code = _stay(args, desk, job)
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    found = desk.find(job)
    if found.state.is_final:
        return tell_end(args, found, desk)
    aside(
        args, f"job {job} is {found.state} and stays on record; `failwell job wait {job}` waits for it again"
    )
    return code


def _stay(args: Namespace, desk: "Desk", job: str) -> Exit:
    from failwell.apps.cli.jobs.host import host
    from failwell.jobs.faults import HostElsewhere

    tell = _Reasons(args)

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
            code = host(args, until=until)
        except HostElsewhere:
            # Somebody else was faster; he runs it.
            continue
        if code is not Exit.DONE:
            return code
    return Exit.DONE


class _Reasons:
    """Says why a job does not start; each reason once."""

    def __init__(self, args: Namespace) -> None:
        self._args = args
        self._told: set[str] = set()

    def __call__(self, event: str, told: Any) -> None:
        reason = told.get("reason") if event == "blocked" else None
        if reason and reason not in self._told:
            self._told.add(reason)
            aside(self._args, f"it does not run yet: {reason}")


def aside(args: Namespace, words: str) -> None:
    """Say something on stderr to whoever watches; programs that read errors as JSON are spared."""
    if getattr(args, "error_format", args.format) != "json":
        print(words, file=sys.stderr, flush=True)


def tell_end(args: Namespace, job: "Job", desk: "Desk") -> int:
    """Print what came of it. A failure is told as every other failure of a command is."""
    from failwell.apps.cli.error_output import exit_for
    from failwell.apps.cli.jobs.jobs_show import result_json, summary
    from failwell.jobs.job import result_of

    is_well = job.state.value == "completed"
    if args.format == "json":
        # The result is the caller's, and comes back as it is.
        say_json({**summary(job, desk.shelf), **result_json(job)})
        return Exit.DONE if is_well else Exit.FAILED if job.error is None else exit_for(job.error)
    if not is_well:
        aside(args, f"job {job.id} {_ended(job)}; `failwell job show {job.id}` tells all about it")
    result_of(job)
    say_json(result_json(job)["result"])
    return Exit.DONE


def _ended(job: "Job") -> str:
    return "was cancelled" if job.state.value == "cancelled" else "failed"


def _request(args: Namespace) -> "JobRequest":
    from datetime import UTC, datetime, timedelta

    from failwell.apps.cli.jobs.arguments import arguments_of
    from failwell.jobs.job import JobRequest

    within = None if args.within is None else span(args.within, "--within", _SEE)
    control: dict[str, Any] = {} if args.attempts is None else {"max_attempts": args.attempts}
    return JobRequest(
        instance=args.job,
        arguments=arguments_of(args),
        action=args.do or "execute",
        stream=args.stream,
        priority=args.priority or 0,
        timeout=None if args.timeout is None else span(args.timeout, "--timeout", _SEE),
        deadline=None if within is None else datetime.now(UTC) + timedelta(seconds=within),
        key=args.key,
        control=control,
    )
