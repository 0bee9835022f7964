"""`failwell gates`: list and answer pending gates."""

from argparse import Namespace
from typing import Any

from failwell.cli.listing import markdown_table
from failwell.cli.output import print_aside, print_data
from failwell.cli.parser import Parser, usage_error
from failwell.cli.records import add_name, add_store
from failwell.cli.runs.runs import current_run, journal, resume_line
from failwell.cli.temporal.remote import answer as remote_answer
from failwell.cli.temporal.remote import is_remote, sync_all


def add_list_options(parser: Parser) -> None:
    """Declare the filter."""
    add_name(parser, "run", optional=True)
    add_store(parser)


def run_list(args: Namespace) -> int:
    """List the gates of one run, or of all that have not ended."""
    from failwell.store.faults import StoreCorrupt
    from failwell.workflows.gates import pending_gates

    rows: list[dict[str, Any]] = []
    with journal(args) as store:
        if store is not None:
            runs = (
                [current_run(args, store)]
                if args.run
                else store.runs(statuses=("waiting", "running", "interrupted", "parked"))
            )
            for run in sync_all(store, runs, args):
                try:
                    rows += [gate.to_dict() for gate in pending_gates(store, run.id)]
                except StoreCorrupt as damage:
                    if args.run:
                        raise
                    print_aside(args, f"warning: run {run.id} was left out: {damage}")
    cells = [(row["run"], row["id"], row["prompt"], ", ".join(row["values"])) for row in rows]
    return print_data(
        args,
        rows,
        lambda: [line for row in rows for line in _lines(row)] or "no gate is pending",
        lambda: markdown_table(("run", "gate", "prompt", "answers"), cells),
    )


def _lines(row: dict[str, Any]) -> list[str]:
    """One gate, and below it the questions that `--payload` answers by id."""
    from failwell.delivery.plain_text import one_line

    first = (row["run"], row["id"], row["prompt"], f"[{' | '.join(row['values'])}]")
    lines = ["  ".join(map(one_line, first))]
    for question in row["questions"]:
        parts = [f"{question['id']}: {question['text']}"]
        if question.get("choices"):
            parts.append(f"[{' | '.join(question['choices'])}]")
        if question.get("required") and question.get("default") is None:
            parts.append("(required)")
        lines.append("  " + "  ".join(map(one_line, parts)))
    return lines


def add_answer_options(parser: Parser) -> None:
    """Declare the gate and the answer."""
    add_name(parser, "run")
    parser.add_argument("gate", metavar="GATE", help="the gate, as `failwell gates list` names it")
    parser.add_argument("value", metavar="VALUE", help="the value of the chosen option")
    parser.add_argument("--comment", default="", metavar="TEXT", help="a comment recorded with the answer")
    parser.add_argument(
        "--payload", metavar="JSON", help="more input, or the answers of a questions node by id"
    )
    parser.add_argument("--by", metavar="NAME", help="who answers (default: the user)")
    add_store(parser)
    parser.epilog = "If no process drives the run, the answer is recorded and counts when the run is resumed."


def run_answer(args: Namespace) -> int:
    """Answer a gate."""
    from failwell.cli.terminal_questions import user_name
    from failwell.workflows.gates import GateRefused, answer

    payload = None if args.payload is None else _payload(args.payload)
    with journal(args) as store:
        run = current_run(args, store)
        assert store is not None
        by = args.by or user_name()
        send = remote_answer if is_remote(store.folder, run.id) else answer
        try:
            is_live = send(store, run.id, args.gate, args.value, by=by, comment=args.comment, payload=payload)
        except GateRefused as refused:
            raise usage_error(refused.summary(), see=f"failwell gates list {run.id}") from None
        resume = None if is_live else resume_line(args, store, run.id)
    data = {"id": args.gate, "run": run.id, "decision": args.value}
    lines = [f"answered `{args.gate}` of run {run.id} with `{args.value}`"]
    if resume is not None:
        data["next"] = resume
        lines.append(f"next: {resume}")
    return print_data(args, data, lines)


def _payload(text: str) -> Any:
    from failwell.files.finite_json import load_finite

    try:
        return load_finite(text)
    except (ValueError, RecursionError) as error:
        raise usage_error(f"`--payload` is not JSON: {error}", see="failwell gates answer --help") from None
