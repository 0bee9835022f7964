"""`failwell validate`: say everything that is wrong with workflow files, before anything runs."""

import os
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.output import print_json, print_text

if TYPE_CHECKING:
    from failwell.files.mistakes import Mistake
    from failwell.workflow.check.workflow_tree import Checked


def add_options(parser: ArgumentParser) -> None:
    """Declare the files, and how strictly they are taken."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="workflow file")
    parser.add_argument("--strict", action="store_true", help="take warnings for errors")
    parser.add_argument(
        "--allow-outside",
        action="store_true",
        help="let files be included, and sub-workflows lie, outside of the project",
    )


def run(args: Namespace) -> int:
    """Check every file; what they share is told once."""
    from failwell.apps.cli.workflows.problems import print_problems
    from failwell.workflow.check.workflow_tree import check_file

    checked = [
        (path, check_file(path, environ=os.environ, allow_outside=args.allow_outside))
        for path in dict.fromkeys(args.files)
    ]
    mistakes = list(dict.fromkeys(mistake for _, one in checked for mistake in one.mistakes))
    if any(mistake.is_error or args.strict for mistake in mistakes):
        return print_problems(mistakes, args)
    if args.format == "json":
        print_json([_summary(path, one) for path, one in checked])
    elif args.format == "markdown":
        print_text(_markdown(checked, mistakes))
    else:
        print_text(_text(checked, mistakes))
    return Exit.DONE


def _summary(path: str, checked: "Checked") -> dict[str, Any]:
    from failwell.files.mistakes import to_json

    nodes, routes = _size(checked)
    return {
        "id": path,
        "workflow": "" if checked.plan is None else checked.plan.name,
        "digest": "" if checked.plan is None else checked.plan.digest,
        "nodes": nodes,
        "routes": routes,
        "sub_workflows": sorted(checked.children),
        "warnings": to_json(checked.mistakes),
    }


def _text(checked: "list[tuple[str, Checked]]", mistakes: "list[Mistake]") -> str:
    from failwell.files.mistakes import render

    told = [f"{path}: {_sentence(one)}" for path, one in checked]
    return "\n".join([render(mistakes), "", *told] if mistakes else told)


def _markdown(checked: "list[tuple[str, Checked]]", mistakes: "list[Mistake]") -> str:
    from failwell.files.mistakes import to_markdown

    told = [f"- `{path}`: {_sentence(one)}" for path, one in checked]
    return "\n".join([*told, "", to_markdown(mistakes)] if mistakes else told)


def _sentence(checked: "Checked") -> str:
    from failwell.apps.cli.records import counted

    nodes, routes = _size(checked)
    parts = [counted(nodes, "node"), counted(routes, "route")]
    if checked.children:
        parts.append(counted(len(checked.children), "sub-workflow"))
    warned = counted(len(checked.mistakes), "warning") if checked.mistakes else "no mistakes"
    return f"valid ({', '.join(parts)}; {warned})"


def _size(checked: "Checked") -> tuple[int, int]:
    """Nodes and routes of the file and of everything below it."""
    plans = [*([] if checked.plan is None else [checked.plan]), *checked.children.values()]
    nodes = [node for plan in plans for node in plan.nodes.values()]
    return len(nodes), sum(len(node.routes) for node in nodes)
