"""`failwell runs prune`: delete old runs, after saying which and asking."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.output import say, say_json
from failwell.apps.cli.parser import wrong
from failwell.apps.cli.pruning import agreed, many, told
from failwell.apps.cli.times import span
from failwell.apps.cli.workflows.runs_find import journal

if TYPE_CHECKING:
    from failwell.journal.store import PruneResult

_SEE = "failwell runs --help"


def prune(args: Namespace) -> int:
    """Find what may go, ask, delete, and say what went."""
    from time import time

    from failwell.journal.store import PruneResult

    if args.older_than is None and args.keep is None and not args.status:
        raise wrong("say which runs may go: `--older-than 30d`, `--keep 100` or `--status failed`", see=_SEE)
    which: dict[str, Any] = {
        "before": None if args.older_than is None else time() - span(args.older_than, "--older-than"),
        "keep": args.keep or 0,
        "statuses": args.status or (),
    }
    with journal(args) as store:
        would = PruneResult() if store is None else store.prune(**which, dry_run=True)
        if store is None or args.dry_run or not would.runs:
            return _tell(would, args, is_done=not args.dry_run)
        if not args.yes and not agreed(_count(would), _SEE):
            say("nothing was deleted")
            return Exit.DONE
        return _tell(store.prune(**which), args, is_done=True)


def _tell(pruned: "PruneResult", args: Namespace, *, is_done: bool) -> int:
    if args.format == "json":
        say_json(
            {
                "deleted": is_done,
                "runs": list(pruned.runs),
                "events": pruned.events,
                "kept_live": list(pruned.kept_live),
            }
        )
        return Exit.DONE
    lines = told(_count(pruned), pruned.runs, args.format, is_done=is_done)
    if pruned.kept_live:
        lines.append(f"left alone, because they are running: {', '.join(pruned.kept_live)}")
    say("\n".join(lines))
    return Exit.DONE


def _count(pruned: "PruneResult") -> str:
    return f"{many(len(pruned.runs), 'run')} with {many(pruned.events, 'event')}"
