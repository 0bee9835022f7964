"""`failwell runs show`: one run with its nodes, its failure, and the next step."""

from argparse import Namespace
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.output import bold, say, say_json
from failwell.apps.cli.workflows.runs_find import find_run, journal
from failwell.fault.registry import find_kind

if TYPE_CHECKING:
    from failwell.journal.details import NodeRow, RunDetails
    from failwell.journal.store import Run

_COLUMNS = ("node", "type", "status", "attempts", "took", "what")
_MANY = 60
_TELLING = frozenset({"failed", "handled", "running", "retrying", "waiting", "asking"})


def show(args: Namespace) -> int:
    """Print one run."""
    from failwell.journal.details import run_details

    with journal(args) as store:
        run = find_run(store, args.run)
        assert store is not None
        seen = run_details(store.read(run.id))
        status = run.status
    if args.format == "json":
        say_json(_object(run, status, seen))
    elif args.format == "markdown":
        say("\n".join(_markdown(run, status, seen, everything=args.all)))
    else:
        say("\n".join(_text(run, status, seen, args)))
    return Exit.DONE


def next_steps(run: "Run", status: str, seen: "RunDetails") -> list[dict[str, str]]:
    """What a person can do about the run now: a command, and why."""
    resume = {"command": f"failwell resume {run.id}"}
    if status == "running":
        return [
            {"command": f"failwell runs tail {run.id}", "why": "it is running: follow it"},
            {"command": f"failwell stop {run.id}", "why": "or end it"},
        ]
    if status == "waiting":
        return [
            {
                "command": f"failwell gate respond {run.id} {gate} {values.partition(', ')[0] or 'VALUE'}",
                "why": f"answer it: {values}" if values else "answer it",
            }
            for gate, _, values in _questions(seen)
        ] or [{**resume, "why": "every question is answered: go on"}]
    if status == "parked":
        from failwell.apps.cli.times import clock

        until = "" if run.blocked_until is None else f" after {clock(run.blocked_until)}"
        return [{**resume, "why": f"go on{until}"}]
    if status == "interrupted":
        if not run.events:
            return [
                {
                    "command": f"failwell run {run.file}",
                    "why": "its process died before it began: run it again",
                }
            ]
        return [{**resume, "why": "its process died: go on with what had not finished"}]
    if status in ("failed", "cancelled"):
        steps = [{**resume, "why": "go on from where it stopped, once the cause is cured"}]
        if run.kind is not None and find_kind(run.kind) is not None:
            steps.insert(0, {"command": f"failwell explain {run.kind}", "why": "what the failure means"})
        return steps
    return []


def _object(run: "Run", status: str, seen: "RunDetails") -> dict[str, Any]:
    from failwell.apps.cli.workflows.runs import summary

    end = None if seen.end is None else seen.end.data
    told: dict[str, Any] = {
        **summary(run, status),
        "inputs": seen.inputs,
        "continues": seen.continues,
        "resumed": seen.resumed,
        "nodes": [_node_object(row) for row in seen.nodes.values()],
        "questions": [{"gate": gate, **dict(data)} for gate, data in seen.gates.items()],
        "outputs": None if end is None else end.get("outputs"),
        "usage": None if end is None else end.get("usage"),
        "errors_file": seen.errors_file,
        "next": next_steps(run, status, seen),
    }
    if seen.failure is not None:
        told["failure"] = {**told.get("failure", {}), **seen.failure}
    return {name: value for name, value in told.items() if value is not None}


def _node_object(row: "NodeRow") -> dict[str, Any]:
    from failwell.apps.cli.times import iso

    told = {
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
    }
    return {name: value for name, value in told.items() if value not in (None, "")}


def _facts(run: "Run", status: str, seen: "RunDetails") -> list[tuple[str, str]]:
    from failwell.apps.cli.times import clock, lasted
    from failwell.apps.cli.workflows.runs import resume_command

    ended = run.updated if run.ended is None else run.ended
    told = [
        ("status", status),
        ("resume", resume_command(run, status) or ""),
        ("workflow", run.workflow),
        ("file", run.file),
        ("started", clock(run.started)),
        ("ended" if run.ended is not None else "last event", clock(ended)),
        ("lasted", lasted(max(0.0, ended - run.started))),
        ("events", str(run.events)),
        ("goes on from", seen.continues or ""),
        ("resumed", f"{seen.resumed} times" if seen.resumed > 1 else "once" if seen.resumed else ""),
        ("until", "" if run.blocked_until is None else clock(run.blocked_until)),
        ("failed in", run.node or ""),
        ("kind", run.kind or ""),
        ("message", run.message or ""),
        ("errors file", seen.errors_file or ""),
    ]
    return [(label, value) for label, value in told if value]


def _rows(seen: "RunDetails", *, everything: bool) -> tuple[list[tuple[str, ...]], str]:
    """The rows to show, and what to say about those that are left out."""
    from failwell.apps.cli.times import clock, lasted

    rows = list(seen.nodes.values())
    left_out = ""
    if len(rows) > _MANY and not everything:
        telling = [row for row in rows if row.status in _TELLING][:_MANY]
        counts = Counter(row.status for row in rows)
        left_out = (
            f"{len(rows)} nodes: {', '.join(f'{count} {status}' for status, count in counts.items())};"
            " `--all` lists every one"
        )
        rows = telling
    return [
        (
            row.path,
            row.type,
            row.status,
            str(row.attempts) if row.visits == 1 else f"{row.attempts} (visit {row.visits})",
            lasted(row.seconds) if row.until is None else f"until {clock(row.until)}",
            f"{row.kind}: {row.message or ''}" if row.kind else row.message or "",
        )
        for row in rows
    ], left_out


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


def _text(run: "Run", status: str, seen: "RunDetails", args: Namespace) -> list[str]:
    from failwell.apps.cli.tables import text_table
    from failwell.delivery.plain import one_line

    lines = [bold(f"run {run.id}", args)]
    lines += [f"  {label.ljust(12)}  {one_line(value)}" for label, value in _facts(run, status, seen)]
    rows, left_out = _rows(seen, everything=args.all)
    if rows:
        lines += ["", *text_table(_COLUMNS, rows, args, indent="  ")]
    if left_out:
        lines += ["", f"  {left_out}"]
    for gate, prompt, values in _questions(seen):
        lines += ["", bold(f"question {one_line(gate)}", args), f"  {one_line(prompt)}"]
        lines += [f"  answers: {one_line(values)}"] if values else []
    steps = next_steps(run, status, seen)
    if steps:
        lines += ["", bold("next", args)]
        lines += [f"  {one_line(step['command'])}  # {one_line(step['why'])}" for step in steps]
    return lines


def _markdown(run: "Run", status: str, seen: "RunDetails", *, everything: bool) -> list[str]:
    from failwell.apps.cli.tables import markdown_table
    from failwell.delivery.agent_output import code, escaped

    lines = [f"# run {run.id}", ""]
    lines += [f"- {label}: {escaped(value)}" for label, value in _facts(run, status, seen)]
    rows, left_out = _rows(seen, everything=everything)
    if rows:
        lines += ["", "## Nodes", "", *markdown_table(_COLUMNS, rows)]
    if left_out:
        lines += ["", escaped(left_out)]
    for gate, prompt, values in _questions(seen):
        lines += ["", f"## Question {code(gate)}", "", escaped(prompt)]
        lines += ["", f"Answers: {escaped(values)}"] if values else []
    steps = next_steps(run, status, seen)
    if steps:
        lines += ["", "## Next", ""]
        lines += [f"- {code(step['command'])}: {escaped(step['why'])}" for step in steps]
    return lines
