"""Data on stdout: text, JSON and tables, with colour only on a terminal."""

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from json import dumps
from typing import Any

WIDTH = 100
"""Columns that running text is wrapped to."""
Row = Sequence[str]


def print_text(text: str) -> None:
    """Print data and flush it.

    Raises:
        Unwritable: the disk is full, or the system refuses for another reason.
        BrokenPipeError: the reader has closed the stream.
    """
    try:
        print(text.rstrip("\n"), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        from failwell.apps.cli.faults import Unwritable, reason

        raise Unwritable.wrap(
            error, f"cannot write the output: {reason(error)}", caller_facing=True
        ) from error


def print_json(value: Any) -> None:
    """Print data as indented JSON."""
    print_text(dumps(value, indent=2, ensure_ascii=False))


def print_table(
    args: Namespace, columns: Row, rows: Sequence[Row], objects: Sequence[Any], empty: str = ""
) -> None:
    """Print a listing in the chosen format: a table, or for JSON an array of `objects`.

    Args:
        args: The parsed arguments.
        columns: The heads of the columns.
        rows: The cells, row by row.
        objects: The same rows as JSON objects, each with an `id`.
        empty: What to print on stderr if there are no rows.
    """
    if args.format == "json":
        print_json(list(objects))
    elif args.format == "markdown":
        print_text("\n".join(markdown_table(columns, rows)))
    elif rows:
        print_text("\n".join(text_table(columns, rows, args)))
    elif empty:
        print(empty, file=sys.stderr)


def print_aside(args: Namespace, text: str) -> None:
    """Print a remark for a person on stderr; nothing where errors are JSON, so that they can be parsed."""
    if error_format(args) != "json":
        print(text, file=sys.stderr, flush=True)


def error_format(args: Namespace) -> str:
    """The format of errors: its own option, else that of the data."""
    return getattr(args, "error_format", args.format)


def text_table(columns: Row, rows: Sequence[Row], args: Namespace, indent: str = "") -> list[str]:
    """The lines of a table with aligned columns and bold heads. Cells are made safe for a terminal."""
    from failwell.delivery.plain_text import one_line

    safe = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *safe, strict=True)]
    lines = [
        indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (columns, *safe)
    ]
    return [bold(lines[0], args), *lines[1:]]


def markdown_table(columns: Row, rows: Sequence[Row]) -> list[str]:
    """The lines of a GitHub table. The first column is code, so that it can be copied."""
    from failwell.delivery.agent_output import code, escaped

    return [
        f"| {' | '.join(columns)} |",
        f"|{' --- |' * len(columns)}",
        *(
            f"| {' | '.join([code(first).replace('|', chr(92) + '|'), *map(escaped, rest)])} |"
            for first, *rest in rows
        ),
    ]


def wants_color(args: Namespace) -> bool:
    """Whether stdout may be coloured: as `--color` says, else on a terminal unless `NO_COLOR` is set."""
    if args.color != "auto":
        return args.color == "always"
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and is_terminal(sys.stdout)


def is_terminal(stream: Any) -> bool:
    """Whether `stream` is a terminal."""
    try:
        return stream is not None and bool(stream.isatty())
    except ValueError:
        # A closed stream is no terminal.
        return False


def bold(text: str, args: Namespace) -> str:
    """`text` in bold where colour is wanted."""
    return f"\x1b[1m{text}\x1b[0m" if wants_color(args) else text


def wrapped(text: str, indent: str = "") -> str:
    """`text` wrapped to `WIDTH`; later lines of a numbered step are indented."""
    from textwrap import wrap

    lines: list[str] = []
    for paragraph in text.splitlines():
        step = paragraph[:2].rstrip(".").isdecimal() and paragraph[1:3] == ". "
        lines += wrap(
            paragraph,
            WIDTH,
            initial_indent=indent,
            subsequent_indent=f"{indent}   " if step else indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)
