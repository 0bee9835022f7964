"""`failwell describe`: describe a traceback, a reply, a problem document or a saved report."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from json import dumps
from typing import Any

from failwell.cli.errors.describe__pasted_input import FORMS, PastedInput, read_input, recognise
from failwell.cli.exit_codes import Exit
from failwell.cli.output import WIDTH, print_json, print_text, wants_color
from failwell.errors.report import ErrorReport

_ORIGINS = ("code", "call", "tool", "input")
_VIEWS = ("user", "model", "operator", "audit")


def add_options(parser: ArgumentParser) -> None:
    """Declare the input and how it is shown."""
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default="-", help="what to describe (default: stdin)"
    )
    parser.add_argument("--as", dest="form", choices=FORMS, help="what the input is (default: detected)")
    parser.add_argument("--view", choices=_VIEWS, default="operator", help="for whom (default: operator)")
    parser.add_argument(
        "--origin",
        choices=_ORIGINS,
        help="where it arose: in the program's code, in a call that it made, in a tool or in input that it was given",
    )
    parser.add_argument("--provider", help="who sent the reply")
    parser.add_argument("--model", help="which model was called")


def run(args: Namespace) -> int:
    """Read, recognise, show."""
    report = recognise(
        PastedInput(read_input(args.file), args.provider, args.model, origin=args.origin), args.form
    )
    if args.format == "json":
        print_json(report.view(args.view))
    elif args.format == "markdown":
        print_text(_markdown(report, args.view))
    elif args.view not in ("user", "operator"):
        print_text("\n".join(f"{name}: {_plain(value)}" for name, value in report.view(args.view).items()))
    elif _for_a_person(args):
        _panel(report, args)
    else:
        from failwell.delivery.terminal import render_text

        print_text(render_text(report, args.view))
    return Exit.DONE


def _for_a_person(args: Namespace) -> bool:
    import sys

    from failwell.cli.output import is_terminal

    return is_terminal(sys.stdout) or args.color == "always"


def _panel(report: ErrorReport, args: Namespace) -> None:
    import sys

    from failwell.cli.output import print_drawing, terminal
    from failwell.delivery.terminal import panel

    color = wants_color(args)
    console = terminal(sys.stdout, color=color, force_terminal=color or None)
    console.width = min(console.width, WIDTH)
    with console.capture() as drawing:
        console.print(panel(report, args.view))
    print_drawing(drawing.get())


def _markdown(report: ErrorReport, view: str) -> str:
    if view == "operator":
        from failwell.delivery.agent_output import agent_markdown

        return agent_markdown(report)
    from failwell.delivery.agent_output import code, escaped

    members: Mapping[str, Any] = report.view(view)  # pyright: ignore[reportArgumentType]
    lines = [f"- {escaped(name)}: {code(_plain(value))}" for name, value in members.items()]
    return "\n".join([f"# {escaped(report.title)}", "", *lines])


def _plain(value: object) -> str:
    from failwell.delivery.plain_text import neutral

    return neutral(value if isinstance(value, str) else dumps(value, ensure_ascii=False))
