"""`failwell top`: workers, memory, running and waiting jobs; live on a terminal, once elsewhere."""

import sys
from argparse import Namespace
from typing import Any

from failwell.cli.output import (
    is_terminal,
    print_data,
)
from failwell.cli.parser import Parser
from failwell.cli.records import add_store
from failwell.cli.times import lasted

_EVERY = 1.0
_WAITING = ("id", "instance", "status", "waits", "why")
_RUNNING = ("id", "instance", "attempt", "runs", "progress", "message")


def add_options(parser: Parser) -> None:
    """Declare the options."""
    parser.add_argument("--once", action="store_true", help="print once and end, also on a terminal")
    add_store(parser)


def run(args: Namespace) -> int:
    """Show the jobs and the workers."""
    if args.format == "text" and not args.once and is_terminal(sys.stdout):
        from failwell.calls.clock import SYSTEM_CLOCK
        from failwell.cli.live_screen import draw_again

        draw_again(args, lambda _width: lines(picture(args), args), lambda: SYSTEM_CLOCK.sleep(_EVERY))
    snapshot = picture(args)
    return print_data(args, snapshot, lines(snapshot, args))


def picture(args: Namespace) -> dict[str, Any]:
    """The snapshot of the hosts; without a host, the jobs of the store."""
    from failwell.cli.jobs.jobs import job_queue
    from failwell.cli.jobs.workers import look

    snapshot = look(args)
    counts: dict[str, int] = {}
    waiting: list[dict[str, Any]] = []
    with job_queue(args) as queue:
        if queue is not None:
            counts = queue.store.counts()
            if snapshot is not None:
                # The snapshots are up to a second old; the counts are exact.
                return {"hosted": True, **snapshot, "counts": counts}
            jobs = queue.store.jobs(states=("pending", "waiting", "running"), limit=50, results=False)
            waiting = [
                {
                    "id": job.id,
                    "instance": job.request.instance,
                    "state": job.state.value,
                    "priority": job.request.priority,
                    "submitted": job.submitted_at.timestamp(),
                    "not_before": None if job.not_before is None else job.not_before.timestamp(),
                    "reason": "no process runs jobs",
                }
                for job in jobs
            ]
    return {"hosted": False, "counts": counts, "machine": [], "workers": [], "jobs": [], "waiting": waiting}


def lines(snapshot: dict[str, Any], args: Namespace) -> list[str]:
    """The snapshot as text or Markdown."""
    from failwell.cli.jobs.workers import table
    from failwell.cli.listing import markdown_table, text_table

    is_markdown = args.format == "markdown"
    text_lines = [head(snapshot), *machine(snapshot)]
    for title, columns, rows in (
        ("workers", *table(snapshot["workers"])),
        ("running", _RUNNING, [_running(entry, snapshot) for entry in snapshot["jobs"]]),
        ("waiting", _WAITING, [_waiting(entry, snapshot) for entry in snapshot["waiting"]]),
    ):
        if rows:
            drawn = markdown_table(columns, rows) if is_markdown else text_table(columns, rows, args)
            text_lines += [
                "",
                f"## {title}" if is_markdown else title,
                *([""] if is_markdown else []),
                *drawn,
            ]
    return text_lines


def head(snapshot: dict[str, Any]) -> str:
    """The hosts and the number of jobs in each status."""
    counts = ", ".join(f"{number:,} {state}" for state, number in snapshot["counts"].items() if number)
    pids = [str(host["pid"]) for host in snapshot.get("hosts", ())]
    host = f"host{'s' * (len(pids) > 1)} {', '.join(pids)}" if snapshot["hosted"] else "no process runs jobs"
    paused = ", paused" if snapshot.get("paused") else ""
    trouble = f"; {snapshot['trouble']}" if snapshot.get("trouble") else ""
    return f"{host}{paused}: {counts or 'no jobs'}{trouble}"


def machine(snapshot: dict[str, Any]) -> list[str]:
    """The free memory of the machine."""
    return [
        f"{pool['id']}: {pool['free_mb']:,.0f} of {pool['total_mb']:,.0f} MB free"
        for pool in snapshot["machine"]
    ]


def _now(snapshot: dict[str, Any]) -> float:
    from time import time

    return snapshot.get("at") or time()


def _running(job: dict[str, Any], snapshot: dict[str, Any]) -> tuple[str, ...]:
    progress = "?" if job["progress"] < 0 else f"{job['progress']:.0%}"
    runs = lasted(max(0.0, _now(snapshot) - (job["started"] or _now(snapshot))))
    return job["id"], job["instance"], str(job["attempt"]), runs, progress, job["message"]


def _waiting(job: dict[str, Any], snapshot: dict[str, Any]) -> tuple[str, ...]:
    waits = lasted(max(0.0, _now(snapshot) - job["submitted"]))
    return job["id"], job["instance"], job["state"], waits, _why(job, snapshot)


def _why(job: dict[str, Any], snapshot: dict[str, Any]) -> str:
    """Why a job does not run: the queue's reason, or else one from the snapshot."""
    if not snapshot["hosted"]:
        return job["reason"] or ""
    workers = [entry for entry in snapshot["workers"] if entry["id"] == job["instance"]]
    seconds = (job["not_before"] or 0.0) - _now(snapshot)
    next_attempt = f"next attempt in {lasted(seconds)}" if seconds > 0 else ""
    if workers and all(worker["state"] == "quarantined" for worker in workers):
        quarantine = f"`{job['instance']}` is quarantined, because it died too often"
        return f"{quarantine}; {next_attempt}" if next_attempt else quarantine
    if next_attempt:
        return next_attempt
    if job["reason"]:
        return job["reason"]
    if snapshot.get("paused"):
        return "the queue is paused"
    if workers and all(worker["jobs"] >= worker["concurrency"] for worker in workers):
        return f"`{job['instance']}` is busy: it runs {sum(worker['jobs'] for worker in workers)} at a time"
    return "waits for other jobs to end" if snapshot["jobs"] else "is about to start"
