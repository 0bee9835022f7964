"""`failwell capabilities prefetch`: lets a capability fetch its models and data before the first job."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from failwell.cli.exit_codes import Exit
from failwell.cli.jobs.capabilities import add_capability, add_instance, check_known, registry
from failwell.cli.output import print_aside, print_json, print_text
from failwell.cli.records import add_store

if TYPE_CHECKING:
    from failwell.jobs.capabilities import CapabilityRegistry
    from failwell.jobs.workers.protocol import WorkerEvent


def add_prefetch_options(parser: ArgumentParser) -> None:
    """Declare which instance."""
    add_capability(parser)
    add_instance(parser)
    add_store(parser)
    parser.epilog = "example: failwell capabilities prefetch transcribe"


def run_prefetch(args: Namespace) -> int:
    """Call the `prefetch` hook of a capability in a process of its own, which ends afterwards."""
    from asyncio import run

    from failwell.cli.jobs.host import warnings_as_lines
    from failwell.jobs.platform import check_platform

    instance = args.instance or args.name
    with registry(args) as capabilities:
        check_known(capabilities, args.name)
        check_platform(capabilities.manifest(args.name))
        with warnings_as_lines():
            has_hook = run(_prefetch(args, capabilities, instance))
    if args.format == "json":
        print_json({"id": instance, "instance": instance, "prefetched": has_hook})
    elif has_hook:
        print_text(f"`{instance}` has its models and data")
    else:
        print_text(f"`{instance}` has nothing to fetch: `{args.name}` has no method `prefetch`")
    return Exit.DONE


async def _prefetch(args: Namespace, capabilities: "CapabilityRegistry", instance: str) -> bool:
    """Start a worker, let it fetch and stop it; `False` if the capability has no such hook."""
    from failwell.jobs.workers.protocol import Progress
    from failwell.jobs.workers.supervisor import SupervisedWorker

    def show(event: "WorkerEvent") -> None:
        if isinstance(event, Progress) and event.message:
            print_aside(args, f"{event.fraction:.0%} {event.message}")

    worker = SupervisedWorker(
        capabilities.manifest(args.name),
        instance=instance,
        config=capabilities.config(instance),
        secrets=capabilities.secrets(args.name),
    )
    worker.listen(show)
    try:
        await worker.prefetch()
        return "prefetch" in worker.about["hooks"]
    finally:
        await worker.stop()
