"""The one place where an exception becomes words on stderr and an exit code.

Every error is described first, so a typing mistake, a full disk and a defect of this program reach
the caller in the same shape: text for a person, Markdown or one JSON object for an agent.
"""

import sys
from collections.abc import Sequence
from typing import Any, cast

from failwell.apps.cli.capability_defects import blamed
from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.faults import OwnDefect
from failwell.apps.cli.formats import Wishes, wishes
from failwell.fault.axes import ActionKind, Category
from failwell.fault.base import Fault
from failwell.fault.facts import UserAction
from failwell.report.describe import describe
from failwell.report.record import ErrorReport

_ASKED_WRONGLY = frozenset({Category.USER_INPUT, Category.CONFIGURATION, Category.DENIED})


def tell(error: BaseException, arguments: Sequence[str]) -> int:
    """Print `error` in the format that `arguments` ask for, and return the exit code."""
    if isinstance(error, KeyboardInterrupt):
        return Exit.INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return Exit.PIPE_CLOSED
    wished = wishes(arguments)
    shown = _explained(error)
    report = blamed(describe(shown, policy="full" if wished.traceback else None))
    code = exit_for(report)
    try:
        print(_words(report, wished), file=sys.stderr, flush=True)
    except OSError:
        # Nobody reads stderr any more. The exit code still tells.
        return code
    return code


def exit_for(report: ErrorReport) -> Exit:
    """What the shell is told about a failure."""
    if report.kind == "session.interaction_required":
        return Exit.WAITING
    return Exit.ASKED_WRONGLY if report.category in _ASKED_WRONGLY else Exit.FAILED


def _explained(error: BaseException) -> BaseException:
    """`error` with words for whoever typed the command."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, MemoryError):
        return Fault.wrap(error, "there is not enough memory for this", caller_facing=True)
    return OwnDefect.wrap(
        error,
        f"failwell itself broke ({type(error).__name__}); this is a defect, not your mistake",
        user_action=UserAction(
            ActionKind.CONTACT_SUPPORT, "run it again with `--traceback` and report what it shows"
        ),
    )


def _words(report: ErrorReport, wished: Wishes) -> str:
    extras: dict[str, Any] = {}
    for name in ("valid", "near", "tried", "line", "column", "mistakes"):
        if name in report.details:
            extras[name] = report.details[name]
    stack = report.internal.traceback if wished.traceback and report.internal is not None else None
    if wished.errors == "text":
        from failwell.delivery.failure_text import render_text

        text = _with_mistakes(report, render_text(report, "user"))
        return f"{stack}\n{text}" if stack else text
    if stack:
        extras["traceback"] = stack.splitlines()
    if wished.errors == "markdown":
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
    from failwell.delivery.plain import one_line

    each = [str(one) for one in cast("list[object]", mistakes)]
    what = report.message.removesuffix(": " + "; ".join(each))
    _first, _, rest = text.partition("\n")
    return "\n".join([f"error: {one_line(what)}", *(f"  {one_line(one)}" for one in each), rest])
