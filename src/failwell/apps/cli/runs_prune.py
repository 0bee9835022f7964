"""`failwell runs prune`: delete old runs, after saying which and asking."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from failwell.apps.cli.exits import Exit
from failwell.apps.cli.output import say, say_json
from failwell.apps.cli.pruning import agreed, many, told
from failwell.apps.cli.runs_find import journal
from failwell.apps.cli.runs_times import span
from failwell.apps.cli.usage import wrong

if TYPE_CHECKING:
    from failwell.journal.store import Pruned

_SEE = "failwell runs --help"


def prune(asked: Namespace) -> int:
    """Find what may go, ask, delete, and say what went."""
    from time import time

    from failwell.journal.store import Pruned

    if asked.older_than is None and asked.keep is None and not asked.status:
        raise wrong("say which runs may go: `--older-than 30d`, `--keep 100` or `--status failed`", see=_SEE)
    which: dict[str, Any] = {
        "before": None if asked.older_than is None else time() - span(asked.older_than, "--older-than"),
        "keep": asked.keep or 0,
        # `prune` leaves alone whatever has a process, so what says `running` and goes was interrupted.
        "statuses": ["running" if status == "interrupted" else status for status in asked.status or ()],
    }
    with journal(asked) as store:
        would = Pruned() if store is None else store.prune(**which, dry_run=True)
        if store is None or asked.dry_run or not would.runs:
            return _tell(would, asked, is_done=not asked.dry_run)
        if not asked.yes and not agreed(_count(would), _SEE):
            say("nothing was deleted")
            return Exit.DONE
        return _tell(store.prune(**which), asked, is_done=True)


def _tell(pruned: "Pruned", asked: Namespace, *, is_done: bool) -> int:
    if asked.format == "json":
        say_json(
            {
                "deleted": is_done,
                "runs": list(pruned.runs),
                "events": pruned.events,
                "kept_live": list(pruned.kept_live),
            }
        )
        return Exit.DONE
    lines = told(_count(pruned), pruned.runs, asked.format, is_done=is_done)
    if pruned.kept_live:
        lines.append(f"left alone, because they are running: {', '.join(pruned.kept_live)}")
    say("\n".join(lines))
    return Exit.DONE


def _count(pruned: "Pruned") -> str:
    return f"{many(len(pruned.runs), 'run')} with {many(pruned.events, 'event')}"
