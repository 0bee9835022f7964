"""Filters of jobs, `failwell jobs stats`, and `--all` of `failwell jobs retry` and `cancel`."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from failwell.cli.exit_codes import Exit
from failwell.cli.listing import Listing, add_watch, markdown_table, text_table
from failwell.cli.output import print_data, print_stderr
from failwell.cli.parser import Parser, usage_error
from failwell.cli.records import add_status, add_store, confirm, counted, first_few

if TYPE_CHECKING:
    from collections.abc import Sequence

    from failwell.jobs.batch import BulkPlan, BulkResult
    from failwell.jobs.capabilities import CapabilityRegistry
    from failwell.jobs.client.queue_client import QueueClient
    from failwell.jobs.store.job_filter import JobFilter, JobTotal

STATUSES = ("pending", "running", "waiting", "completed", "failed", "cancelled")
_COLUMNS = ("status", "kind", "instance", "jobs", "latest")
_FILTERS = ("status", "instance", "capability", "kind", "fingerprint", "since", "until", "group")


def add_job_filters(parser: Parser) -> None:
    """Declare which jobs are meant."""
    parser.add_argument("--instance", metavar="ID", help="only jobs of this instance")
    parser.add_argument("--capability", metavar="NAME", help="only jobs of the instances of this capability")
    add_status(parser, "job", STATUSES)
    parser.add_argument(
        "--kind",
        metavar="KIND",
        action="append",
        default=[],
        help="only jobs whose last error has this kind; `provider.` is a prefix (may be repeated)",
    )
    parser.add_argument(
        "--fingerprint",
        metavar="F",
        help="only jobs whose last error has this fingerprint, or begins like it",
    )
    for option, side in (("--since", "since then"), ("--until", "before then")):
        parser.add_argument(
            option,
            metavar="TIME",
            help=f"only jobs that ended {side}, or were submitted and have not ended: `2h`, `2025-01-31`",
        )
    parser.add_argument("--group", metavar="GROUP", help="only jobs of this group")


def job_filter_of(args: Namespace, registry: "CapabilityRegistry", see: str) -> "JobFilter":
    """The filter that the options describe.

    Raises:
        Usage: an option is not valid.
    """
    from time import time

    from failwell.calls.policy import Match
    from failwell.cli.times import moment
    from failwell.errors.kind_registry import KindError
    from failwell.jobs.store.job_filter import JobFilter

    try:
        Match.of(*args.kind)
    except KindError as error:
        raise usage_error(f"`--kind`: {error}", see="failwell kinds") from None
    now = time()
    if args.capability is None:
        instances = () if args.instance is None else (args.instance,)
    else:
        instances = tuple(registry.instances(args.capability))
        if args.instance is not None:
            if args.instance not in instances:
                raise usage_error(f"`{args.instance}` is no instance of `{args.capability}`", see=see)
            instances = (args.instance,)
    return JobFilter(
        states=tuple(dict.fromkeys(args.status)),
        instances=instances,
        kinds=tuple(args.kind),
        fingerprint=args.fingerprint,
        since=None if args.since is None else moment(args.since, "--since", now, see),
        until=None if args.until is None else moment(args.until, "--until", now, see),
        group=args.group,
    )


# ---------------------------------------------------------------- totals


def add_stats_options(parser: Parser) -> None:
    """Declare the filters."""
    add_job_filters(parser)
    add_watch(parser)
    add_store(parser)
    parser.epilog = "example: failwell jobs stats --status failed --since 24h"


def run_stats(args: Namespace) -> int:
    """Count jobs by status, kind of error and instance."""
    from failwell.cli.jobs.jobs import print_jobs

    return print_jobs(args, _COLUMNS, _totals)


def _totals(args: Namespace, queue: "QueueClient") -> Listing:
    totals = queue.store.totals(job_filter_of(args, queue.registry, "failwell jobs stats --help"))
    rows = [_row(total) for total in totals]
    return Listing(_COLUMNS, rows, _objects(totals), "no recorded job matches", ("latest",))


def _row(total: "JobTotal") -> tuple[str, ...]:
    from failwell.cli.times import clock

    return (total.state, total.kind or "", total.instance, f"{total.jobs:,}", clock(total.latest))


def _objects(totals: "Sequence[JobTotal]") -> list[dict[str, Any]]:
    from failwell.cli.times import iso

    return [
        {
            "id": "/".join(filter(None, (total.state, total.kind, total.instance))),
            "status": total.state,
            "kind": total.kind,
            "instance": total.instance,
            "jobs": total.jobs,
            "latest": iso(total.latest),
        }
        for total in totals
    ]


# ---------------------------------------------------------------- --all


def add_all(parser: Parser, verb: str) -> None:
    """Declare `--all`, its filters, and whether it asks."""
    parser.add_argument(
        "--all", action="store_true", help=f"{verb} every job that the filters choose, after a preview"
    )
    add_job_filters(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="with `--all`: print the preview, and change nothing"
    )
    parser.add_argument("--yes", action="store_true", help=f"with `--all`: {verb} without asking")


def wants_all(args: Namespace, see: str) -> bool:
    """Whether `--all` is given instead of a job.

    Raises:
        Usage: both are given, neither is, or a filter without `--all`.
    """
    if args.all:
        if args.job is not None:
            raise usage_error("a job and `--all` exclude each other", see=see)
        return True
    given = next((name for name in (*_FILTERS, "dry_run", "yes") if getattr(args, name)), None)
    if given is not None:
        raise usage_error(f"`--{given.replace('_', '-')}` needs `--all`", see=see)
    if args.job is None:
        raise usage_error("name a job, or choose jobs with `--all` and filters", see=see)
    return False


def retry_all(args: Namespace, queue: "QueueClient | None") -> int:
    """Submit all chosen jobs again, after a preview."""
    from failwell.jobs.batch import ENDED

    see = "failwell jobs retry --help"
    _check_statuses(args, ENDED, "has not ended, so there is nothing to retry", see)
    if args.wait:
        raise usage_error("`--wait` is for one job; `failwell jobs stats` shows how many are left", see=see)
    return _change_all(args, queue, "retry", see)


def cancel_all(args: Namespace, queue: "QueueClient | None") -> int:
    """Cancel all chosen jobs, after a preview."""
    from failwell.jobs.batch import OPEN

    see = "failwell jobs cancel --help"
    _check_statuses(args, OPEN, "has ended, so there is nothing to cancel", see)
    return _change_all(args, queue, "cancel", see)


def _change_all(args: Namespace, queue: "QueueClient | None", verb: str, see: str) -> int:
    from failwell.jobs.batch import Bulk

    if queue is None:
        return print_data(
            args, {"done": False, "action": verb, "count": 0, "totals": []}, "no jobs are recorded yet"
        )
    bulk = Bulk(queue)
    chosen = job_filter_of(args, queue.registry, see)
    plan = bulk.plan_retry(chosen) if verb == "retry" else bulk.plan_cancel(chosen)
    if not _is_wanted(args, plan, verb, see):
        return Exit.DONE
    return _print_result(args, plan, bulk.retry(plan) if verb == "retry" else bulk.cancel(plan), verb)


def _check_statuses(args: Namespace, allowed: "Sequence[str]", reason: str, see: str) -> None:
    for status in args.status:
        if status not in allowed:
            raise usage_error(f"a job that is {status} {reason}", valid=allowed, see=see)


def _is_wanted(args: Namespace, plan: "BulkPlan", verb: str, see: str) -> bool:
    """Print the preview and ask, unless `--yes` is given."""
    if args.yes and not args.dry_run and plan.count:
        return True
    _print_preview(args, plan, verb)
    if args.dry_run or not plan.count:
        return False
    jobs = counted(plan.count, "job")
    if confirm(
        f"{verb} {jobs}? [y/N] ",
        f"nothing was changed; add `--yes` to {verb} {jobs} without being asked",
        see,
    ):
        return True
    print_stderr("nothing was changed")
    return False


def _print_preview(args: Namespace, plan: "BulkPlan", verb: str) -> None:
    rows = [_row(total) for total in plan.totals]
    head, remarks = f"would {verb} {counted(plan.count, 'job')}", _remarks(plan)
    print_data(
        args,
        _plan_json(plan, verb, done=False),
        lambda: [head, *(text_table(_COLUMNS, rows, args, indent="  ") if rows else ()), *remarks],
        lambda: [head, *(["", *markdown_table(_COLUMNS, rows), ""] if rows else ()), *remarks],
    )


def _remarks(plan: "BulkPlan") -> list[str]:
    remarks = [f"left out: {why}" for why in plan.left_out.values()]
    if plan.retried:
        remarks.append(
            f"left out: {counted(plan.retried, 'job')} that were retried before;"
            " `failwell jobs retry JOB` retries one of them again"
        )
    return remarks


def _plan_json(plan: "BulkPlan", verb: str, *, done: bool) -> dict[str, Any]:
    return {
        "done": done,
        "action": verb,
        "count": plan.count,
        "totals": _objects(plan.totals),
        "left_out": dict(plan.left_out),
        "retried_before": plan.retried,
    }


def _print_result(args: Namespace, plan: "BulkPlan", result: "BulkResult", verb: str) -> int:
    jobs = counted(len(result.jobs), "job")
    if verb == "retry":
        lines = [f"submitted {jobs} again"]
    else:
        lines = [f"asked the host to cancel {jobs}" if result.is_requested else f"cancelled {jobs}"]
    if result.skipped:
        lines.append(f"cannot be submitted again: {first_few(result.skipped)}")
    data = {
        **_plan_json(plan, verb, done=True),
        "count": len(result.jobs),
        "jobs": list(result.jobs),
        "skipped": list(result.skipped),
    }
    return print_data(args, data, [*lines, *_remarks(plan)])
