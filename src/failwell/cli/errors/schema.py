"""`failwell schema`: print the JSON Schema of a report, a problem document or a workflow file."""

from argparse import Namespace

from failwell.cli.exit_codes import Exit
from failwell.cli.output import print_json, print_text
from failwell.cli.parser import Parser

FILES = {"report": "error-v1.json", "problem": "problem-v1.json"}
WORKFLOW = "workflow"
"""Its schema is made from the tables that workflow files are read by."""


def add_options(parser: Parser) -> None:
    """Declare which schema."""
    parser.add_argument(
        "document",
        nargs="?",
        default="report",
        choices=[*FILES, WORKFLOW],
        help="whose schema (default: report); `workflow` is for editors",
    )


def run(args: Namespace) -> int:
    """Print it."""
    if args.document == WORKFLOW:
        from failwell.workflows.compile.json_schema import workflow_schema

        print_json(workflow_schema())
        return Exit.DONE
    from importlib.resources import files

    print_text((files("failwell.errors") / "schema" / FILES[args.document]).read_text(encoding="utf-8"))
    return Exit.DONE
