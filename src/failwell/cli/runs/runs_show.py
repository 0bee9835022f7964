"""`failwell runs show`: one run with its nodes, its failure and the next step."""

from argparse import Namespace
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

from failwell.cli.output import bold, print_data
from failwell.cli.parser import Parser
from failwell.cli.records import add_name, add_store, command_for, state_folder_of
from failwell.cli.runs.detach import LOG
from failwell.cli.runs.progress import exit_text, step_label
from failwell.cli.runs.resume import resume_recorded
from failwell.cli.runs.runs import current_run, journal, resume_command, seconds_of
from failwell.errors.kind_registry import find_kind

if TYPE_CHECKING:
    from failwell.store.run_store import Run
    from failwell.workflows.run_details import NodeRow, RunDetails

_COLUMNS = ("node", "type", "status", "attempts", "took", "what")
_MANY = 60
_LINES = 12
"""Lines of a failed script's stderr."""
_NOTABLE = frozenset({"failed", "handled", "running", "retrying", "waiting", "asking"})


def add_show_options(parser: Parser) -> None:
    """Declare which run, and how much of it."""
    add_name(parser, "run")
    parser.add_argument("--all", action="store_true", help="show every node, however many there are")
    add_store(parser)
    parser.epilog = "example: failwell runs show last"


def run_show(args: Namespace) -> int:
    """Show one run."""
    from failwell.workflows.run_details import run_details

    with journal(args) as store:
        run = current_run(args, store)
        assert store is not None
        seen = run_details(store.read(run.id))
        seen.continued_by = store.continuations(run.id)
    return print_data(
        args,
        lambda: _object(run, seen, args),
        lambda: _text(run, seen, args),
        lambda: _markdown(run, seen, args),
    )


def next_steps(run: "Run", seen: "RunDetails", args: Namespace) -> list[dict[str, str]]:
    """The commands that make sense now, each with its reason."""
    resume = {"command": resume_recorded(args, run.id, seen)}
    if run.status == "running":
        return [
            {
                "command": command_for(args, "runs", "logs", run.id, "--follow"),
                "why": "follow what it prints",
            },
            {"command": command_for(args, "runs", "tail", run.id), "why": "follow its events"},
            {"command": command_for(args, "stop", run.id), "why": "stop it"},
        ]
    if run.status == "waiting":
        return [
            {
                "command": command_for(
                    args, "gates", "answer", run.id, gate, values.partition(", ")[0] or "VALUE"
                ),
                "why": f"answer it: {values}" if values else "answer it",
            }
            for gate, _, values in _questions(seen)
        ] or [{**resume, "why": "every gate is answered: resume it"}]
    if run.status == "parked":
        from failwell.cli.times import clock

        until = "" if run.blocked_until is None else f" after {clock(run.blocked_until)}"
        return [{**resume, "why": f"resume it{until}"}]
    if run.status == "interrupted":
        if not run.events:
            return [
                {
                    "command": command_for(args, "run", run.file),
                    "why": "its process died before it began; run it again",
                }
            ]
        return [{**resume, "why": "its process died; resume what had not finished"}]
    if run.status in ("failed", "cancelled"):
        steps = [{**resume, "why": "can be resumed after the cause is fixed"}]
        if seen.continued_by:
            latest = command_for(args, "runs", "show", seen.continued_by[-1])
            steps = [{"command": latest, "why": "it was resumed: show the run that continues it"}]
        if run.kind is not None and find_kind(run.kind) is not None:
            steps.insert(0, {"command": f"failwell explain {run.kind}", "why": "what the failure means"})
        return steps
    return []


def _object(run: "Run", seen: "RunDetails", args: Namespace) -> dict[str, Any]:
    from failwell.cli.runs.runs import summary

    end = None if seen.end is None else seen.end.data
    data: dict[str, Any] = {
        **summary(run, args, seen),
        "inputs": seen.inputs,
        "continues": seen.continues,
        "continued_by": seen.continued_by or None,
        "resumed": seen.resumed,
        "nodes": [_node_object(row) for row in seen.nodes.values()],
        "questions": [{"gate": gate, **dict(data)} for gate, data in seen.gates.items()],
        "outputs": None if end is None else end.get("outputs"),
        "usage": None if end is None else end.get("usage"),
        "errors_file": seen.errors_file,
        "log": _log(run, args),
        "next": next_steps(run, seen, args),
    }
    if seen.failure is not None:
        data["failure"] = {**data.get("failure", {}), **seen.failure}
    return {name: value for name, value in data.items() if value is not None}


def _log(run: "Run", args: Namespace) -> str | None:
    """The log file of a run that was detached."""
    from failwell.store.folder import run_folder

    path = run_folder(state_folder_of(args), run.id) / LOG
    return str(path) if path.exists() else None


def _node_object(row: "NodeRow") -> dict[str, Any]:
    from failwell.cli.times import iso

    data = {
        "id": row.path,
        "node": row.node,
        "type": row.type,
        "status": row.status,
        "visits": row.visits,
        "attempts": row.attempts,
        "started": iso(row.started),
        "ended": iso(row.ended),
        "until": iso(row.until),
        "kind": row.kind,
        "message": row.message,
        "exit_code": row.exit_code,
        "stderr_tail": row.stderr_tail,
        "item": row.item,
        "output": row.output,
    }
    return {name: value for name, value in data.items() if value not in (None, "")}


