"""Prints the end of a run: its result on stdout, anything else on stderr; and chooses the exit code."""

import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from datetime import UTC, datetime
from json import dumps
from typing import TYPE_CHECKING, Any, cast

from failwell.cli.commands import JSON, MARKDOWN
from failwell.cli.exit_codes import Exit
from failwell.cli.output import error_format, is_terminal, print_if_read, print_text
from failwell.cli.records import command_for
from failwell.cli.runs.resume import resume_after

if TYPE_CHECKING:
    from failwell.workflows.failure import Failure
    from failwell.workflows.machine.run_state import State
    from failwell.workflows.running.settings import DriveResult


_LINES = 12
"""Lines of a failed script's stderr."""


def print_end(ended: "DriveResult", run: str, args: Namespace, *, signal_number: int | None) -> int:
    """Print the end of a run and return the exit code."""
    if ended.status == "completed":
        print_text(_result(ended.outputs, args.format))
        return Exit.DONE
    if ended.status == "waiting":
        _print_message(_waiting(ended, run, args), args)
        return Exit.WAITING
    if ended.status == "cancelled":
        resume = resume_after(args, run, ended.state)
        _print_message({"message": f"run {run} was cancelled", "next": resume, "run": run}, args)
        return Exit.FAILED if signal_number is None else Exit.of_signal(signal_number)
    return _failed(ended, run, args)


def print_stopped(run: str, state: "State | None", args: Namespace, signal_number: int) -> int:
    """Print that a run was stopped at once, and return the exit code. No run has begun if there is no state."""
    if state is not None:
        message = f"run {run} was stopped at once"
        _print_message({"message": message, "next": resume_after(args, run, state), "run": run}, args)
    return Exit.of_signal(signal_number)


def _result(outputs: Any, form: str) -> str:
    # Plain ASCII: the result must survive whatever encoding the next program reads with.
    if form != MARKDOWN or not isinstance(outputs, dict):
        return dumps(outputs, indent=2)
    values = cast("Mapping[str, Any]", outputs)
    rows: list[str] = []
    for name, value in values.items():
        text = value if isinstance(value, str) else dumps(value)
        rows.append(f"| {name} | {text.strip().replace('|', '&#124;').replace(chr(10), '<br>')} |")
    return "\n".join(["| output | value |", "| --- | --- |", *rows])


def _waiting(ended: "DriveResult", run: str, args: Namespace) -> dict[str, Any]:
    message: dict[str, Any] = {"message": f"run {run} is waiting", "run": run, "gates": list(ended.gates)}
    if ended.gates:
        message["message"] = f"run {run} is waiting for an answer: {', '.join(ended.gates)}"
        message["next"] = command_for(args, "gates", "answer", run, ended.gates[0], "VALUE")
    elif ended.blocked_until is not None:
        until = datetime.fromtimestamp(ended.blocked_until, UTC).isoformat(timespec="seconds")
        message["message"] = f"run {run} is blocked until {until}"
        message["blocked_until"] = until
        message["next"] = resume_after(args, run, ended.state)
    return message


def _failed(ended: "DriveResult", run: str, args: Namespace) -> int:
    from failwell.cli.error_output import with_capability_defect

    assert ended.failure is not None
    report = with_capability_defect(ended.failure.report)
    frames = ended.failure.node_frames
    node = frames[0]["node"] if frames else report.scene.node
    extras: dict[str, Any] = {"run": run, "node": node, "error_type": ended.error_type}
    errors_file = ended.state.metadata.get("errors_file")
    if errors_file:
        extras["errors_file"] = errors_file
    form = error_format(args)
    resume = resume_after(args, run, ended.state)
    if form == JSON:
        extras["resume"] = resume
    printed = _stderr(ended, ended.failure)
    print_if_read(_failure(report, ended.failure, extras, form, resume, printed), is_json=form == JSON)
    return Exit.HALTED if ended.failure.typed else Exit.FAILED


def _stderr(ended: "DriveResult", failure: "Failure") -> str:
    """The end of the stderr of the script that failed."""
    from failwell.workflows.run_details import stderr_of

    frames = failure.node_frames
    root = ended.state.scopes.get("")
    output = None if root is None or not frames else root.outputs.get(frames[0]["node"])
    stored = {"envelope": failure.envelope, "stderr_tail": failure.stderr_tail}
    return (stderr_of(stored, output) or "").strip("\n")


def _failure(
    report: Any, failure: "Failure", extras: dict[str, Any], form: str, resume: str, printed: str
) -> str:
    details = failure.envelope["details"]
    if form == JSON:
        from failwell.delivery.agent_output import agent_json

        return dumps({**agent_json(report), **extras, "details": details, "frames": failure.node_frames})
    if form == MARKDOWN:
        from failwell.delivery.agent_output import agent_markdown

        return agent_markdown(report, **extras).rstrip("\n")
    from failwell.delivery.terminal import render_text

    lines = [] if _draw(report) else [render_text(report, "user"), ""]
    where = " ← ".join(_frame(frame) for frame in failure.node_frames)
    lines += [f"node:    {where or extras['node'] or '-'}"]
    details = {name: value for name, value in details.items() if name != "stderr_tail"}
    if details:
        from failwell.delivery.plain_text import neutral_json

        lines.append(f"details: {neutral_json(dumps(details, ensure_ascii=False))[:2000]}")
    if printed.strip():
        from failwell.delivery.plain_text import neutral

        lines += ["stderr:", *(f"  {line}" for line in neutral(printed).split("\n")[-_LINES:])]
    if "errors_file" in extras:
        lines.append(f"errors:  {extras['errors_file']}")
    lines.append(f"resume:  {resume}")
    return "\n".join(lines)


def _draw(report: Any) -> bool:
    """Draw the failure as a panel if stderr is a terminal; whether it was drawn."""
    if not is_terminal(sys.stderr) or os.environ.get("TERM") == "dumb":
        return False
    from failwell.cli.output import terminal
    from failwell.delivery.terminal import panel

    terminal(sys.stderr).print(panel(report, "user"))
    return True


def _frame(frame: Mapping[str, Any]) -> str:
    item = f"[{frame['item']}]" if "item" in frame else ""
    return f"{frame['node']}{item} ({frame['workflow']})"


def _print_message(message: Mapping[str, Any], args: Namespace) -> None:
    if error_format(args) == JSON:
        print_if_read(dumps(message), is_json=True)
        return
    print_if_read(message["message"])
    if "next" in message:
        print_if_read(f"next: {message['next']}")
