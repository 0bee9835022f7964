"""`failwell run` and `failwell resume`: run a workflow, show its progress, and print its result."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from failwell.cli.options__answer_timeout import add_answer_timeout
from failwell.cli.parser import usage_error
from failwell.cli.records import add_store
from failwell.cli.temporal.connection import LOCAL, add_engine

if TYPE_CHECKING:
    from failwell.workflows.running.settings import DriveResult, Settings

PROGRESS = ("auto", "live", "plain", "none")


def add_options(parser: ArgumentParser) -> None:
    """Declare what to run and with what."""
    parser.add_argument("workflow", metavar="WORKFLOW", help="a workflow file")
    parser.add_argument("--run-id", metavar="ID", help="the id of the run (default: a new one)")
    parser.add_argument(
        "-m",
        "--metadata",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a note recorded with the run",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="check the file and the inputs, print the plan, and run nothing",
    )
    add_run_options(parser)
    add_engine(parser, default=LOCAL)
    parser.epilog = (
        "The result goes to stdout as JSON, everything else to stderr. "
        "Exit code 3: a typed error that no route handled."
    )


def add_run_options(parser: ArgumentParser) -> None:
    """Declare what `run` and `resume` share."""
    parser.add_argument(
        "-i",
        "--input",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an input: JSON, a number, true/false/null, or text; `@FILE` reads the text of a file",
    )
    parser.add_argument(
        "--progress", choices=PROGRESS, default="auto", help="what to show on stderr (default: auto)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="--progress none")
    parser.add_argument("--silent", action="store_true", help="print only the result and errors")
    parser.add_argument(
        "--no-input", action="store_true", help="never ask at the terminal; gates wait to be answered"
    )
    parser.add_argument(
        "--skip-gates",
        action="store_true",
        help="answer every gate with its first option, and skip questions",
    )
    parser.add_argument(
        "--wait", action="store_true", help="wait for answers and times, instead of leaving with exit code 4"
    )
    parser.add_argument(
        "--answer-http",
        action="store_true",
        help="wait for answers over HTTP, on this machine and with a token",
    )
    add_answer_timeout(parser, "run")
    parser.add_argument(
        "--detach",
        action="store_true",
        help="run it in the background: print its id and its log file, and return",
    )
    parser.add_argument(
        "--allow-outside", action="store_true", help="let the file include files outside its project"
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="call this model in every agent, such as openai:gpt-5 or scripted:replies.yaml",
    )
    add_store(parser)
    parser.add_argument(
        "--durability",
        choices=("normal", "full"),
        default="normal",
        help="full: every record reaches the disk before anything follows from it",
    )


def run(args: Namespace) -> int:
    """Run the workflow."""
    inputs = read_inputs(args)
    metadata = read_pairs(args, "metadata")
    if args.dry_run:
        from failwell.cli.runs.dry_run import print_plan

        return print_plan(args, inputs)
    from failwell.cli.runs.run__run_command import RunCommand

    async def work(settings: "Settings") -> "DriveResult":
        from failwell.workflows.running.launch import start

        return await start(args.workflow, inputs, settings, run=args.run_id, metadata=metadata)

    return RunCommand(args, inputs).execute(work)


def read_inputs(args: Namespace) -> dict[str, Any]:
    """The values of `--input`; each is converted to the type that the workflow declares."""
    from failwell.workflows.template.values import TypedText

    see = f"failwell {args.command} --help"
    inputs: dict[str, Any] = {}
    for name, value in _pairs(args, "input"):
        if value.startswith("@"):
            from failwell.cli.text_file import text_of

            # As the shell's $(cat FILE): the newline that editors add is no part of a token.
            value = text_of(value[1:], f"input `{name}`", see).removesuffix("\n")  # noqa: PLW2901
        inputs[name] = TypedText(value)
    return inputs


def read_pairs(args: Namespace, option: str) -> dict[str, str]:
    """The NAME=VALUE pairs of an option, as text."""
    return dict(_pairs(args, option))


def _pairs(args: Namespace, option: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for text in getattr(args, option):
        name, sign, value = text.partition("=")
        if not sign or not name:
            name = option.replace("_", "-")
            raise usage_error(f"`--{name} {text}` is not NAME=VALUE", see=f"failwell {args.command} --help")
        pairs.append((name, value))
    return pairs
