"""How a run's end is told: its result on stdout, anything else on stderr, and the exit code."""

import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from datetime import UTC, datetime
from json import dumps
from typing import TYPE_CHECKING, Any, cast

from failwell.apps.cli.commands import JSON, MARKDOWN
from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.output import is_terminal, say

if TYPE_CHECKING:
    from failwell.workflow.failure import Failure
    from failwell.workflow.run.world import Ended


def tell_end(ended: "Ended", run: str, args: Namespace, *, was_interrupted: bool) -> int:
    """Print what came of a run."""
    if ended.status == "completed":
        say(_result(ended.outputs, args.format))
        return Exit.DONE
    if ended.status == "waiting":
        _tell(_waiting(ended, run), args)
        return Exit.WAITING
    if ended.status == "cancelled":
        _tell({"message": f"run {run} was cancelled", "next": f"failwell resume {run}", "run": run}, args)
        return Exit.INTERRUPTED if was_interrupted else Exit.FAILED
    return _failed(ended, run, args)


def _result(outputs: Any, form: str) -> str:
    # Plain ASCII: the result must survive whatever encoding the next program reads with.
    if form != MARKDOWN or not isinstance(outputs, dict):
        return dumps(outputs, indent=2)
    told = cast("Mapping[str, Any]", outputs)
    rows: list[str] = []
    for name, value in told.items():
        text = value if isinstance(value, str) else dumps(value)
        rows.append(f"| {name} | {text.strip().replace('|', '&#124;').replace(chr(10), '<br>')} |")
    return "\n".join(["| output | value |", "| --- | --- |", *rows])


def _waiting(ended: "Ended", run: str) -> dict[str, Any]:
    told: dict[str, Any] = {"message": f"run {run} waits", "run": run, "gates": list(ended.gates)}
    if ended.gates:
        told["message"] = f"run {run} waits for an answer: {', '.join(ended.gates)}"
        told["next"] = f"failwell gate respond {run} {ended.gates[0]} VALUE"
    elif ended.blocked_until is not None:
        until = datetime.fromtimestamp(ended.blocked_until, UTC).isoformat(timespec="seconds")
        told["message"] = f"run {run} is blocked until {until}"
        told["blocked_until"] = until
        told["next"] = f"failwell resume {run}"
    return told


def _failed(ended: "Ended", run: str, args: Namespace) -> int:
    from failwell.apps.cli.capability_defects import blamed

    assert ended.failure is not None
    report = blamed(ended.failure.report)
    frames = ended.failure.node_frames
    node = frames[0]["node"] if frames else report.scene.node
    extras: dict[str, Any] = {"run": run, "node": node, "error_type": ended.error_type}
    errors_file = ended.state.metadata.get("errors_file")
    if errors_file:
        extras["errors_file"] = errors_file
    form = getattr(args, "error_format", args.format)
    print(_failure(report, ended.failure, extras, form), file=sys.stderr, flush=True)
    return Exit.HALTED if ended.failure.typed else Exit.FAILED


def _failure(report: Any, failure: "Failure", extras: dict[str, Any], form: str) -> str:
    details = failure.envelope["details"]
    if form == JSON:
        from failwell.delivery.agent_output import agent_json

        return dumps({**agent_json(report), **extras, "details": details, "frames": failure.node_frames})
    if form == MARKDOWN:
        from failwell.delivery.agent_output import agent_markdown

        return agent_markdown(report, **extras).rstrip("\n")
    from failwell.delivery.failure_text import render_text

    lines = [] if _draw(report) else [render_text(report, "user"), ""]
    where = " ← ".join(_frame(frame) for frame in failure.node_frames)
    lines += [f"node:    {where or extras['node'] or '-'}"]
    if details:
        lines.append(f"details: {dumps(details, ensure_ascii=False)[:2000]}")
    if "errors_file" in extras:
        lines.append(f"errors:  {extras['errors_file']}")
    lines.append(f"resume:  failwell resume {extras['run']}")
    return "\n".join(lines)


def _draw(report: Any) -> bool:
    """Draw the failure for a person who sits at the terminal; whether there is one."""
    if not is_terminal(sys.stderr) or os.environ.get("TERM") == "dumb":
        return False
    from rich.console import Console

    from failwell.delivery.failure_text import panel

    Console(file=sys.stderr).print(panel(report, "user"))
    return True


def _frame(frame: Mapping[str, Any]) -> str:
    item = f"[{frame['item']}]" if "item" in frame else ""
    return f"{frame['node']}{item} ({frame['workflow']})"


def _tell(told: Mapping[str, Any], args: Namespace) -> None:
    if getattr(args, "error_format", args.format) == JSON:
        print(dumps(told), file=sys.stderr, flush=True)
        return
    print(told["message"], file=sys.stderr)
    if "next" in told:
        print(f"next: {told['next']}", file=sys.stderr, flush=True)
