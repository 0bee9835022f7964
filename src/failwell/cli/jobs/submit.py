"""`failwell jobs submit`, `retry` and `wait`: submit a job, and wait for its end."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any, Literal

from failwell.cli.exit_codes import Exit
from failwell.cli.jobs.jobs import find_job, job_queue, unknown_capability
from failwell.cli.output import (
    print_aside,
    print_json,
    print_json_text,
    print_text,
)
from failwell.cli.parser import Parser, usage_error
from failwell.cli.records import add_name, add_store, at_least, state_folder_of
from failwell.cli.temporal.connection import TEMPORAL, add_engine, engine_command
from failwell.cli.times import lasted, span, start_time

if TYPE_CHECKING:
    from collections.abc import Collection

    from failwell.jobs.capabilities import CapabilityRegistry
    from failwell.jobs.client.queue_client import QueueClient
    from failwell.jobs.job import Job, JobRequest
    from failwell.jobs.runtime import Runtime
    from failwell.store.event import Event


_SEE = "failwell jobs submit --help"
BLOCKED = "blocked"
"""The type of the event with the reason why a job does not start."""


def add_submit_options(parser: Parser) -> None:
    """Declare the job and its options."""
    parser.add_argument(
        "instance", nargs="?", metavar="INSTANCE", help="the capability, or one of its instances"
    )
    parser.add_argument(
        "values",
        nargs="*",
        default=[],
        metavar="NAME=VALUE",
        help="arguments, as JSON or as plain text; `@FILE` reads the text of a file",
    )
    parser.add_argument(
        "--arguments",
        metavar="FILE",
        help="a file with one JSON object of arguments; `-` is the standard input",
    )
    parser.add_argument(
        "--action", dest="method", metavar="ACTION", help="which method of the capability (default: execute)"
    )
    parser.add_argument("--priority", metavar="N", type=int, default=0, help="higher goes first (default: 0)")
    parser.add_argument(
        "--timeout",
        metavar="SPAN",
        help="how long one attempt may run: `90s`, or `none` (default: `timeout` of the manifest, else 1h)",
    )
    parser.add_argument("--within", metavar="SPAN", help="when it must have ended, waiting included: `2h`")
    start = parser.alternatives()
    start.add_argument(
        "--at", metavar="TIME", help="start it at this time: `2025-01-31T18:00`, in UTC unless it says so"
    )
    start.add_argument("--delay", metavar="SPAN", help="start it after this time: `10m`")
    parser.add_argument("--key", metavar="KEY", help="idempotency key: a second job with it is the first")
    parser.add_argument(
        "--unique",
        choices=("forever", "ended"),
        help="how long the key is taken: as long as the job is stored, or until it has ended (default: forever)",
    )
    parser.add_argument(
        "--attempts", metavar="N", type=at_least(1), help="attempts in all (default: as the policy says)"
    )
    parser.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        help="submit many jobs: a file with one JSON object a line, such as"
        """ `{"arguments": {"audio": "talk.wav"}}`; `-` is the standard input""",
    )
    parser.add_argument(
        "--group", metavar="GROUP", help="with `--from`: the id of a new group for these jobs"
    )
    parser.add_argument(
        "--callback",
        metavar="INSTANCE",
        help="with `--group`: a capability that is called once, when all of them have ended",
    )
    add_wait(parser)
    parser.add_argument(
        "--stream", action="store_true", help="run it here and print its items as they come, one a line"
    )
    add_store(parser)
    add_engine(parser)
    parser.epilog = (
        "Jobs wait until `failwell workers run` runs them, or a command waits with `--wait`. "
        "With `--engine temporal`, `failwell temporal worker` runs them on any machine. "
        "example: failwell jobs submit transcribe audio=talk.wav --wait"
    )


def add_retry_options(parser: Parser) -> None:
    """Declare which job, or which jobs."""
    from failwell.cli.jobs.bulk import add_all

    add_name(parser, "job", optional=True)
    add_wait(parser)
    add_all(parser, "retry")
    add_store(parser)
    parser.epilog = (
        "Without a terminal, `--all` changes nothing unless `--yes` is given, and the exit code is 2. "
        "example: failwell jobs retry --all --status failed --kind provider.rate_limited --since 2h"
    )


def add_wait_options(parser: Parser) -> None:
    """Declare which job."""
    add_name(parser, "job")
    add_store(parser)
    add_engine(parser)


def add_wait(parser: Parser) -> None:
    """Declare `--wait`."""
    parser.add_argument(
        "--wait", action="store_true", help="wait for its end, and run it if no other process does"
    )


def run_submit(args: Namespace) -> int:
    """Submit a job; with `--wait`, wait for its end; with `--stream`, print its items as they come."""
    excluded = next((name for name in ("wait", "key", "at", "delay") if getattr(args, name)), None)
    if args.stream and excluded is not None:
        option = f"--{excluded}"
        raise usage_error(f"`--stream` and `{option}` exclude each other", see=_SEE)
    if args.engine == TEMPORAL:
        return _submit_remote(args)
    if args.source is not None:
        return _submit_file(args)
    if args.instance is None:
        raise usage_error("missing INSTANCE", see=_SEE)
    if args.group is not None or args.callback is not None:
        raise usage_error("`--group` and `--callback` need `--from`", see=_SEE)
    from failwell.jobs.capabilities import CapabilityRegistry

    registry = CapabilityRegistry(state_folder_of(args))
    request = _request(args, registry.text_parameters(args.instance, args.method or "execute"))
    if args.stream:
        return _stream(args, request)
    with job_queue(args, create=True, instance=args.instance, registry=registry) as queue:
        assert queue is not None
        before = None if args.key is None else queue.store.find_by_key(args.key)
        job = queue.submit(request)
        is_served = args.wait or queue.store.is_served(job.id)
        if before is not None and before.id == job.id:
            print_aside(
                args,
                f"the key belongs to job {job.id}, which is {job.state.value}; nothing new was submitted",
            )
        return print_submitted(args, queue, job, is_served=is_served)


def _submit_remote(args: Namespace) -> int:
    """Submit a job to the workers of a Temporal server, which check its arguments."""
    from failwell.cli.temporal.jobs import submit_job
    from failwell.jobs.capabilities import CapabilityRegistry

    local = next((name for name in ("source", "group", "callback", "stream") if getattr(args, name)), None)
    if local is not None:
        option = "from" if local == "source" else local
        raise usage_error(f"`--{option}` and `--engine temporal` exclude each other", see=_SEE)
    if args.instance is None:
        raise usage_error("missing INSTANCE", see=_SEE)
    texts = CapabilityRegistry(state_folder_of(args)).text_parameters(args.instance, args.method or "execute")
    return submit_job(args, _request(args, texts))


def _submit_file(args: Namespace) -> int:
    from failwell.cli.jobs.job_file import check_options, submit_file

    check_options(args)
    with job_queue(args, create=True, instance=args.instance) as queue:
        assert queue is not None
        return submit_file(args, queue)


def run_retry(args: Namespace) -> int:
    """Submit the same work as a new job; with `--all`, of every chosen job."""
    from failwell.cli.jobs.bulk import retry_all, wants_all

    is_bulk = wants_all(args, "failwell jobs retry --help")
    with job_queue(args) as queue:
        if is_bulk:
            return retry_all(args, queue)
        job = find_job(queue, args.job)
        assert queue is not None
        if not queue.registry.has_instance(job.request.instance):
            raise unknown_capability(queue.registry, job.request.instance)
        job = queue.again(job.id)
        return print_submitted(args, queue, job, is_served=args.wait or queue.store.is_served(job.id))


def run_wait(args: Namespace) -> int:
    """Wait for the end of a job."""
    if args.engine == TEMPORAL:
        from failwell.cli.temporal.jobs import wait_for_job

        return wait_for_job(args, args.job)
    with job_queue(args) as queue:
        job = find_job(queue, args.job)
        assert queue is not None
        return wait_for_end(args, queue, job)


def print_submitted(args: Namespace, queue: "QueueClient", job: "Job", *, is_served: bool) -> int:
    """Print a new job; with `--wait`, wait for its end."""
    if args.wait:
        if job.state.value == "pending":
            print_aside(args, f"job {job.id} is submitted")
            _print_timeout(args, job)
        return wait_for_end(args, queue, job)
    from failwell.cli.jobs.jobs_show import summary
    from failwell.jobs.job import FINAL

    if args.format == "json":
        print_json(summary(job, queue.registry))
        return Exit.DONE
    print_text(f"`{job.id}`" if args.format == "markdown" else job.id)
    _print_timeout(args, job)
    if not is_served and job.state not in FINAL:
        print_aside(args, "no process runs jobs now; `failwell workers run` does")
    return Exit.DONE


def wait_for_end(args: Namespace, queue: "QueueClient", job: "Job") -> int:
    """Wait for the end of a job and print it. This process runs the job, and no other, if nobody else does."""
    from failwell.jobs.job import FINAL

    reasons = _Reasons(args)
    code = Exit.DONE
    while code is Exit.DONE and job.state not in FINAL:
        ended = None
        try:
            code, ended = _run_until_end(args, queue, job.id, reasons)
        except KeyboardInterrupt:
            code = Exit.INTERRUPTED
        job = ended or queue.find(job.id)
    if job.state in FINAL:
        return print_end(args, job, queue.registry)
    print_aside(
        args,
        f"job {job.id} is {job.state} and stays recorded; `failwell jobs wait {job.id}` waits for it again",
    )
    return code


def _run_until_end(
    args: Namespace, queue: "QueueClient", job: str, reasons: "_Reasons"
) -> "tuple[Exit, Job | None]":
    """Follow the job if another process runs it, else run it here; returns it if it has ended here.

    The caller repeats this until the job ends.
    """
    from failwell.cli.jobs.host import host

    if queue.store.is_served(job):
        for event in queue.follow(job, 0, give_up=lambda: not queue.store.is_served(job)):
            reasons.show(event)
        return Exit.DONE, None

    ended: Job | None = None

    async def until(jobs: "Runtime") -> None:
        from asyncio import ensure_future

        nonlocal ended

        with jobs.events(job, after=0) as events:
            waiting = ensure_future(jobs.wait(job))
            try:
                async for event in events:
                    reasons.show(event)
                ended = await waiting
            finally:
                waiting.cancel()

    return host(args, until=until, queue=queue, respawn=False, only=[job]), ended


class _Reasons:
    """Prints why a job does not start, each reason once."""

    def __init__(self, args: Namespace) -> None:
        self._args = args
        self._printed: set[str] = set()

    def show(self, event: "Event") -> None:
        """Print the reason of a `blocked` event."""
        reason = event.data.get("reason") if event.type == BLOCKED else None
        if reason and reason not in self._printed:
            self._printed.add(reason)
            print_aside(self._args, f"it does not run yet: {reason}")


def print_end(args: Namespace, job: "Job", registry: "CapabilityRegistry") -> int:
    """Print the end of a job: its result, or its stored error."""
    from failwell.cli.error_output import ErrorOptions, exit_for, print_report
    from failwell.cli.jobs.jobs_show import result_json, summary

    completed = job.state.value == "completed"
    if args.format == "json":
        # The result belongs to the caller and is not masked.
        print_json({**summary(job, registry), **result_json(job)})
        return Exit.DONE if completed else Exit.FAILED if job.error is None else exit_for(job.error)
    if completed:
        print_json(result_json(job)["result"])
        return Exit.DONE
    end = "was cancelled" if job.state.value == "cancelled" else "failed"
    command = engine_command(args, "jobs", "show", job.id)
    print_aside(args, f"job {job.id} {end}; `{command}` shows its record")
    if job.error is None:
        from failwell.jobs.job import result_of

        result_of(job)
        return Exit.FAILED
    return print_report(job.error, ErrorOptions.of(args))


def _request(args: Namespace, texts: "Collection[str]") -> "JobRequest":
    """The job of the command line; `texts` are parameters that take text only."""
    from datetime import UTC, datetime, timedelta

    from failwell.cli.jobs.arguments import arguments_of
    from failwell.jobs.job import JobRequest

    within = None if args.within is None else span(args.within, "--within", _SEE)
    control: dict[str, Any] = {} if args.attempts is None else {"max_attempts": args.attempts}
    return JobRequest(
        instance=args.instance,
        arguments=arguments_of(args, texts),
        action=args.method or "execute",
        stream=args.stream,
        priority=args.priority,
        timeout=None if args.timeout is None else _timeout(args.timeout),
        deadline=None if within is None else datetime.now(UTC) + timedelta(seconds=within),
        key=args.key,
        unique=args.unique or "forever",
        not_before=start_time(args.at, args.delay, _SEE),
        control=control,
    )


def _timeout(text: str) -> 'float | Literal["none"]':
    return "none" if text == "none" else span(text, "--timeout", _SEE)


def _print_timeout(args: Namespace, job: "Job") -> None:
    """Print how long an attempt may run: a job that needs longer is ended, and should not be a surprise."""
    seconds = job.request.timeout
    if seconds is None or seconds == "none":
        print_aside(args, "an attempt may run for any time; `--timeout SPAN` limits it")
        return
    limit = lasted(seconds)
    print_aside(
        args, f"an attempt may run for {limit}; `--timeout SPAN` sets it, `--timeout none` switches it off"
    )


def _stream(args: Namespace, request: "JobRequest") -> int:
    """Run the job here, and no other, and print its items. Leaving before the end cancels it.

    Raises:
        Fault: the job failed.
    """
    from failwell.adapters.describe import describe
    from failwell.cli.jobs.host import host
    from failwell.errors.fault import Fault
    from failwell.jobs.capabilities import CapabilityRegistry
    from failwell.jobs.store.rows import result_to_json

    registry = CapabilityRegistry(state_folder_of(args))
    if not registry.has_instance(request.instance):
        raise unknown_capability(registry, request.instance)
    is_json = args.format == "json"

    async def until(jobs: "Runtime") -> None:
        from contextlib import aclosing

        items = jobs.stream(
            request.instance,
            request.arguments,
            action=request.action,
            priority=request.priority,
            timeout=request.timeout,
            deadline=request.deadline,
            control=request.control,
        )
        async with aclosing(items):
            async for item in items:
                if isinstance(item, str) and not is_json:
                    print_text(item)
                else:
                    print_json_text(result_to_json(item))

    try:
        return host(args, until=until, respawn=False, only=())
    except Fault as fault:
        job = describe(fault).scene.job
        if job is not None:
            print_aside(args, f"job {job} failed; `failwell jobs show {job}` shows its record")
        raise
