"""`failwell jobs logs`: what a job printed and logged, up to now or as it comes."""

from argparse import Namespace
from typing import TYPE_CHECKING

from failwell.cli.exit_codes import Exit
from failwell.cli.jobs.jobs import find_job, job_queue
from failwell.cli.jobs.jobs_show import OutputFollower, line_json, line_text
from failwell.cli.output import print_aside, print_json_text, print_text
from failwell.cli.parser import Parser, usage_error
from failwell.cli.records import add_name, add_store, at_least

if TYPE_CHECKING:
    from collections.abc import Sequence

    from failwell.jobs.output import OutputLine

_STREAMS = ("stdout", "stderr", "log")


def add_logs_options(parser: Parser) -> None:
    """Declare which job, and how much."""
    add_name(parser, "job")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the job ends")
    parser.add_argument("-n", "--lines", metavar="N", type=at_least(0), help="only the last N lines")
    parser.add_argument("--stream", choices=_STREAMS, help="only what was printed there, or logged")
    add_store(parser)
    parser.epilog = "The last 200 lines of a job are stored. example: failwell jobs logs last --follow"


def run_logs(args: Namespace) -> int:
    """Print what a job printed and logged."""
    if args.follow and args.lines is not None:
        raise usage_error("`--follow` and `--lines` exclude each other", see="failwell jobs logs --help")
    with job_queue(args) as queue:
        job = find_job(queue, args.job)
        assert queue is not None
        follower = OutputFollower(queue.store.folder)
        is_silent, is_hosted = True, True
        with queue.store.commit_watch() as watch:
            while True:
                # Read before the lines: what is printed later is read in the next round.
                is_over = not args.follow or queue.find(job.id).state.is_final
                lines = [line for line in follower.new(job.id) if args.stream in (None, line.stream)]
                if lines:
                    is_silent = False
                    _print(lines if args.lines is None else lines[len(lines) - args.lines :], args)
                if is_over:
                    break
                if is_hosted and not (is_hosted := queue.store.is_hosted()):
                    print_aside(
                        args, f"job {job.id} waits: no process runs jobs now; `failwell workers run` does"
                    )
                watch.wait(watch.interval)
    if is_silent:
        print_aside(args, f"job {job.id} has printed nothing")
    return Exit.DONE


def _print(lines: "Sequence[OutputLine]", args: Namespace) -> None:
    if not lines:
        return
    if args.format == "json":
        from failwell.store.event import to_json

        print_json_text("\n".join(to_json(line_json(line)) for line in lines))
    elif args.format == "markdown":
        from failwell.delivery.agent_output import code

        print_text([f"- {line.stream}: {code(line.text)}" for line in lines])
    else:
        print_text([line_text(line) for line in lines])
