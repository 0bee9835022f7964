"""`failwell init`: write a workflow file to start from."""

from argparse import Namespace
from pathlib import Path

from failwell.cli.listing import Listing, print_listing
from failwell.cli.output import print_data
from failwell.cli.parser import Parser
from failwell.cli.text_file import write_text

STARTERS = {
    "pipeline": "steps in a row, with retries and routes for typed errors",
    "review": "a loop with checks side by side and a gate that a person answers",
    "batch": "one script for each item, with keys, a time limit and a report of what failed",
}
"""Starter → what it shows. Each is a file in the folder `starters`."""
_FILE = "workflow.yaml"


def add_options(parser: Parser) -> None:
    """Declare the starter and the file."""
    parser.add_argument(
        "starter",
        nargs="?",
        choices=tuple(STARTERS),
        default="pipeline",
        metavar="STARTER",
        help=f"{', '.join(STARTERS)} (default: pipeline)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", default=_FILE, help=f"the file (default: {_FILE})")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    parser.add_argument("--list", action="store_true", help="list the starters, and write nothing")
    parser.epilog = "example: failwell init review -o release.yaml"


def run(args: Namespace) -> int:
    """Write the file, and print the commands that come next."""
    if args.list:
        rows = list(STARTERS.items())
        objects = [{"id": name, "shows": what} for name, what in rows]
        return print_listing(args, Listing(("starter", "shows"), rows, objects))
    text = starter_text(args.starter, args.output)
    write_text(args.output, [text], force=args.force, see="failwell init --help", mode=0o644)
    from shlex import quote

    file = quote(args.output)
    commands = [f"failwell validate {file}", f"failwell run {file}"]
    return print_data(
        args,
        {"id": args.output, "starter": args.starter, "next": commands},
        [f"wrote {args.output}: {STARTERS[args.starter]}", *(f"next: {command}" for command in commands)],
        [f"Wrote `{args.output}`. Next:", "", *(f"- `{command}`" for command in commands)],
    )


def starter_text(starter: str, file: str = _FILE) -> str:
    """The text of a starter; the commands in its head name `file`."""
    from importlib.resources import files

    text = (files("failwell.cli.runs") / "starters" / f"{starter}.yaml").read_text(encoding="utf-8")
    return text.replace(f"run {_FILE}", f"run {Path(file).name}")
