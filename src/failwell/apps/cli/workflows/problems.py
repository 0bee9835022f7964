"""Prints every mistake of a workflow file on stderr, in the format of errors."""

import sys
from argparse import Namespace
from collections.abc import Collection, Sequence

from failwell.apps.cli.commands import JSON, MARKDOWN
from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.output import error_format
from failwell.apps.cli.records import counted
from failwell.fault.axes import ActionKind
from failwell.fault.base import Fault
from failwell.fault.facts import UserAction
from failwell.files.mistakes import Mistake, render, to_json, to_markdown


class WorkflowRefused(Fault, kind="validation.config_invalid"):
    """A workflow file has mistakes, so nothing was run."""


def print_problems(mistakes: Sequence[Mistake], args: Namespace) -> int:
    """Print every mistake and return the exit code. Nothing goes to stdout."""
    print(render_problems(mistakes, error_format(args)), file=sys.stderr, flush=True)
    return Exit.INVALID_USAGE


def render_problems(mistakes: Sequence[Mistake], form: str) -> str:
    """Every mistake, and how many there are, as text, Markdown or one JSON object."""
    if form not in (JSON, MARKDOWN):
        return f"{render(mistakes)}\n\n{tally(mistakes)}"
    if form == MARKDOWN:
        return f"# Error: workflow refused\n\n{tally(mistakes)}\n\n{to_markdown(mistakes)}"
    from json import dumps

    from failwell.delivery.agent_output import agent_json
    from failwell.report.describe import describe

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
