"""`failwell job`: hand in jobs, see how they stand, stop, repeat and delete them."""

from argparse import ArgumentParser, Namespace

from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.output import say, say_json
from failwell.apps.cli.parser import wrong
from failwell.apps.cli.workflows.runs_find import add_store

_ACTIONS = ("list", "submit", "show", "cancel", "retry", "wait", "tail", "prune")
_STATES = ("pending", "running", "waiting", "completed", "failed", "cancelled")
_ONLY_FOR = {
    "state": ("list", "prune"),
    "instance": ("list", "prune"),
    "limit": ("list",),
    "do": ("submit",),
    "priority": ("submit",),
    "timeout": ("submit",),
    "within": ("submit",),
    "key": ("submit",),
    "attempts": ("submit",),
    "wait": ("submit", "retry"),
    "stream": ("submit",),
    "arguments": ("submit",),
    "after": ("tail",),
    "older_than": ("prune",),
    "keep": ("prune",),
    "dry_run": ("prune",),
    "yes": ("prune",),
}
_NEEDS_JOB = ("show", "cancel", "retry", "wait")
LIMIT = 50


def add_options(parser: ArgumentParser) -> None:
    """Declare what can be done with jobs."""
    parser.usage = (
        "%(prog)s [list] [--state STATE ...] [--instance ID] [--limit N] [options]\n"
        "       %(prog)s submit INSTANCE [NAME=VALUE ...] [--arguments FILE] [--do ACTION] [--priority N]\n"
        "                        [--timeout SPAN] [--within SPAN] [--key KEY] [--attempts N]\n"
        "                        [--wait | --stream] [options]\n"
        "       %(prog)s show|cancel|wait JOB [options]\n"
        "       %(prog)s retry JOB [--wait] [options]\n"
        "       %(prog)s tail [JOB] [--after SEQ] [options]\n"
        "       %(prog)s prune [--older-than SPAN] [--keep N] [--state STATE ...] [--instance ID]\n"
        "                        [--dry-run | --yes] [options]"
    )
    parser.add_argument(
        "action", nargs="?", default="list", choices=_ACTIONS, help="what to do (default: list)"
    )
    parser.add_argument(
        "job", nargs="?", metavar="JOB", help="an id, the beginning of one, or `last`; or who is to do it"
    )
    parser.add_argument(
        "values",
        nargs="*",
        metavar="NAME=VALUE",
        help="arguments, as JSON or as plain text; `@FILE` for a file's text",
    )
    parser.add_argument(
        "--arguments",
        metavar="FILE",
        help="a file with one JSON object of arguments; `-` is the standard input",
    )
    parser.add_argument(
        "--state", action="append", choices=_STATES, help="only jobs that stand so (may be repeated)"
    )
    parser.add_argument("--instance", metavar="ID", help="only jobs of this instance")
    parser.add_argument("--limit", metavar="N", type=int, help=f"list so many at most (default: {LIMIT})")
    parser.add_argument("--do", metavar="ACTION", help="which method of the capability (default: execute)")
    parser.add_argument("--priority", metavar="N", type=int, help="higher goes first (default: 0)")
    parser.add_argument("--timeout", metavar="SPAN", help="how long one attempt may run: `90s`")
    parser.add_argument("--within", metavar="SPAN", help="when it must be done, waiting included: `2h`")
    parser.add_argument("--key", metavar="KEY", help="a second job with the same key is the first")
    parser.add_argument(
        "--attempts", metavar="N", type=int, help="attempts in all (default: as the policy says)"
    )
    parser.add_argument(
        "--wait", action="store_true", help="stay until it is over, and run it if nobody else does"
    )
    parser.add_argument(
        "--stream", action="store_true", help="run it here and print what it makes, one item a line"
    )
    parser.add_argument("--after", metavar="SEQ", type=int, help="only events with a higher number")
    parser.add_argument("--older-than", metavar="SPAN", help="prune jobs that ended so long ago: `30d`")
    parser.add_argument("--keep", metavar="N", type=int, help="never prune the newest N")
    parser.add_argument("--dry-run", action="store_true", help="say what would be pruned, and prune nothing")
    parser.add_argument("--yes", action="store_true", help="prune without being asked")
    add_store(parser)
    parser.epilog = (
        "Jobs wait until `failwell workers run` takes them up, or somebody waits with `--wait`. "
        "try it: failwell job submit transcribe audio=talk.wav --wait"
    )


