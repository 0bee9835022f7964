"""The options that `run` and `resume` share, and what is read from them."""

from argparse import ArgumentParser, Namespace
from typing import Any

from failwell.apps.cli.parser import wrong

PROGRESS = ("auto", "live", "plain", "none")


def add_running(parser: ArgumentParser) -> None:
    """Declare how a run is run and shown."""
    parser.add_argument(
        "-i",
        "--input",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an input; JSON, numbers, true/false/null, or text; `@FILE` takes the file's text",
    )
    parser.add_argument(
        "--progress", choices=PROGRESS, default="auto", help="what to show on stderr (default: auto)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="--progress none")
    parser.add_argument("--silent", action="store_true", help="nothing but the result and errors")
    parser.add_argument(
        "--no-input", action="store_true", help="never ask at the terminal; gates wait to be answered"
    )
    parser.add_argument("--skip-gates", action="store_true", help="answer every gate with its first option")
    parser.add_argument(
        "--wait", action="store_true", help="stay while the run waits, instead of leaving with exit code 4"
    )
    parser.add_argument(
        "--allow-outside", action="store_true", help="let the file include files outside its project"
    )
    parser.add_argument(
        "--store", metavar="DIR", help="where runs are recorded (default: the user's state folder)"
    )
    parser.add_argument(
        "--durability",
        choices=("normal", "full"),
        default="normal",
        help="full: every record reaches the disk before anything follows from it",
    )


def inputs_of(args: Namespace) -> dict[str, Any]:
    """What `--input` said; each value is read by the type that the workflow declares."""
    from failwell.workflow.template.coerce import TypedText

    given: dict[str, Any] = {}
    for text in args.input:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise wrong(f"`--input {text}` is not NAME=VALUE", see=f"failwell {args.command} --help")
        if value.startswith("@"):
            from failwell.apps.cli.text_file import text_of

            held = text_of(value[1:], f"input `{name}`", f"failwell {args.command} --help")
            # As the shell's $(cat FILE): the line's end that editors add is no part of a token.
            given[name] = TypedText(held.removesuffix("\n"))
        else:
            given[name] = TypedText(value)
    return given


def pairs_of(args: Namespace, option: str) -> dict[str, str]:
    """The NAME=VALUE pairs of another option, as text."""
    told: dict[str, str] = {}
    for text in getattr(args, option):
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise wrong(f"`--{option} {text}` is not NAME=VALUE", see=f"failwell {args.command} --help")
        told[name] = value
    return told
