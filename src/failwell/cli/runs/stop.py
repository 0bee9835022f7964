"""`failwell stop`: stop a running workflow."""

from argparse import Namespace

from failwell.cli.output import print_data
from failwell.cli.parser import Parser, usage_error
from failwell.cli.records import add_name, add_store
from failwell.cli.runs.runs import current_run, journal, resume_line


def add_options(parser: Parser) -> None:
    """Declare which run."""
    add_name(parser, "run")
    parser.add_argument("--reason", default="user", metavar="TEXT", help="why; recorded with the run")
    parser.add_argument(
        "--force-after",
        metavar="SPAN",
        default="30s",
        help="kill its process, and what that started, if it has not ended by then (default: 30s)",
    )
    add_store(parser)
    parser.epilog = "What the run has done stays recorded, and it can be resumed."


def run(args: Namespace) -> int:
    """Stop a running workflow and wait until it has ended."""
    from failwell.cli.temporal.remote import cancel as remote_cancel
    from failwell.cli.temporal.remote import is_remote
    from failwell.cli.terminal_questions import user_name
    from failwell.cli.times import span
    from failwell.workflows.gates import NotRunning, cancel

    force_after = span(args.force_after, "--force-after", "failwell stop --help")
    with journal(args) as store:
        stopped = current_run(args, store)
        assert store is not None
        try:
            if is_remote(store.folder, stopped.id) and stopped.ended is None:
                status = remote_cancel(
                    store, stopped.id, by=user_name(), reason=args.reason, patience=force_after
                )
            else:
                status = cancel(store, stopped, by=user_name(), reason=args.reason, force_after=force_after)
        except NotRunning as error:
            raise usage_error(error.summary(), see=f"failwell runs show {stopped.id}") from None
        resume = resume_line(args, store, stopped.id)
    data = {"id": stopped.id, "status": status, "resume": resume}
    if stopped.status == "interrupted":
        text = f"no process was running {stopped.id}; it is recorded as {status} and can be resumed"
        return print_data(args, data, [text, f"next: {resume}"])
    return print_data(args, data, f"run {stopped.id} has ended: {status}")