def _facts(run: "Run", seen: "RunDetails", args: Namespace) -> list[tuple[str, str]]:
    from failwell.cli.times import clock, lasted

    facts = [
        ("status", run.status),
        ("workflow", run.workflow),
        ("file", run.file),
        ("started", clock(run.started)),
        (
            "ended" if run.ended is not None else "last event",
            clock(run.updated if run.ended is None else run.ended),
        ),
        ("lasted", lasted(seconds_of(run))),
        ("events", str(run.events)),
        ("continues", seen.continues or ""),
        ("continued by", ", ".join(seen.continued_by)),
        ("resumed", f"{seen.resumed} times" if seen.resumed > 1 else "once" if seen.resumed else ""),
        ("until", "" if run.blocked_until is None else clock(run.blocked_until)),
        ("failed in", run.node or ""),
        ("kind", run.kind or ""),
        ("message", run.message or ""),
        ("errors file", seen.errors_file or ""),
        ("log", _log(run, args) or ""),
        ("resume", resume_command(run, args, seen) or ""),
    ]
    return [(label, value) for label, value in facts if value]


def _rows(seen: "RunDetails", *, everything: bool) -> tuple[list[tuple[str, ...]], str]:
    """The rows to show, and what to say about those that are left out."""
    from failwell.cli.times import clock, lasted

    rows = list(seen.nodes.values())
    left_out = ""
    if len(rows) > _MANY and not everything:
        notable = [row for row in rows if row.status in _NOTABLE][:_MANY]
        counts = Counter(row.status for row in rows)
        left_out = (
            f"{len(rows)} nodes: {', '.join(f'{count} {status}' for status, count in counts.items())};"
            " `--all` lists every one"
        )
        rows = notable
    return [
        (
            step_label(row.path, row.item),
            row.type,
            row.status,
            str(row.attempts) if row.visits == 1 else f"{row.attempts} (visit {row.visits})",
            lasted(row.seconds) if row.until is None else f"until {clock(row.until)}",
            _remark(row),
        )
        for row in rows
    ], left_out


def _remark(row: "NodeRow") -> str:
    parts = [
        "" if row.exit_code is None or (row.kind and not row.exit_code) else exit_text(row.exit_code),
        f"{row.kind}: {row.message or ''}" if row.kind else row.message or "",
    ]
    return "; ".join(part for part in parts if part)


def _printed(seen: "RunDetails") -> list[tuple[str, list[str]]]:
    """The last lines on stderr of each script that failed."""
    from failwell.delivery.plain_text import neutral

    rows = [row for row in seen.nodes.values() if row.stderr_tail and row.status in _NOTABLE][:_MANY]
    return [(row.path, neutral(row.stderr_tail or "").strip("\n").split("\n")[-_LINES:]) for row in rows]


def _questions(seen: "RunDetails") -> list[tuple[str, str, str]]:
    """Each open gate: its name, what it asks, and what can be answered."""
    questions: list[tuple[str, str, str]] = []
    for gate, data in seen.gates.items():
        options = data.get("options")
        values: list[str] = []
        for option in cast("list[object]", options) if isinstance(options, list) else []:
            match option:
                case {"value": str(value)}:
                    values.append(value)
                case _:
                    pass
        questions.append((gate, str(data.get("prompt", "")), ", ".join(values)))
    return questions


def _text(run: "Run", seen: "RunDetails", args: Namespace) -> list[str]:
    from failwell.cli.listing import text_table
    from failwell.delivery.plain_text import one_line

    lines = [bold(f"run {run.id}", args)]
    lines += [f"  {label.ljust(12)}  {one_line(value)}" for label, value in _facts(run, seen, args)]
    rows, left_out = _rows(seen, everything=args.all)
    if rows:
        lines += ["", *text_table(_COLUMNS, rows, args, indent="  ")]
    if left_out:
        lines += ["", f"  {left_out}"]
    for path, printed in _printed(seen):
        lines += ["", bold(f"stderr of {one_line(path)}", args), *(f"  {line}" for line in printed)]
    for gate, prompt, values in _questions(seen):
        lines += ["", bold(f"question {one_line(gate)}", args), f"  {one_line(prompt)}"]
        lines += [f"  answers: {one_line(values)}"] if values else []
    steps = next_steps(run, seen, args)
    if steps:
        lines += ["", bold("next", args)]
        lines += [f"  {one_line(step['command'])}  # {one_line(step['why'])}" for step in steps]
    return lines


def _markdown(run: "Run", seen: "RunDetails", args: Namespace) -> list[str]:
    from failwell.cli.listing import markdown_table
    from failwell.delivery.agent_output import code, escaped, fenced

    lines = [f"# run {run.id}", ""]
    lines += [f"- {label}: {escaped(value)}" for label, value in _facts(run, seen, args)]
    rows, left_out = _rows(seen, everything=args.all)
    if rows:
        lines += ["", "## Nodes", "", *markdown_table(_COLUMNS, rows)]
    if left_out:
        lines += ["", escaped(left_out)]
    for path, printed in _printed(seen):
        lines += ["", f"## stderr of {code(path)}", "", fenced("\n".join(printed))]
    for gate, prompt, values in _questions(seen):
        lines += ["", f"## Question {code(gate)}", "", escaped(prompt)]
        lines += ["", f"Answers: {escaped(values)}"] if values else []
    steps = next_steps(run, seen, args)
    if steps:
        lines += ["", "## Next", ""]
        lines += [f"- {code(step['command'])}: {escaped(step['why'])}" for step in steps]
    return lines
