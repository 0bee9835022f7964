"""`failwell stop`: ask a run that is going on to end. What it has done stays on record."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from failwell.apps.cli.commands import JSON
from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.output import say, say_json
from failwell.apps.cli.parser import wrong
from failwell.apps.cli.workflows.runs_find import add_store, find_run, journal

if TYPE_CHECKING:
    from failwell.journal.store import Store


def add_options(parser: ArgumentParser) -> None:
    """Declare which run."""
    parser.usage = "%(prog)s RUN [options]"
    parser.add_argument("run", metavar="RUN", help="an id, the beginning of one, or `last`")
    parser.add_argument("--reason", default="user", metavar="TEXT", help="why; kept with the run")
    add_store(parser)


def run(args: Namespace) -> int:
    """Ask it to end, and wait until it has."""
    from failwell.apps.cli.workflows.terminal import whoever
    from failwell.journal.folder import run_folder, state_folder
    from failwell.workflow.run.control import say as say_to

    with journal(args) as store:
        found = find_run(store, args.run)
        assert store is not None
        request = {"do": "cancel", "by": whoever(), "reason": args.reason}
        reply = say_to(run_folder(state_folder(args.store), found.id), request)
        if reply is None and found.status == "interrupted":
            return _close(store, found.id, args)
        if reply is None:
            raise wrong(
                f"nobody is running `{found.id}`; it is {found.status}", see=f"failwell runs show {found.id}"
            )
        events = store.tail(found.id, found.events - 1)
        last = next((event.type for event in events if event.is_terminal), "unknown")
    return _say(found.id, last, args)


def _close(store: "Store", run: str, args: Namespace) -> int:
    """Record the end of a run whose process died."""
    from failwell.journal.status import close_interrupted
    from failwell.runtime.clock import SYSTEM_CLOCK

    close_interrupted(store, run, at=SYSTEM_CLOCK.now().timestamp())
    return _say(run, store.run(run).status, args)


def _say(run: str, last: str, args: Namespace) -> int:
    ended = last.removeprefix("run:")
    if args.format == JSON:
        say_json({"id": run, "status": ended})
    else:
        say(f"run {run} has ended: {ended}")
    return Exit.DONE
