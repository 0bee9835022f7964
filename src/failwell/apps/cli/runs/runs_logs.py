"""`failwell runs logs`: what the steps of a run print, up to now or as they print it."""

from argparse import ArgumentParser, Namespace
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.output import print_aside, print_json_text, print_text
from failwell.apps.cli.parser import usage_error
from failwell.apps.cli.records import add_name, add_store, at_least, command_for
from failwell.apps.cli.runs.runs import find_run, journal
from failwell.apps.cli.workflows.progress import step_label

if TYPE_CHECKING:
    from failwell.journal.output_log import LogEntry
    from failwell.journal.sqlite.run_store import SqliteStore
    from failwell.journal.store import Run

_LONGEST = 16_384
"""Characters of one printed line; a longer one is printed in pieces."""


def add_logs_options(parser: ArgumentParser) -> None:
    """Declare which run, which step, and how much."""
    add_name(parser, "run")
    parser.add_argument("step", nargs="?", metavar="STEP", help="only this step: its name, or its path")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the run ends")
    parser.add_argument("-n", "--lines", metavar="N", type=at_least(0), help="only the last N lines")
    add_store(parser)
    parser.epilog = (
        "A line is marked `|` on stdout and `!` on stderr. A run keeps the newest 64 MiB. "
        "example: failwell runs logs last build --follow"
    )


def run_logs(args: Namespace) -> int:
    """Print what the steps of a run printed."""
    from failwell.workflows.run_logs import run_output

    if args.follow and args.lines is not None:
        raise usage_error("`--follow` and `--lines` exclude each other", see="failwell runs logs --help")
    with journal(args) as store:
        run = find_run(store, args.run)
        assert store is not None
        pieces = run_output(store, run.id, step=args.step, follow=args.follow)
        lines: Iterable[LogEntry] = _lines(pieces)
        if args.lines is not None:
            lines = deque(lines, args.lines)
        is_empty = True
        for line in lines:
            is_empty = False
            _print(line, args)
        if is_empty:
            _explain_silence(store, run, args)
    return Exit.DONE


def _lines(pieces: "Iterable[LogEntry]") -> "Iterator[LogEntry]":
    """Whole lines, masked. A line without an end comes last."""
    from failwell.report.redact import redact_text

    open_lines: dict[tuple[Any, ...], LogEntry] = {}
    for piece in pieces:
        stream = (piece.path, piece.visit, piece.attempt, piece.stream)
        before = open_lines.pop(stream, None)
        if piece.gap:
            if before is not None:
                yield before
            yield piece
            continue
        text = piece.text if before is None else before.text + piece.text
        *whole, rest = text.split("\n")
        for line in whole:
            yield from _cut(replace(piece, text=redact_text(line, 2 * len(line) + 100)))
        if len(rest) > _LONGEST:
            yield from _cut(replace(piece, text=redact_text(rest, 2 * len(rest) + 100)))
        elif rest:
            open_lines[stream] = replace(piece, text=rest)
    for line in open_lines.values():
        yield replace(line, text=redact_text(line.text, 2 * len(line.text) + 100))


def _cut(line: "LogEntry") -> "Iterator[LogEntry]":
    text = line.text.removesuffix("\r")
    yield replace(line, text=text[:_LONGEST])
    for start in range(_LONGEST, len(text), _LONGEST):
        yield replace(line, text=text[start : start + _LONGEST])


def _print(line: "LogEntry", args: Namespace) -> None:
    if args.format == "json":
        from json import dumps

        from failwell.apps.cli.times import iso

        print_json_text(dumps({**line.to_dict(), "at": iso(line.at)}, ensure_ascii=False))
        return
    label = step_label(line.path, line.item)
    text = f"[{line.gap}]" if line.gap else line.text
    sign = "!" if line.stream == "stderr" else "|"
    if args.format == "markdown":
        from failwell.delivery.agent_output import code

        print_text(
            f"- {code(label)} {line.stream}: {code(text)}" if text else f"- {code(label)} {line.stream}"
        )
        return
    print_text(f"{label} {sign} {text}" if label else text)


def _explain_silence(store: "SqliteStore", run: "Run", args: Namespace) -> None:
    """Say why nothing was printed.

    Raises:
        Usage: the run has no such step.
    """
    from failwell.journal.details import run_details

    seen = run_details(store.read(run.id))
    if args.step is None:
        what = f"the steps of run {run.id} printed nothing"
    else:
        rows = [row for row in seen.nodes.values() if args.step in (row.path, row.node)]
        if not rows:
            names = list(dict.fromkeys(name for row in seen.nodes.values() for name in (row.node, row.path)))
            raise usage_error(
                f"run {run.id} has no step `{args.step}`, or it has not started",
                value=args.step,
                valid=names[:20],
                see=command_for(args, "runs", "show", run.id),
            )
        what = f"`{args.step}` printed nothing"
        if rows[0].type != "script":
            what += f"; it is a {rows[0].type} step"
    if seen.continues:
        what += f"; this run continues {seen.continues}, whose output is under its own id"
    print_aside(args, what)
