"""`failwell validate`: report every mistake in workflow files, before anything runs."""

import os
from argparse import Namespace
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from failwell.cli.commands import JSON, MARKDOWN
from failwell.cli.exit_codes import Exit
from failwell.cli.output import error_format, print_data, print_stderr
from failwell.cli.parser import Parser
from failwell.cli.records import counted
from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.errors.fault import Fault
from failwell.files.mistakes import Mistake, render, to_json, to_markdown

if TYPE_CHECKING:
    from failwell.workflows.check.workflow_tree import Checked


def add_options(parser: Parser) -> None:
    """Declare the files, and how strictly they are taken."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="workflow file")
    parser.add_argument("--strict", action="store_true", help="treat warnings as errors")
    parser.add_argument(
        "--allow-outside",
        action="store_true",
        help="let files be included, and sub-workflows lie, outside of the project",
    )


def run(args: Namespace) -> int:
    """Check every file; a mistake they share is printed once."""
    from failwell.workflows.check.workflow_tree import check_file

    checked = [
        (path, check_file(path, environ=os.environ, allow_outside=args.allow_outside))
        for path in dict.fromkeys(args.files)
    ]
    mistakes = list(dict.fromkeys(mistake for _, result in checked for mistake in result.mistakes))
    if any(mistake.is_error or args.strict for mistake in mistakes):
        return print_problems(mistakes, args)
    return print_data(
        args,
        lambda: [_summary(path, result) for path, result in checked],
        lambda: _text(checked, mistakes),
        lambda: _markdown(checked, mistakes),
    )


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

    lines = [f"{path}: {_sentence(result)}" for path, result in checked]
    return "\n".join([render(mistakes), "", *lines] if mistakes else lines)


def _markdown(checked: "list[tuple[str, Checked]]", mistakes: "list[Mistake]") -> str:
    from failwell.files.mistakes import to_markdown

    lines = [f"- `{path}`: {_sentence(result)}" for path, result in checked]
    return "\n".join([*lines, "", to_markdown(mistakes)] if mistakes else lines)


def _sentence(checked: "Checked") -> str:
    from failwell.cli.records import counted

    nodes, routes = _size(checked)
    parts = [counted(nodes, "node"), counted(routes, "route")]
    if checked.children:
        parts.append(counted(len(checked.children), "sub-workflow"))
    warnings = counted(len(checked.mistakes), "warning") if checked.mistakes else "no mistakes"
    return f"valid ({', '.join(parts)}; {warnings})"


def _size(checked: "Checked") -> tuple[int, int]:
    """Nodes and routes of the file and of everything below it."""
    plans = [*([] if checked.plan is None else [checked.plan]), *checked.children.values()]
    nodes = [node for plan in plans for node in plan.nodes.values()]
    return len(nodes), sum(len(node.routes) for node in nodes)


class WorkflowRefused(Fault, kind="validation.config_invalid"):
    """A workflow file has mistakes, so nothing was run."""


def print_problems(mistakes: Sequence[Mistake], args: Namespace) -> int:
    """Print every mistake and return the exit code. Nothing goes to stdout."""
    form = error_format(args)
    print_stderr(render_problems(mistakes, form), is_json=form == JSON)
    return Exit.INVALID_USAGE


def render_problems(mistakes: Sequence[Mistake], form: str) -> str:
    """Every mistake, and how many there are, as text, Markdown or one JSON object."""
    if form not in (JSON, MARKDOWN):
        return f"{render(mistakes)}\n\n{tally(mistakes)}"
    if form == MARKDOWN:
        return f"# Error: workflow refused\n\n{tally(mistakes)}\n\n{to_markdown(mistakes)}"
    from json import dumps

    from failwell.adapters.describe import describe
    from failwell.delivery.agent_output import agent_json

    fault = WorkflowRefused(
        message=tally(mistakes),
        fields_invalid=[mistake.path for mistake in mistakes if mistake.is_error and mistake.path] or None,
        user_action=UserAction(ActionKind.CHANGE_INPUT, "correct what `mistakes` lists"),
    )
    return dumps(agent_json(describe(fault), mistakes=to_json(mistakes)), ensure_ascii=False)


def tally(mistakes: Collection[Mistake]) -> str:
    """How many errors and warnings there are, and in how many files."""
    errors = sum(mistake.is_error for mistake in mistakes)
    parts = [
        counted(number, word)
        for number, word in ((errors, "error"), (len(mistakes) - errors, "warning"))
        if number
    ]
    files = {mistake.place.file for mistake in mistakes if mistake.place is not None}
    where = f" in {counted(len(files), 'file')}" if len(files) > 1 else ""
    return f"{' and '.join(parts) or 'no mistakes'}{where}"
