"""`failwell runs logs`: what the steps of a run print, up to now or as they print it."""

import re
from argparse import Namespace
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from failwell.cli.exit_codes import Exit
from failwell.cli.output import print_aside, print_json_text, print_text
from failwell.cli.parser import Parser, usage_error
from failwell.cli.records import add_name, add_store, at_least, command_for
from failwell.cli.runs.progress import step_label
from failwell.cli.runs.runs import current_run, journal
from failwell.cli.temporal.remote import following

if TYPE_CHECKING:
    from failwell.store.output_log import LogEntry
    from failwell.store.run_store import Run
    from failwell.store.sqlite.run_store import SqliteStore

_LONGEST = 16_384
"""Characters of one printed line; a longer one is printed in pieces."""
_LINE_END = re.compile(r"\r\n|\n|\r(?!\Z)")
"""Progress bars end their lines with a carriage return. One at the end may be followed by a newline."""


def add_logs_options(parser: Parser) -> None:
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
    from failwell.workflows.recorded_runs import run_output

    if args.follow and args.lines is not None:
        raise usage_error("`--follow` and `--lines` exclude each other", see="failwell runs logs --help")
    with journal(args) as store:
        run = current_run(args, store)
        assert store is not None
        with following(store, run, is_wanted=args.follow):
            pieces = run_output(store, run.id, step=args.step, follow=args.follow)
            batches: Iterable[list[LogEntry]] = _batches(pieces)
            if args.lines is not None:
                batches = [list(deque((line for batch in batches for line in batch), args.lines))]
            is_empty = True
            for batch in batches:
                if batch:
                    is_empty = False
                    _print(batch, args)
            if is_empty and args.lines != 0:
                _explain_silence(store, run, args)
    return Exit.DONE


def _batches(pieces: "Iterable[LogEntry]") -> "Iterator[list[LogEntry]]":
    """Whole lines, those of each piece together. A line without an end comes last."""
    open_lines: dict[tuple[Any, ...], LogEntry] = {}
    for piece in pieces:
        stream = (piece.path, piece.visit, piece.attempt, piece.stream)
        before = open_lines.pop(stream, None)
        if piece.gap:
            yield [piece] if before is None else [before, piece]
            continue
        *lines, rest = _LINE_END.split(piece.text if before is None else before.text + piece.text)
        if len(rest) > _LONGEST:
            lines.append(rest)
        elif rest:
            open_lines[stream] = replace(piece, text=rest)
        yield [
            replace(piece, text=part)
            for line in lines
            for part in ([line] if len(line) <= _LONGEST else _parts(line))
        ]
    yield list(open_lines.values())


def _parts(line: str) -> list[str]:
    return [line[start : start + _LONGEST] for start in range(0, len(line), _LONGEST)]


def _masked(batch: "list[LogEntry]") -> list[str]:
    """The texts of `batch` without secrets. They are masked together, which is faster and sees more."""
    from failwell.errors.redact import redact_text

    text = "\n".join(line.text.removesuffix("\r") for line in batch)
    lines = redact_text(text, 2 * len(text) + 100).split("\n")
    if len(lines) == len(batch):
        return lines
    # A secret of several lines was masked as one; the lines have to stay apart.
    return [redact_text(line.text, 2 * len(line.text) + 100) for line in batch]


def _print(batch: "list[LogEntry]", args: Namespace) -> None:
    texts = _masked(batch)
    if args.format == "json":
        from json import dumps

        from failwell.cli.times import iso

        rows = [
            {**line.to_dict(), "text": text, "at": iso(line.at)}
            for line, text in zip(batch, texts, strict=True)
        ]
        print_json_text("\n".join(dumps(row, ensure_ascii=False) for row in rows))
        return
    print_text([_line(line, text, args.format) for line, text in zip(batch, texts, strict=True)])


def _line(line: "LogEntry", text: str, form: str) -> str:
    label = step_label(line.path, line.item)
    text = f"[{line.gap}]" if line.gap else text
    if form == "markdown":
        from failwell.delivery.agent_output import code

        return f"- {code(label)} {line.stream}: {code(text)}" if text else f"- {code(label)} {line.stream}"
    sign = "!" if line.stream == "stderr" else "|"
    return f"{label} {sign} {text}" if label else text


def _explain_silence(store: "SqliteStore", run: "Run", args: Namespace) -> None:
    """Say why nothing was printed.

    Raises:
        Usage: the run has no such step.
    """
    from failwell.workflows.run_details import run_details

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
