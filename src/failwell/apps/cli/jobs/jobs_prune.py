"""`failwell job prune`: delete jobs that are over, after saying which and asking."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.jobs.jobs_find import jobs_of
from failwell.apps.cli.output import say, say_json
from failwell.apps.cli.parser import wrong
from failwell.apps.cli.pruning import agreed, many, some, told
from failwell.apps.cli.times import span

if TYPE_CHECKING:
    from failwell.jobs.store.store import Forgotten

_SEE = "failwell job --help"
_OVER = ("completed", "failed", "cancelled")


def prune(args: Namespace) -> int:
    """Find what may go, ask, delete, and say what went."""
    from failwell.jobs.store.store import Forgotten

    which = _which(args)
    with jobs_of(args) as desk:
        would = Forgotten() if desk is None else desk.store.forget(**which, dry_run=True)
        if desk is None or args.dry_run or not (would.jobs or would.events or would.files):
            return _tell(would, args, is_done=not args.dry_run)
        if not args.yes and not agreed(_count(would), _SEE):
            say("nothing was deleted")
            return Exit.DONE
        return _tell(desk.store.forget(**which), args, is_done=True)


def _which(args: Namespace) -> dict[str, Any]:
    from time import time

    if args.older_than is None and args.keep is None and not args.state:
        raise wrong("say which jobs may go: `--older-than 30d`, `--keep 100` or `--state failed`", see=_SEE)
    for state in args.state or ():
        if state not in _OVER:
            raise wrong(
                f"a job that is {state} is not over and cannot be deleted; cancel it first",
                valid=_OVER,
                see=_SEE,
            )
    return {
        "before": None if args.older_than is None else time() - span(args.older_than, "--older-than", _SEE),
        "keep": args.keep or 0,
        "states": args.state or (),
        "instance": args.instance,
    }


def _tell(gone: "Forgotten", args: Namespace, *, is_done: bool) -> int:
    if args.format == "json":
        say_json(
            {
                "deleted": is_done,
                "jobs": list(gone.jobs),
                "events": gone.events,
                "files": gone.files,
                "files_left": list(gone.files_left),
                "kept_for_runs": list(gone.needed),
            }
        )
        return Exit.DONE
    lines = told(_count(gone), gone.jobs, args.format, is_done=is_done)
    if gone.needed:
        lines.append(f"left alone, because their runs are not over: {some(gone.needed)}")
    if gone.files_left:
        lines.append(f"could not be deleted: {some(gone.files_left)}")
    say("\n".join(lines))
    return Exit.DONE


def _count(gone: "Forgotten") -> str:
    files = f" and {many(gone.files, 'file')}" if gone.files else ""
    return f"{many(len(gone.jobs), 'job')} with {many(gone.events, 'event')}{files}"
