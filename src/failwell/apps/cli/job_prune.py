"""`failwell job prune`: delete jobs that are over, after saying which and asking."""

import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from failwell.apps.cli.exits import Exit
from failwell.apps.cli.job_find import jobs_of
from failwell.apps.cli.output import is_terminal, say, say_json
from failwell.apps.cli.runs_times import span
from failwell.apps.cli.usage import wrong

if TYPE_CHECKING:
    from failwell.jobs.store import Forgotten

_SEE = "failwell job --help"
_SHOWN = 20
_OVER = ("completed", "failed", "cancelled")


def prune(asked: Namespace) -> int:
    """Find what may go, ask, delete, and say what went."""
    from failwell.jobs.store import Forgotten

    which = _which(asked)
    with jobs_of(asked) as desk:
        would = Forgotten() if desk is None else desk.store.forget(**which, dry_run=True)
        if desk is None or asked.dry_run or not (would.jobs or would.events or would.files):
            return _tell(would, asked, is_done=not asked.dry_run)
        if not asked.yes and not _agreed(would):
            say("nothing was deleted")
            return Exit.DONE
        return _tell(desk.store.forget(**which), asked, is_done=True)


def _which(asked: Namespace) -> dict[str, Any]:
    from time import time

    if asked.older_than is None and asked.keep is None and not asked.state:
        raise wrong("say which jobs may go: `--older-than 30d`, `--keep 100` or `--state failed`", see=_SEE)
    for state in asked.state or ():
        if state not in _OVER:
            raise wrong(
                f"a job that is {state} is not over and cannot be deleted; cancel it first",
                valid=_OVER,
                see=_SEE,
            )
    return {
        "before": None if asked.older_than is None else time() - span(asked.older_than, "--older-than", _SEE),
        "keep": asked.keep or 0,
        "states": asked.state or (),
        "instance": asked.instance,
    }


def _agreed(would: "Forgotten") -> bool:
    if not is_terminal(sys.stdin):
        raise wrong(
            f"{_count(would)} would be deleted; say `--yes` to delete without being asked, or `--dry-run`",
            see=_SEE,
        )
    print(f"delete {_count(would)}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _tell(gone: "Forgotten", asked: Namespace, *, is_done: bool) -> int:
    if asked.format == "json":
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
    mark = "- " if asked.format == "markdown" else "  "
    verb = "deleted" if is_done else "would delete"
    lines = [f"{verb} {_count(gone)}"]
    lines += [f"{mark}{job}" for job in gone.jobs[:_SHOWN]]
    if len(gone.jobs) > _SHOWN:
        lines.append(f"{mark}and {len(gone.jobs) - _SHOWN} more")
    if gone.needed:
        lines.append(f"left alone, because their runs are not over: {_some(gone.needed)}")
    if gone.files_left:
        lines.append(f"could not be deleted: {_some(gone.files_left)}")
    say("\n".join(lines))
    return Exit.DONE


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _count(gone: "Forgotten") -> str:
    files = f" and {_many(gone.files, 'file')}" if gone.files else ""
    return f"{_many(len(gone.jobs), 'job')} with {_many(gone.events, 'event')}{files}"


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