def run(args: Namespace) -> int:
    """Do what is asked."""
    _check(args)
    if args.action in ("submit", "retry"):
        from failwell.apps.cli.jobs.submit import retry, submit

        return submit(args) if args.action == "submit" else retry(args)
    if args.action == "wait":
        from failwell.apps.cli.jobs.submit import wait

        return wait(args)
    if args.action == "show":
        from failwell.apps.cli.jobs.jobs_show import show

        return show(args)
    if args.action == "tail":
        from failwell.apps.cli.jobs.tail import tail

        return tail(args)
    if args.action == "prune":
        from failwell.apps.cli.jobs.jobs_prune import prune

        return prune(args)
    return _cancel(args) if args.action == "cancel" else _list(args)


def _check(args: Namespace) -> None:
    see = "failwell job --help"
    for name, actions in _ONLY_FOR.items():
        if getattr(args, name) not in (None, False) and args.action not in actions:
            told = " and ".join(f"`failwell job {action}`" for action in actions)
            raise wrong(f"`--{name.replace('_', '-')}` is for {told}, not for `{args.action}`", see=see)
    if args.action == "submit" and args.job is None:
        raise wrong("`failwell job submit` needs to know who is to do it", see="failwell capability list")
    if args.action in _NEEDS_JOB and args.job is None:
        raise wrong(f"`failwell job {args.action}` needs the id of a job, or `last`", see="failwell job list")
    if args.action in ("list", "prune") and args.job is not None:
        raise wrong(f"unexpected argument `{args.job}`", see=see)
    if args.values and args.action != "submit":
        raise wrong(f"unexpected argument `{args.values[0]}`", see=see)
    if args.stream and (args.wait or args.key is not None):
        other = "--wait" if args.wait else "--key"
        raise wrong(f"`--stream` and `{other}` exclude each other", see=see)
    for name, least in (("limit", 0), ("keep", 0), ("attempts", 1)):
        given = getattr(args, name)
        if given is not None and given < least:
            raise wrong(f"`--{name}` is at least {least}", see=see)


def _list(args: Namespace) -> int:
    from failwell.apps.cli.jobs.jobs_find import jobs_of
    from failwell.apps.cli.jobs.jobs_show import COLUMNS, row, summary

    with jobs_of(args) as desk:
        limit = LIMIT if args.limit is None else args.limit
        found = (
            []
            if desk is None
            else desk.store.jobs(states=args.state or (), instance=args.instance, limit=limit, results=False)
        )
        told = [] if desk is None or args.format != "json" else [summary(job, desk.shelf) for job in found]
    if args.format == "json":
        say_json(told)
    elif args.format == "markdown":
        from failwell.apps.cli.tables import markdown_table

        say("\n".join(markdown_table(COLUMNS, [row(job) for job in found])))
    elif found:
        from failwell.apps.cli.tables import text_table

        say("\n".join(text_table(COLUMNS, [row(job) for job in found], args)))
    else:
        import sys

        print("no jobs are recorded here yet" if desk is None else "no recorded job fits", file=sys.stderr)
    return Exit.DONE


def _cancel(args: Namespace) -> int:
    from failwell.apps.cli.jobs.jobs_find import find_job, jobs_of

    with jobs_of(args) as desk:
        job = find_job(desk, args.job)
        assert desk is not None
        if not desk.cancel(job.id):
            raise wrong(f"job `{job.id}` is {job.state} already", see=f"failwell job show {job.id}")
        ended = desk.wait(job.id, give_up=lambda: not desk.store.is_hosted())
    if args.format == "json":
        say_json({"id": ended.id, "state": ended.state.value})
    else:
        say(f"job {ended.id} is {ended.state}")
    return Exit.DONE
