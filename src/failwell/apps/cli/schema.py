"""`failwell schema`: print the JSON Schema that ships with the package."""

from argparse import ArgumentParser, Namespace

from failwell.apps.cli.exits import Exit
from failwell.apps.cli.output import say

FILES = {"report": "error-v1.json", "problem": "problem-v1.json"}


def add_options(parser: ArgumentParser) -> None:
    """Declare which schema."""
    parser.usage = "%(prog)s [report|problem] [options]"
    parser.add_argument(
        "document", nargs="?", default="report", choices=list(FILES), help="whose schema (default: report)"
    )


def run(asked: Namespace) -> int:
    """Print it as it is shipped."""
    from importlib.resources import files

    say((files("failwell.report") / "schema" / FILES[asked.document]).read_text(encoding="utf-8"))
    return Exit.DONE
