"""Turns an exception into output on stderr and an exit code.

Every error is described first, so a usage error, a full disk and a defect of this program reach
the caller in the same shape: text for a person, Markdown or one JSON object for an agent.
"""

from argparse import ArgumentError, ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from errno import EMFILE, ENFILE
from typing import Any, NamedTuple, cast

from failwell.adapters.describe import describe
from failwell.cli.commands import FORMATS, JSON, TEXT, find_command
from failwell.cli.exit_codes import Exit
from failwell.cli.faults import InternalError
from failwell.cli.output import error_format, print_if_read
from failwell.errors.axes import ActionKind, Blame, Category
from failwell.errors.facts import UserAction
from failwell.errors.fault import Fault
from failwell.errors.missing_extra import MissingExtra
from failwell.errors.report import ErrorReport

_BUG = "internal.bug"
_INVALID_USAGE = frozenset({Category.USER_INPUT, Category.CONFIGURATION, Category.DENIED})


class ErrorOptions(NamedTuple):
    """How errors are shown."""

    format: str
    """The format on stderr."""
    traceback: bool

    @classmethod
    def of(cls, args: Namespace) -> "ErrorOptions":
        """What the parsed arguments say."""
        return cls(error_format(args), args.traceback)


def error_options(words: Sequence[str]) -> ErrorOptions:
    """What the arguments say before they are parsed, because a mistake in them is printed in their format too."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--error-format", nargs="?")
    parser.add_argument("--format", nargs="?")
    parser.add_argument("--json", dest="format", action="store_const", const=JSON)
    parser.add_argument("--agent", action="store_true")
    parser.add_argument("--traceback", action="store_true")
    try:
        args, _ = parser.parse_known_args(list(words))
    except ArgumentError:
        return ErrorOptions(TEXT, traceback=False)
    form = next((form for form in (args.error_format, args.format) if form in FORMATS), None)
    if form is None and args.agent:
        command = find_command(list(words))
        form = JSON if command is None else command.agent_format
    return ErrorOptions(form or TEXT, args.traceback)


def print_error(error: BaseException, arguments: Sequence[str]) -> int:
    """Print `error` in the format that `arguments` ask for, and return the exit code."""
    return print_failure(error, error_options(arguments))


def print_failure(error: BaseException, options: ErrorOptions) -> int:
    """Print `error` as `options` say, and return the exit code."""
    if isinstance(error, BrokenPipeError):
        return Exit.PIPE_CLOSED
    return print_report(describe(_as_fault(error), policy="full" if options.traceback else None), options)


def print_report(report: ErrorReport, options: ErrorOptions) -> int:
    """Print a report as it is, under its own id, and return the exit code."""
    report = with_capability_defect(report)
    code = exit_for(report)
    print_if_read(_render(report, options), is_json=options.format == "json")
    return code


def exit_for(report: ErrorReport) -> Exit:
    """The exit code for a failure."""
    if report.kind == "session.interaction_required":
        return Exit.WAITING
    return Exit.INVALID_USAGE if report.category in _INVALID_USAGE else Exit.FAILED


def _as_fault(error: BaseException) -> BaseException:
    """`error` as a fault with a message for the caller."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, MissingExtra):
        what, _, command = str(error).partition("; ")
        return Fault.wrap(
            error,
            what,
            kind="extension.dependency_missing",
            caller_facing=True,
            user_action=UserAction(ActionKind.FIX_CONFIGURATION, f"install it with `{command}`"),
        )
    if type(error).__module__ == "temporalio.service":
        # What the server refuses is not a defect of this program.
        return Fault.wrap(error, f"the Temporal server answered: {error}", caller_facing=True)
    if isinstance(error, MemoryError):
        return Fault.wrap(error, "there is not enough memory for this", caller_facing=True)
    if isinstance(error, OSError) and error.errno in (EMFILE, ENFILE):
        return Fault.wrap(
            error,
            "too many files are open",
            kind="resource.file_handles",
            caller_facing=True,
            user_action=UserAction(
                ActionKind.FREE_RESOURCES,
                "close files, or raise the limit with `ulimit -n`, then run it again",
            ),
        )
    return InternalError.wrap(
        error,
        f"failwell itself failed ({type(error).__name__}); this is a defect of failwell, not of your input",
        user_action=UserAction(
            ActionKind.CONTACT_SUPPORT, "run it again with `--traceback` and report what it prints"
        ),
    )


def _render(report: ErrorReport, options: ErrorOptions) -> str:
    extras: dict[str, Any] = {}
    for name in ("valid", "near", "tried", "line", "column", "mistakes"):
        if name in report.details:
            extras[name] = report.details[name]
    stack = report.internal.traceback if options.traceback and report.internal is not None else None
    if options.format == "text":
        from failwell.delivery.terminal import render_text

        text = _with_mistakes(report, render_text(report, "user"))
        return f"{stack}\n{text}" if stack else text
    if stack:
        extras["traceback"] = stack.splitlines()
    if options.format == "markdown":
        from failwell.delivery.agent_output import agent_markdown

        return agent_markdown(report, **extras).rstrip("\n")
    from json import dumps

    from failwell.delivery.agent_output import agent_json

    return dumps(agent_json(report, **extras), ensure_ascii=False)


def _with_mistakes(report: ErrorReport, text: str) -> str:
    """`text` with every mistake on a line of its own, where the message has several and would be cut."""
    mistakes = report.details.get("mistakes")
    if not isinstance(mistakes, list):
        return text
    from failwell.delivery.plain_text import one_line

    lines = [str(mistake) for mistake in cast("list[object]", mistakes)]
    # The message names the mistakes too, as far as there is room for them.
    what = report.message.partition(f": {lines[0]}")[0] if lines else report.message
    _first, _, rest = text.partition("\n")
    return "\n".join([f"error: {one_line(what)}", *(f"  {one_line(line)}" for line in lines), rest])


def with_capability_defect(report: ErrorReport, *, is_shown: bool = False) -> ErrorReport:
    """`report`; a defect of a capability is attributed to the capability instead of failwell.

    Args:
        report: What went wrong.
        is_shown: Whether the traceback is printed beside it, so that the advice need not point to it.
    """
    scene = report.scene
    if report.kind != _BUG or scene.capability is None:
        return report
    where = f"see where with `failwell jobs show {scene.job}`, and " if scene.job and not is_shown else ""
    return replace(
        report,
        blame=Blame.WORKER,
        message=f"capability `{scene.capability}` has a defect: it raised {report.error_type}",
        caller_facing=True,
        user_action=UserAction(
            ActionKind.CONTACT_SUPPORT, f"{where}fix it, or tell the author of `{scene.capability}`"
        ),
    )
