"""`failwell job submit --stream`: the items of a job, one a line, as they are made."""

from argparse import Namespace
from typing import TYPE_CHECKING

from failwell.apps.cli.output import say
from failwell.apps.cli.parser import wrong

if TYPE_CHECKING:
    from failwell.jobs.job import JobRequest
    from failwell.jobs.runtime import Runtime


def stream(args: Namespace, request: "JobRequest") -> int:
    """Run the job here and print its items. Whoever leaves before the end cancels it.

    Raises:
        Usage: another process runs the jobs of this store, and the items would go to that one.
        Fault: the job failed.
    """
    from failwell.apps.cli.jobs.host import host
    from failwell.apps.cli.jobs.submit import aside
    from failwell.fault.base import Fault
    from failwell.jobs.faults import HostElsewhere
    from failwell.jobs.store.rows import kept_result
    from failwell.report.describe import describe

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
                say(item if isinstance(item, str) and not is_json else kept_result(item))

    try:
        return host(args, until=until)
    except HostElsewhere as elsewhere:
        who = "another process" if elsewhere.pid is None else f"process {elsewhere.pid}"
        raise wrong(
            f"{who} runs the jobs of this store, and items come only to the process that runs the job;"
            " end it, or give another `--store DIR`",
            see="failwell workers list",
        ) from None
    except Fault as fault:
        job = describe(fault).scene.job
        if job is not None:
            aside(args, f"job {job} ended badly; `failwell job show {job}` tells all about it")
        raise
